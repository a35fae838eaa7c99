# SPDX-License-Identifier: Apache-2.0
"""Memory of GPUs: its owners; how much cuplug holds, and releases."""

from collections import namedtuple

from libc.stdint cimport int32_t, uint64_t
from libc.string cimport strncpy

from cuplug._engine.base.core cimport (
    CUPLUG_RECLAIM_BYTES,
    cuplug_allocate_device,
    cuplug_device,
    cuplug_error,
    cuplug_memory_info,
    cuplug_query_memory,
    cuplug_set_reclaim,
    cuplug_trim,
    cuplug_trim_host,
)
from cuplug._engine.base.core_call cimport cuplug_release_device, cuplug_used_gpus
from cuplug._engine.cuda.placement cimport parse_gpu
from cuplug._engine.base.status cimport raise_error

from cuplug._engine.base.public import public
cdef extern from "Python.h":
    int Py_IsInitialized() nogil

cdef class DeviceMemory:
    def __dealloc__(self):
        if self.data != NULL:
            cuplug_release_device(self.gpu, self.data, self.n_bytes, self.stream)


cdef int allocate(DeviceMemory memory, int32_t gpu, uint64_t n_bytes, void *stream) except -1:
    cdef cuplug_error error
    memory.gpu, memory.n_bytes, memory.stream = gpu, n_bytes, stream
    if cuplug_allocate_device(gpu, n_bytes, stream, &memory.data, &error):
        raise_error(&error)
    return 0


MemoryInfo: tuple[int, ...] = public(
    namedtuple(
        "MemoryInfo",
        "total_bytes free_bytes reserved_bytes used_bytes peak_used_bytes pinned_bytes",
    )
)
MemoryInfo.__doc__ = """The memory of one GPU that cuplug holds, in bytes.

Attributes
----------
total_bytes, free_bytes : int
    The GPU's memory, for all processes.
reserved_bytes, used_bytes, peak_used_bytes : int
    The memory that cuplug's pool has reserved, the part of it in use, and the peak of that part.
pinned_bytes : int
    Pinned memory of the host for copies to and from this GPU.

Examples
--------
>>> info = cuplug.memory_info("cuda")
>>> info.free_bytes <= info.total_bytes
True
"""


@public
def memory_info(device="cuda") -> MemoryInfo:
    """Return the memory of a GPU that cuplug holds.

    Parameters
    ----------
    device : str, int or Device
        A GPU.

    Returns
    -------
    MemoryInfo
        total_bytes, free_bytes, reserved_bytes, used_bytes, peak_used_bytes, pinned_bytes.

    Raises
    ------
    CudaError
        If no GPU can be used, with the reason.

    Examples
    --------
    >>> info = cuplug.memory_info("cuda")
    >>> info.used_bytes <= info.reserved_bytes
    True
    """
    cdef cuplug_device gpu = parse_gpu("memory_info", device)
    cdef cuplug_memory_info info
    cdef cuplug_error error
    cdef int status
    info.struct_bytes = sizeof(info)
    with nogil:
        status = cuplug_query_memory(gpu.id, &info, &error)
    if status:
        raise_error(&error)
    return MemoryInfo(
        info.total_bytes, info.free_bytes, info.reserved_bytes, info.used_bytes,
        info.peak_used_bytes, info.pinned_bytes,
    )


@public
def trim(device=None) -> int:
    """Release memory that is cached for later use: of GPUs, pinned, and of large NumPy outputs.

    Waits for the legacy default stream of each GPU. Existing arrays keep their memory, and memory
    that work on other streams has not yet freed is released by a later call.

    Parameters
    ----------
    device : str, int or Device, optional
        A GPU; the default is all GPUs that this process used through cuplug, and the host.

    Returns
    -------
    int
        The number of released bytes.

    Examples
    --------
    >>> cuplug.trim() >= 0
    True
    """
    cdef uint64_t wanted = cuplug_used_gpus(), freed = 0, total = 0
    cdef cuplug_error error
    cdef bint is_all = device is None
    cdef int k, status = 0
    if not is_all:
        wanted = <uint64_t>1 << parse_gpu("trim", device).id
    with nogil:
        if is_all:
            total = cuplug_trim_host()
        for k in range(64):
            if wanted >> k & 1 and not status:
                status = cuplug_trim(k, &freed, &error)
                total += freed
    if status:
        raise_error(&error)
    return total


cdef void reclaim(int32_t device, char *held) noexcept nogil:
    if Py_IsInitialized():
        reclaim_from_libraries(device, held)


cdef void reclaim_from_libraries(int32_t device, char *held) noexcept with gil:
    from cuplug._engine.cuda.frameworks import free_caches

    strncpy(held, free_caches(device).encode(), CUPLUG_RECLAIM_BYTES - 1)


cuplug_set_reclaim(reclaim)
