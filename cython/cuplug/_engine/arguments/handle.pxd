# SPDX-License-Identifier: Apache-2.0
from cuplug._engine.base.core cimport cuplug_handle
from cuplug._engine.base.core_call cimport cuplug_frame


cdef class Handle:
    cdef cuplug_handle *handle  # NULL: the call that creates it has failed


# The object that the run of a bound frame fills.
cdef Handle handle_of(cuplug_frame *frame)
