# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t

from cuplug._engine.base.core cimport cuplug_operator
from cuplug._engine.base.core_call cimport cuplug_frame
from cuplug._engine.interop.reading cimport reading


# Runs an operator on the arguments that were read; `out` and `device` may be NULL.
cdef object run_operator(
    cuplug_operator *op, reading *r, uint32_t n, PyObject *out, PyObject *device
)
# The processing of arguments once all are read, and of n_given outputs after them.
cdef int reread_arguments(cuplug_operator *op, reading *r, uint32_t n, uint32_t n_given) except -1
# An argument `return_<name>`.
cdef int note_returned(reading *r, object operator, object keyword, object value) except -1
