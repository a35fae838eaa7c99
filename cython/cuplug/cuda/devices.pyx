# SPDX-License-Identifier: Apache-2.0
"""The GPUs of this machine, and waiting for them."""

from collections import namedtuple

from libc.stdint cimport int32_t, uint64_t

from cuplug.base.core cimport (
    cuplug_device_info,
    cuplug_error,
    cuplug_n_devices,
    cuplug_query_device,
    cuplug_synchronize,
)
from cuplug.base.core_gpus cimport cuplug_query_attribute, cuplug_used_gpus
from cuplug.cuda.placement cimport parse_gpu
from cuplug.base.status cimport raise_error

from cuplug.base.public import public
from cuplug.cuda.attributes import NUMBERS
from cuplug.errors import CudaError

@public
class Device(namedtuple("Device", "id name compute_capability memory_bytes driver_version")):
    """One GPU.

    Its number, name, compute capability x 10 and bytes; the CUDA version of the driver x 1000.
    """

    __slots__ = ()

    @property
    def attributes(self):
        """All that the driver tells of it, by the names of CUDA's documentation.

        `attributes["MULTIPROCESSOR_COUNT"]` is CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT. Those
        that the driver does not know yet are not there.
        """
        cdef cuplug_error error
        cdef int32_t value = 0, is_known = 0
        found = {}
        for name, number in NUMBERS.items():
            if cuplug_query_attribute(self.id, number, &value, &is_known, &error):
                raise_error(&error)
            if is_known:
                found[name] = value
        return found


@public
def devices():
    """Return the GPUs as a list of records: id, name, compute_capability, memory_bytes,
    driver_version.

    Raises
    ------
    CudaError
        There is none to use, and why: no driver, no GPU, a driver that is too old.
    """
    cdef cuplug_error error
    cdef cuplug_device_info info
    info.struct_bytes = sizeof(info)
    cdef int32_t n = 0, version = 0, k
    cdef int status
    with nogil:
        status = cuplug_n_devices(&n, &version, &error)
    if status:
        raise_error(&error)
    found = []
    for k in range(n):
        if cuplug_query_device(k, &info, &error):
            raise_error(&error)
        name = info.name.decode(errors="replace")
        found.append(Device(k, name, info.compute_capability, info.memory_bytes, version))
    return found


def available_devices():
    """Return the GPUs as `devices` does; an empty list where there is none to use."""
    try:
        return devices()
    except CudaError:
        return []


def driver_version():
    """Return the CUDA version that the driver supports, x 1000; 0 where there is no driver."""
    cdef int32_t version = 0
    with nogil:
        cuplug_n_devices(NULL, &version, NULL)
    return version


@public
def synchronize(device=None):
    """Wait for all work on a GPU, and raise what earlier asynchronous calls found.

    Parameters
    ----------
    device : str, int or device, optional
        A GPU; without it, all that this process used through cuplug.
    """
    cdef uint64_t wanted = cuplug_used_gpus()
    cdef cuplug_error error
    cdef int k, status = 0
    if device is not None:
        wanted = <uint64_t>1 << parse_gpu("synchronize", device).id
    with nogil:
        for k in range(64):
            if wanted >> k & 1 and not status:
                status = cuplug_synchronize(k, NULL, 1, &error)
    if status:
        raise_error(&error)
