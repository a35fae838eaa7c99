# SPDX-License-Identifier: Apache-2.0
"""Numbers and strings -> arguments of the core."""

from cpython.complex cimport PyComplex_CheckExact, PyComplex_ImagAsDouble, PyComplex_RealAsDouble
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.number cimport PyIndex_Check, PyNumber_Index
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int64_t
from libc.string cimport strlen

from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_BOOL,
    CUPLUG_ARGUMENT_COMPLEX,
    CUPLUG_ARGUMENT_DTYPE,
    CUPLUG_ARGUMENT_FLOAT,
    CUPLUG_ARGUMENT_HUGE_INT,
    CUPLUG_ARGUMENT_INT,
    CUPLUG_ARGUMENT_NONE,
    CUPLUG_ARGUMENT_STRING,
    CUPLUG_ARGUMENT_UINT,
    cuplug_argument,
)
from cuplug._engine.base.numpy_dtypes cimport dtype_named
from cuplug._engine.base.numpy_api cimport (
    PyBoolArrType_Type,
    PyComplexFloatingArrType_Type,
    PyFloatingArrType_Type,
    PyIntegerArrType_Type,
    PyObject_TypeCheck,
    PyTimedeltaArrType_Type,
    _import_array,
)
from cuplug._engine.interop.reading cimport reading, set_unsupported, set_other, set_unreadable

import numpy

from cuplug._engine.interop.unsupported import advice_on

_import_array()

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object x, int *overflow) except? -1
    unsigned long long PyLong_AsUnsignedLongLong(object x) except? 0xFFFFFFFFFFFFFFFF
    const char *PyUnicode_AsUTF8AndSize(object x, Py_ssize_t *n_bytes) except NULL


cdef int read_exact_scalar(PyObject *obj, reading *r, cuplug_argument *a) except -1:
    cdef object x = <object>obj
    a.flags = 0
    if PyFloat_CheckExact(x):
        a.kind = CUPLUG_ARGUMENT_FLOAT
        a.scalar.f = PyFloat_AS_DOUBLE(x)
    elif PyLong_CheckExact(x):
        read_int(x, a)
    elif x is None:
        a.kind = CUPLUG_ARGUMENT_NONE
    elif x is True or x is False:
        a.kind = CUPLUG_ARGUMENT_BOOL
        a.scalar.i = x is True
    elif PyUnicode_CheckExact(x):
        read_string(x, r, a)
    elif PyComplex_CheckExact(x):
        a.kind = CUPLUG_ARGUMENT_COMPLEX
        a.scalar.c[0] = PyComplex_RealAsDouble(x)
        a.scalar.c[1] = PyComplex_ImagAsDouble(x)
    else:
        return 0
    return 1


cdef int read_int(object x, cuplug_argument *a) except -1:
    cdef int overflow = 0
    a.kind = CUPLUG_ARGUMENT_INT
    a.scalar.i = PyLong_AsLongLongAndOverflow(x, &overflow)
    if overflow:
        a.kind = CUPLUG_ARGUMENT_HUGE_INT
        if 0 < x < 1 << 64:
            a.kind = CUPLUG_ARGUMENT_UINT
            a.scalar.u = PyLong_AsUnsignedLongLong(x)
        else:
            a.scalar.f = as_float(x)
    return 0


cdef double as_float(object x):
    """Return the float for an integer beyond 64 bits; infinite if it also exceeds floats."""
    try:
        return float(x)
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")


cdef int read_string(object x, reading *r, cuplug_argument *a) except -1:
    cdef Py_ssize_t n_bytes = 0
    try:
        a.scalar.s = PyUnicode_AsUTF8AndSize(x, &n_bytes)
    except UnicodeEncodeError:
        return set_other(r, a, f"a string that cannot be encoded as UTF-8, {x!a}")
    if <Py_ssize_t>strlen(a.scalar.s) != n_bytes:
        return set_other(r, a, f"a string with a zero character, {x!a}")
    a.kind = CUPLUG_ARGUMENT_STRING
    return 0


cdef int read_scalar(PyObject *obj, reading *r, cuplug_argument *a) except -1:
    cdef object x = <object>obj
    if isinstance(x, str):
        return read_string(x, r, a)
    if isinstance(x, (type, numpy.dtype)) or type(x).__name__ == "dtype":
        return read_dtype(x, r, a)
    found = advice_on(x)
    if found is not None:
        return set_unsupported(r, a, found)
    try:
        return read_number(x, r, a)
    except TypeError as error:  # raised by its own code: not a number, such as JAX's tracers
        return set_unreadable(x, r, a, error)


cdef int read_dtype(object x, reading *r, cuplug_argument *a) except -1:
    a.scalar.dtype = dtype_named(x)
    if not a.scalar.dtype.bits:
        return set_other(r, a, f"type {x.__name__}" if isinstance(x, type) else f"dtype {x}")
    a.kind = CUPLUG_ARGUMENT_DTYPE
    return 0


cdef int read_number(object x, reading *r, cuplug_argument *a) except -1:
    cls = type(x)
    if PyIndex_Check(x):
        return read_int(PyNumber_Index(x), a)
    if hasattr(cls, "__float__"):
        a.kind = CUPLUG_ARGUMENT_FLOAT
        a.scalar.f = float(x)
        return 0
    if hasattr(cls, "__complex__"):
        return read_complex(complex(x), a)
    return set_other(r, a, cls.__name__)


cdef int read_numpy_scalar(PyObject *obj, reading *r, cuplug_argument *a) except -1:
    cdef object x = <object>obj
    a.flags = 0
    if PyObject_TypeCheck(obj, &PyFloatingArrType_Type):
        a.kind = CUPLUG_ARGUMENT_FLOAT
        a.scalar.f = float(x)
    elif is_integer(obj):
        read_int(PyNumber_Index(x), a)
    elif PyObject_TypeCheck(obj, &PyBoolArrType_Type):
        a.kind = CUPLUG_ARGUMENT_BOOL
        a.scalar.i = bool(x)
    elif PyObject_TypeCheck(obj, &PyComplexFloatingArrType_Type):
        return read_complex(complex(x), a)
    elif isinstance(x, str):
        return read_string(x, r, a)
    elif is_extension_float(x):
        a.kind = CUPLUG_ARGUMENT_FLOAT
        a.scalar.f = float(x)
    else:
        return set_other(r, a, f"{type(x).__module__}.{type(x).__name__}")
    return 0


cdef inline bint is_integer(PyObject *obj) noexcept:
    return PyObject_TypeCheck(obj, &PyIntegerArrType_Type) and not PyObject_TypeCheck(
        obj, &PyTimedeltaArrType_Type
    )


cdef bint is_extension_float(object x):
    """Read bfloat16 and similar scalars, which are opaque for NumPy."""
    return not isinstance(x, (numpy.flexible, numpy.character, numpy.object_)) and hasattr(
        type(x), "__float__"
    ) and type(x).__module__.partition(".")[0] == "ml_dtypes"


cdef int read_complex(object x, cuplug_argument *a) except -1:
    a.kind = CUPLUG_ARGUMENT_COMPLEX
    a.scalar.c[0] = x.real
    a.scalar.c[1] = x.imag
    return 0
