# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t


# The handle of what the caller names as a stream; NULL for None.
cdef void *parse_stream(str function, object stream) except? NULL
# Raises where `stream` is captured in a CUDA graph: `function` cannot take part in one.
cdef int refuse_capture(str function, void *stream, str wanted) except -1
# Makes `waiting` wait for the work on `stream`.
cdef int order_streams(int32_t device, void *waiting, void *stream) except -1
