# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint32_t, uint64_t

from cuplug._engine.base.core cimport cuplug_error
from cuplug._engine.base.core_call cimport cuplug_frame

cdef enum:
    MAX_BLOCKS = 16  # of one call: the core's limit

# PyTorch's memory that a call holds; n is 0 at first.
ctypedef struct torch_scratch:
    int n
    void *blocks[MAX_BLOCKS]


# Allocates a block for the frame's stream: a cuplug_keep_workspace. `user` is a torch_scratch. If
# *pointer remains NULL, the core's pool provides the block.
cdef int lend_scratch(
    void *user, const cuplug_frame *frame, uint32_t number, uint64_t n_bytes, void **pointer,
    cuplug_error *error
) noexcept nogil
# Frees all blocks, in the order of their streams: work that uses them may still be queued.
cdef void free_scratch(torch_scratch *scratch) noexcept nogil
