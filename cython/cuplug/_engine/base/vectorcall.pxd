# SPDX-License-Identifier: Apache-2.0
# Types that are called without a tuple and a dict, for which Cython has no syntax.
from cpython.object cimport PyObject


cdef extern from "Python.h":
    ctypedef PyObject *(*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *)
    Py_ssize_t PyVectorcall_NARGS(size_t n)
    object PyVectorcall_Call(object callable, object args, object keywords)
    unsigned long Py_TPFLAGS_HAVE_VECTORCALL
    ctypedef struct MutableType "PyTypeObject":
        Py_ssize_t tp_vectorcall_offset
        unsigned long tp_flags


cdef inline void enable_vectorcall(object type, Py_ssize_t offset) noexcept:
    """Set up a type; `offset` is the offset of the field with the function, in bytes."""
    (<MutableType *>type).tp_vectorcall_offset = offset
    (<MutableType *>type).tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL
