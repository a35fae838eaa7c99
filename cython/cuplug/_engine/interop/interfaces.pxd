# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject

from cuplug._engine.base.core cimport cuplug_argument
from cuplug._engine.interop.kinds cimport cupy_getters
from cuplug._engine.interop.reading cimport reading


cdef int read_cupy(
    PyObject *x, reading *r, cuplug_argument *a, const cupy_getters *getters
) except -1
cdef int read_cuda_interface(object x, reading *r, cuplug_argument *a) except -1
cdef int read_buffer(object x, reading *r, cuplug_argument *a) except -1
