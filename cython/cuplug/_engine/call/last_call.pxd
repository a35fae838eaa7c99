# SPDX-License-Identifier: Apache-2.0
from cuplug._engine.base.core_call cimport cuplug_frame


# CUPLUG_VERBOSE: each run is printed.
cdef bint is_verbose
# Store the record of `last_call` for this thread.
cdef void note_last(const cuplug_frame *frame) noexcept nogil
cdef int print_run(const cuplug_frame *frame) except -1
