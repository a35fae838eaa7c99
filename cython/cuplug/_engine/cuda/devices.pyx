# SPDX-License-Identifier: Apache-2.0
"""The GPUs of this machine, and functions that wait for them."""

from libc.stdint cimport int32_t, uint64_t

from cuplug._engine.base.core cimport (
    cuplug_error,
    cuplug_n_devices,
    cuplug_synchronize,
)
from cuplug._engine.base.core_call cimport cuplug_used_gpus
from cuplug._engine.cuda.placement cimport parse_gpu
from cuplug._engine.base.status cimport raise_error

from cuplug._engine.base.public import public
from cuplug._engine.cuda.placement import Device
from cuplug.errors import CudaError


@public
def devices() -> list[Device]:
    """Return the GPUs, as a list of `Device`; an empty one if none can be used.

    `cuplug doctor` explains why no GPU can be used.

    Examples
    --------
    >>> cuplug.devices()  # doctest: +SKIP
    [cuplug.Device("cuda:0"), cuplug.Device("cuda:1")]
    """
    try:
        return usable_devices()
    except CudaError:
        return []


@public
def is_available() -> bool:
    """Return whether there is a GPU that can be used; False also if its driver is broken.

    Examples
    --------
    >>> device = "cuda" if cuplug.is_available() else "cpu"
    """
    return len(devices()) > 0


def usable_devices() -> list[Device]:
    """Return the GPUs, one or more.

    Raises
    ------
    CudaError
        If no GPU can be used, with the reason: no driver, no GPU, a driver that is too old.
    """
    cdef cuplug_error error
    cdef int32_t n = 0, version = 0
    cdef int status
    with nogil:
        status = cuplug_n_devices(&n, &version, &error)
    if status:
        raise_error(&error)
    return [Device(k) for k in range(n)]


def driver_version() -> int:
    """Return the CUDA version that the driver supports, x 1000; 0 without a driver."""
    cdef int32_t version = 0
    with nogil:
        cuplug_n_devices(NULL, &version, NULL)
    return version


@public
def synchronize(device=None):
    """Wait for all work on a GPU, and raise faults of earlier calls that were not yet raised.

    Parameters
    ----------
    device : str, int or Device, optional
        A GPU; the default is all GPUs that this process used through cuplug.

    Examples
    --------
    >>> cuplug.synchronize("cuda:0")
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
