# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t

from cuplug._engine.base.core cimport cuplug_argument, cuplug_tensor
from cuplug._engine.interop.reading cimport reading


# Any Python object as an argument. Unsupported objects become CUPLUG_ARGUMENT_OTHER.
cdef int read_argument(PyObject *obj, reading *r, cuplug_argument *a) except -1
# Reads n arguments of a call from number `at` on.
cdef int read_arguments(PyObject *const *objects, uint32_t n, reading *r, uint32_t at) except -1
# The same for an argument that is given by name.
cdef int read_keyword(PyObject *obj, reading *r, uint32_t at) except -1
# Reads the first n again that belong to other libraries, because Python code has run since.
cdef int read_again(reading *r, uint32_t n) except -1
# A new C-contiguous array of a tensor's shape and dtype; sets its data and device.
cdef object empty_numpy(cuplug_tensor *x, bint large)
