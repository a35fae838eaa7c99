# SPDX-License-Identifier: Apache-2.0
"""Memory that is held, given back, and made ready ahead of the first call."""

from collections import namedtuple

from libc.stdint cimport uint64_t

from cuplug._host cimport (
    CUPLUG_CPU,
    CUPLUG_CUDA,
    cuplug_device,
    cuplug_error,
    cuplug_load_code,
    cuplug_memory_info,
    cuplug_operator,
    cuplug_prepare,
    cuplug_query_memory,
    cuplug_trim,
    cuplug_trim_host,
)
from cuplug._operator cimport Operator
from cuplug._placement cimport note_use, parse_device, parse_gpu, used_devices
from cuplug._status cimport raise_error

from cuplug._registry import find

MemoryInfo = namedtuple(
    "MemoryInfo",
    "total_bytes free_bytes reserved_bytes used_bytes most_used_bytes pinned_bytes",
)
MemoryInfo.__doc__ = """What cuplug holds of one GPU, in bytes.

The GPU's memory and what of it is free for any process; what cuplug's pool has reserved, what of
that is in use, and the most that was; pinned memory of the host for copies to and from this GPU.
"""


def memory_info(device="cuda"):
    """Return what cuplug holds of a GPU.

    Parameters
    ----------
    device : str, int or device
        A GPU.

    Returns
    -------
    MemoryInfo
        total_bytes, free_bytes, reserved_bytes, used_bytes, most_used_bytes, pinned_bytes.

    Raises
    ------
    CudaError
        There is no GPU to use, and why.
    """
    cdef cuplug_device gpu = parse_gpu("memory_info", device)
    cdef cuplug_memory_info info
    cdef cuplug_error error
    cdef int status
    with nogil:
        status = cuplug_query_memory(gpu.id, &info, &error)
    if status:
        raise_error(&error)
    return MemoryInfo(
        info.total_bytes, info.free_bytes, info.reserved_bytes, info.used_bytes,
        info.most_used_bytes, info.pinned_bytes,
    )


def trim(device=None):
    """Give memory back that is held for later use: of GPUs, pinned, and of large NumPy outputs.

    Arrays that live keep theirs, and what a GPU is still at work on is given back by a later call.

    Parameters
    ----------
    device : str, int or device, optional
        A GPU; without it, all that this process used through cuplug, and the host.

    Returns
    -------
    int
        The bytes that were given back.
    """
    cdef uint64_t wanted = used_devices(), freed = 0, total = 0
    cdef cuplug_error error
    cdef bint is_all = device is None
    cdef int k, status = 0
    if not is_all:
        wanted = <uint64_t>1 << (parse_gpu("trim", device).id & 63)
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


def prepare(operators, device=None):
    """Do ahead what the first call of operators does.

    Their code is loaded. With a GPU, CUDA is started, the context and the memory pool are made, and
    it is checked that there is code for the GPU. The driver loads a kernel at its first launch in
    any case, unless the environment says CUDA_MODULE_LOADING=EAGER.

    Parameters
    ----------
    operators : Operator, str, or sequence of them
        Names are those that `cuplug.find` takes.
    device : str, int or device, optional
        Where they will run.

    Raises
    ------
    NotFoundError, PluginError, CudaError
        As their first call would.
    ValueError
        An operator has no entry for a GPU.
    """
    cdef cuplug_device place
    place.type = CUPLUG_CPU
    if device is not None:
        place = parse_device(device)
    for op in (operators,) if isinstance(operators, (str, Operator)) else operators:
        prepare_operator(<Operator?>(find(op) if isinstance(op, str) else op), place)


cdef int prepare_operator(Operator operator, cuplug_device place) except -1:
    cdef cuplug_operator *op = operator.op
    cdef cuplug_error error
    cdef int status
    with nogil:
        if place.type == CUPLUG_CUDA:
            status = cuplug_prepare(op, place.id, &error)
        else:
            status = cuplug_load_code(op, &error)
    if status:
        return raise_error(&error)
    if place.type == CUPLUG_CUDA:
        note_use(place.id)
    return 0
