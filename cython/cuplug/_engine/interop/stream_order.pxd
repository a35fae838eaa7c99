# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t

from cuplug._engine.base.core_call cimport cuplug_frame
from cuplug._engine.interop.kinds cimport array_kind
from cuplug._engine.interop.reading cimport reading


# Adds the current stream of an array's library, which the call is ordered with.
cdef int add_current_stream(reading *r, const array_kind *kind, int32_t device) except -1
# Sets frame.stream to the caller's stream, or else to the current stream of the library of the
# first array on a GPU, and makes it wait for the streams that were added.
cdef int enter_stream(reading *r, cuplug_frame *frame) except -1
# Makes `stream` wait for the streams that were added.
cdef int wait_for_streams(reading *r, int32_t device, void *stream) except -1
# Makes the streams that were added wait for the call.
cdef int leave_stream(reading *r, cuplug_frame *frame) except -1
