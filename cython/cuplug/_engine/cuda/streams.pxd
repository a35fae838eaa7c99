# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t


# The handle of a stream from the caller; NULL for None.
cdef void *parse_stream(str function, object stream) except? NULL
# Raises if `stream` is captured in a CUDA graph, which `function` cannot be part of.
cdef int refuse_capture(str function, void *stream, str wanted) except -1
# Makes `waiting` wait for the work on `stream`.
cdef int order_streams(int32_t device, void *waiting, void *stream) except -1
# The stream for work on arrays of cuplug and of libraries without streams, from the enclosing
# `with` blocks; NULL: the legacy default stream.
cdef void *work_stream(int32_t device) except? NULL
# True after the first such block; until then, calls check nothing else.
cdef bint has_blocks
# The stream on which memory of such arrays is allocated and filled: `work_stream`, except in a
# captured graph, which does not include this work.
cdef void *memory_stream(int32_t device) except? NULL
# The owner of the stream of `memory_stream`; None for the legacy default stream.
cdef object stream_owner(int32_t device)
# True if the block is a captured `cuplug.Graph`; it keeps `memory`, on which it will work.
cdef bint in_graph(int32_t device) except -1
cdef int hold(int32_t device, object memory) except -1
# Makes a stream the current one of its GPU, until `leave_block`. `held`: the objects that a graph
# keeps, or None.
cdef int enter_block(int32_t device, void *stream, object owner, list held) except -1
cdef int leave_block() except -1
