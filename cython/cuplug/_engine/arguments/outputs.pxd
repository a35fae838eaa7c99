# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint32_t

from cuplug._engine.base.core_call cimport cuplug_frame
from cuplug._engine.interop.reading cimport reading


# A new array for output tensor k, like the first array of the call; sets the tensor's data.
cdef object allocate_output(reading *r, cuplug_frame *frame, uint32_t k)
# An output in the caller's form, once it is filled.
cdef object finish_output(reading *r, const char *name, object output)
# Counts the writes of a call to its in-out arrays and to the outputs after n_args arguments.
cdef int count_writes(
    reading *r, const cuplug_frame *frame, uint32_t n_args, bint has_outputs
) except -1
# Replaces the arrays in frame.copy_mask by C-contiguous, broadcast copies, if it can.
cdef int copy_arguments(reading *r, cuplug_frame *frame) except -1
# The same for the items of lists that are apart from the frame's tensors.
cdef int copy_items(reading *r, const cuplug_frame *frame) except -1
