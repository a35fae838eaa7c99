# SPDX-License-Identifier: Apache-2.0
from cuplug._engine.base.core_call cimport cuplug_term


cdef void *allocate(size_t n, size_t n_bytes) except NULL
cdef int set_term(cuplug_term *term, object made) except -1
