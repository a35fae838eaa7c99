# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint32_t

from cuplug._host cimport cuplug_operator
from cuplug._reading cimport reading


ctypedef struct last_run:
    cuplug_operator *op  # NULL: none yet
    int32_t device_type
    int32_t device_id
    int32_t staged

# Runs an operator on the arguments that were read; `out` and `device` may be NULL.
cdef object run_operator(
    cuplug_operator *op, reading *r, uint32_t n, PyObject *out, PyObject *device
)
# What this thread ran last.
cdef last_run get_last_run() noexcept nogil
