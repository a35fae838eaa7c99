# SPDX-License-Identifier: Apache-2.0
"""Calls of fused functions with dtypes of earlier calls: one operator, without tracing."""

from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport uint8_t

from cuplug._engine.array.array cimport Array
from cuplug._engine.base.numpy_api cimport (
    PyArray_CheckExact,
    PyArray_DESCR,
    PyArrayObject,
    _import_array,
)
from cuplug._engine.base.vectorcall cimport (
    PyVectorcall_Call,
    PyVectorcall_NARGS,
    enable_vectorcall,
    vectorcallfunc,
)

import sys

import numpy

_import_array()

cdef extern from "Python.h":
    object PyObject_Vectorcall(
        object callable, PyObject *const *args, size_t n, PyObject *names
    )

cdef enum:
    MAX_KNOWN = 8  # sets of dtypes that a function caches
    MAX_GIVEN = 64
    MAX_KEYWORDS = 8

cdef str out_name = sys.intern("out")
# the keyword arguments of operators
OPTIONS: frozenset[str] = frozenset((out_name, "device", "stream"))


cdef class Direct:
    """The operator that computes a function for certain dtypes of its arguments.

    Parameters
    ----------
    keys : tuple
        What `key_of` returns for each argument.
    operator : Operator
    order : tuple of int
        The numbers of the function's arguments that the operator receives.
    fixed : dict
        Keyword arguments that each call of the operator receives.
    otherwise : callable
        Called with an exception of the operator, the arguments and keywords. Returns the result of
        the call, or raises.
    """

    cdef tuple keys
    cdef object operator
    cdef uint8_t[MAX_GIVEN] order
    cdef Py_ssize_t n
    cdef tuple names, values  # the items of `fixed`
    cdef object otherwise

    def __init__(self, tuple keys, operator, tuple order, dict fixed, otherwise):
        self.keys, self.operator, self.otherwise = keys, operator, otherwise
        self.names, self.values = tuple(fixed), tuple(fixed.values())
        self.n = len(order)
        for k in range(self.n):
            self.order[k] = order[k]


cdef class FusedCall:
    """The callable part of `Fused`. `_call_anew` traces and plans."""

    cdef vectorcallfunc vectorcall
    cdef tuple known  # newest first

    def __cinit__(self, *args):
        self.known = ()
        self.vectorcall = <vectorcallfunc>call_fused

    def __call__(self, *args, **keywords):
        """Compute the function.

        `out`, `device` and `stream` are the operators' keyword arguments.
        """
        return PyVectorcall_Call(self, args, keywords)

    def _remember(
        self, args: Sequence[Any], operator: Callable[..., Any], order: tuple[int, ...],
        fixed: dict[str, Any], otherwise: Callable[..., Any],
    ):
        """Call an operator directly in later calls with such dtypes."""
        keys = tuple([key_of(<PyObject *>x) for x in args])
        if None not in keys and len(args) <= MAX_GIVEN - MAX_KEYWORDS >= len(order):
            direct = Direct(keys, operator, order, fixed, otherwise)
            self.known = (direct, *self.known[: MAX_KNOWN - 1])


cdef FusedCall nothing = None  # its fields are not read


def called_at_once(cls: type[_T]) -> type[_T]:
    """Return a subclass of FusedCall whose calls create no tuple and no dict."""
    enable_vectorcall(cls, <char *>&nothing.vectorcall - <char *><PyObject *>nothing)
    return cls


cdef object call_fused(
    PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names
):
    cdef FusedCall self = <FusedCall>callable
    cdef tuple known = self.known
    cdef Py_ssize_t k, n = PyVectorcall_NARGS(nargsf)
    cdef Direct direct
    if names == NULL or are_options(<tuple>names):
        for k in range(PyTuple_GET_SIZE(known)):
            direct = <Direct>PyTuple_GET_ITEM(known, k)
            if fits(direct, args, n):
                return run(direct, args, n, names)
    keywords = {}
    if names != NULL:
        keywords = {name: <object>args[n + k] for k, name in enumerate(<tuple>names)}
    return self._call_anew(tuple([<object>args[k] for k in range(n)]), keywords)


cdef bint are_options(tuple names) except -1:
    for name in names:
        if name is not out_name and name not in OPTIONS:
            return False
    return True


cdef object key_of(PyObject *x):
    """Return the part of an argument that code is compiled for; None if this takes tracing."""
    cdef int overflow = 0
    if PyArray_CheckExact(x):
        return <object>PyArray_DESCR(<PyArrayObject *>x)
    if type(<object>x) is Array:
        return (<Array><object>x).dtype
    if PyLong_CheckExact(<object>x):
        PyLong_AsLongLongAndOverflow(<object>x, &overflow)
        return None if overflow else int
    if type(<object>x) is float or type(<object>x) is complex:
        return type(<object>x)
    if isinstance(<object>x, numpy.generic):
        return None
    return getattr(<object>x, "dtype", None)


cdef bint fits(Direct direct, PyObject *const *args, Py_ssize_t n) except -1:
    cdef Py_ssize_t k
    cdef PyObject *key
    cdef bint is_same
    if n != PyTuple_GET_SIZE(direct.keys):
        return False
    for k in range(n):
        key = PyTuple_GET_ITEM(direct.keys, k)
        if PyArray_CheckExact(args[k]):  # without changing the reference count of its dtype
            is_same = <PyObject *>PyArray_DESCR(<PyArrayObject *>args[k]) == key
        else:
            is_same = key_of(args[k]) is <object>key
        if not is_same:
            return False
    return True


cdef object run(Direct direct, PyObject *const *args, Py_ssize_t n, PyObject *names):
    cdef PyObject *given[MAX_GIVEN]
    cdef tuple all_names = direct.names if names == NULL else direct.names + <tuple>names
    cdef Py_ssize_t k, n_fixed = PyTuple_GET_SIZE(direct.names)
    for k in range(direct.n):
        given[k] = args[direct.order[k]]
    for k in range(n_fixed):
        given[direct.n + k] = PyTuple_GET_ITEM(direct.values, k)
    for k in range(PyTuple_GET_SIZE(all_names) - n_fixed):
        given[direct.n + n_fixed + k] = args[n + k]
    try:
        return PyObject_Vectorcall(
            direct.operator, given, direct.n,
            <PyObject *>all_names if PyTuple_GET_SIZE(all_names) else NULL,
        )
    except (TypeError, ValueError) as error:
        keywords = {}
        if names != NULL:
            keywords = {name: <object>args[n + k] for k, name in enumerate(<tuple>names)}
        return direct.otherwise(error, tuple([<object>args[k] for k in range(n)]), keywords)
