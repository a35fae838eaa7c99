# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint32_t, uint64_t

from cuplug._engine.base.core_call cimport cuplug_frame
from cuplug._engine.interop.reading cimport reading


cdef enum:
    MAX_ORIGINS = 64  # more are stored with the reading

# Sets the origins of a bound frame's inputs: cuplug's arrays among the first n arguments, and those
# of the n_given outputs after them that it writes in part.
cdef int set_origins(
    reading *r, cuplug_frame *frame, uint32_t n, uint32_t n_given, uint64_t *few
) except -1
# After the run: records the call that has written its outputs and in-out arrays.
cdef int note_origin(
    reading *r, const cuplug_frame *frame, uint32_t n, object outputs
) except -1
