# SPDX-License-Identifier: Apache-2.0
"""Workspaces from PyTorch's caching allocator, for calls with its tensors on a GPU.

Its statistics and limits include them, and a graph that PyTorch captures keeps them in the graph's
own pool. libtorch's stable C functions allocate for PyTorch's current stream. For another stream,
and if a version of PyTorch lacks the functions, `torch.cuda.caching_allocator_alloc` allocates.
"""

import sys

from libc.stdint cimport int32_t, uint32_t, uint64_t

from cuplug._engine.base.core cimport cuplug_error
from cuplug._engine.base.core_call cimport cuplug_frame
from cuplug._engine.base.status cimport raise_later
from cuplug._engine.interop.libtorch cimport find_symbols

ctypedef struct functions:
    int (*current_stream)(int32_t device, void **stream) noexcept nogil
    int (*alloc)(uint64_t n_bytes, void **pointer) noexcept nogil
    int (*free)(void *pointer) noexcept nogil

cdef functions torch
cdef bint is_searched = False


cdef bint search() noexcept with gil:
    """Search libtorch once; return whether it has the functions."""
    global is_searched
    names = (
        b"aoti_torch_get_current_cuda_stream",
        b"aoti_torch_cuda_caching_allocator_raw_alloc",
        b"aoti_torch_cuda_caching_allocator_raw_delete",
    )
    cdef functions found
    if not is_searched and find_symbols((b"libtorch_cuda.so",), names, <void **>&found):
        torch.current_stream, torch.alloc = found.current_stream, found.alloc
        torch.free = found.free
    is_searched = True
    return torch.free != NULL


cdef bint is_current(const cuplug_frame *frame) noexcept nogil:
    cdef void *stream = NULL
    return not torch.current_stream(frame.device.id, &stream) and stream == frame.stream


cdef int lend_scratch(
    void *user, const cuplug_frame *frame, uint32_t number, uint64_t n_bytes, void **pointer,
    cuplug_error *error
) noexcept nogil:
    cdef torch_scratch *scratch = <torch_scratch *>user
    cdef int status = 0
    if (is_searched or search()) and torch.free != NULL and is_current(frame):
        if torch.alloc(n_bytes, pointer):
            pointer[0] = NULL
    else:
        status = allocate_in_python(frame, n_bytes, pointer, error)
    if pointer[0] != NULL:
        scratch.blocks[scratch.n] = pointer[0]
        scratch.n += 1
    return status


cdef int allocate_in_python(
    const cuplug_frame *frame, uint64_t n_bytes, void **pointer, cuplug_error *error
) noexcept with gil:
    cdef size_t stream = <size_t>frame.stream
    try:
        allocate = sys.modules["torch"].cuda.caching_allocator_alloc
        # PyTorch names the legacy default stream 0.
        pointer[0] = <void *><size_t>allocate(n_bytes, frame.device.id, stream if stream > 1 else 0)
    except Exception:  # no memory is left: the core's pool requests that PyTorch release some
        pass
    except BaseException as raised:
        return raise_later(raised, error)
    return 0


cdef void free_scratch(torch_scratch *scratch) noexcept nogil:
    while scratch.n:
        scratch.n -= 1
        if torch.free == NULL:
            free_in_python(scratch.blocks[scratch.n])
        else:
            torch.free(scratch.blocks[scratch.n])


cdef void free_in_python(void *block) noexcept with gil:
    sys.modules["torch"].cuda.caching_allocator_delete(<size_t>block)
