# SPDX-License-Identifier: Apache-2.0
# Attributes that C code computes, through that code: a fraction of the time of a look-up by name.
from cpython.object cimport PyObject


cdef extern from "Python.h":
    ctypedef object (*getter)(PyObject *, void *)

    ctypedef struct PyGetSetDef:
        getter get
        void *closure

    ctypedef struct PyGetSetDescrObject:
        PyGetSetDef *d_getset


# The descriptor of a class's attribute, borrowed from the class; NULL where it is of another kind.
cdef inline PyObject *find_getter(object cls, str name):
    descriptor = getattr(cls, name, None)
    if type(descriptor).__name__ != "getset_descriptor":
        return NULL
    return <PyObject *>descriptor


cdef inline object call_getter(PyObject *descriptor, PyObject *obj):
    cdef PyGetSetDef *definition = (<PyGetSetDescrObject *>descriptor).d_getset
    return definition.get(obj, definition.closure)
