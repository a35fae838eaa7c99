# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject

from cuplug._engine.base.core cimport cuplug_argument
from cuplug._engine.interop.reading cimport reading


# Python's own scalars and None: returns 1 if `obj` has exactly one of these types.
cdef int read_exact_scalar(PyObject *obj, reading *r, cuplug_argument *a) except -1
# NumPy's scalars.
cdef int read_numpy_scalar(PyObject *obj, reading *r, cuplug_argument *a) except -1
# All other objects that can be a number or a string; else CUPLUG_ARGUMENT_OTHER.
cdef int read_scalar(PyObject *obj, reading *r, cuplug_argument *a) except -1
