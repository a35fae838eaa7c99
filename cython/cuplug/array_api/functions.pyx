# SPDX-License-Identifier: Apache-2.0
"""Public functions of arrays, which find the operator for a call's dtypes once.

Also the stock operators that they use, whatever plugins a user adds.
"""

cimport cython
from cpython.bool cimport bool as bool_type
from cpython.object cimport PyObject, PyTypeObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int64_t, uint32_t

from cuplug._engine.array.array cimport Array, share_memory
from cuplug._engine.array.buffer cimport is_on_gpu
from cuplug._engine.array.layout cimport contiguous_strides
from cuplug._engine.base.core cimport CUPLUG_MAX_NDIM, cuplug_dtype, cuplug_tensor
from cuplug._engine.base.vectorcall cimport (
    PyVectorcall_Call,
    PyVectorcall_NARGS,
    enable_vectorcall,
    vectorcallfunc,
)

from functools import lru_cache, partial, update_wrapper

import numpy

cdef extern from "Python.h":
    object PyObject_Vectorcall(
        object callable, PyObject *const *args, size_t nargsf, PyObject *keywords
    )

    bint PyObject_TypeCheck(object x, PyTypeObject *wanted)

cdef PyTypeObject *numpy_dtype = <PyTypeObject *>numpy.dtype

cdef enum:
    MAX_KEYED = 3  # arguments; additional ones are not in the key
    CODE_BITS = 10
    FLOAT = 512  # above all codes of dtypes
    INT
    BOOL
    COMPLEX


@cython.final
cdef class ArrayFunction:
    """A function of arrays; an argument of a class with `__cuplug_function__` records it.

    Parameters
    ----------
    function : callable
        The Python implementation.
    find : callable, optional
        Receives the dtypes of arrays and the types of numbers in a call, and returns the operator
        that takes them unchanged. If it returns None, or raises TypeError, `function` is called.
    If True, the first array is modified.
        If True, the first array is changed.
    again : bool
        If True, `function` is also called if the operator raises ValueError.
    is_ordered : bool
        If True, the order of the elements of arrays matters, as in reductions. These take `axis`,
        like the operator, which reports an invalid one.
    along : bool
        If True, `axis` may be omitted only for arrays of one dimension.
    convert : callable, optional
        For functions of an array and a dtype, instead of `find`: receives the array's dtype and the
        other one, as the caller passed it, and returns the operator that converts arrays, or None.
    """

    cdef vectorcallfunc vectorcall
    cdef object function
    cdef object find, convert
    cdef bint in_place, again, is_ordered, along
    cdef dict operators  # by the codes of arguments
    cdef dict __dict__

    def __init__(
        self, function, find=None, bint in_place=False, bint again=False, bint is_ordered=False,
        bint along=False, convert=None,
    ):
        self.vectorcall = <vectorcallfunc>call_function
        self.function, self.find, self.convert, self.operators = function, find, convert, {}
        self.in_place, self.again, self.is_ordered = in_place, again, is_ordered
        self.along = along
        update_wrapper(self, function)
        self.__module__ = "cuplug.array_api"

    def __call__(self, *args, **keywords):
        return PyVectorcall_Call(self, args, keywords)

    def __repr__(self):
        return f"<function {self.__name__} of cuplug.array_api>"

    def __reduce__(self):
        return self.__name__


def of_all(find, along=False):
    """Make an `ArrayFunction` of one array, which is reduced completely by default.

    `find` receives a dtype. The order of the elements matters.
    """
    def find_for(dtype, *more):
        return find(dtype) if not more and isinstance(dtype, numpy.dtype) else None

    return partial(ArrayFunction, find=find_for, is_ordered=True, along=along)


cdef object call_function(
    PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *keywords
):
    cdef ArrayFunction self = <ArrayFunction>callable
    cdef Py_ssize_t k, n = PyVectorcall_NARGS(nargsf)
    if self.find is not None and 0 < n <= MAX_KEYED and is_plain(self, args, n, keywords):
        op = operator_for(self, args, n)
        if op is not None:
            try:
                return call_operator(self, op, args, nargsf, keywords)
            except ValueError:
                if not self.again and keywords == NULL:
                    raise
    elif self.convert is not None and n == 2 and keywords == NULL:
        op = conversion_for(self, <object>args[0], <object>args[1])
        if op is not None:
            return call_operator(self, op, args, 1, NULL)
    for k in range(n):
        if not is_common(<object>args[k]):
            record = recorder_of(type(<object>args[k]))
            if record is not None:
                return record_call(self, record, <object>args[k], args, n, keywords)
    return PyObject_Vectorcall(self.function, args, nargsf, keywords)


cdef inline bint is_plain(
    ArrayFunction self, PyObject *const *args, Py_ssize_t n, PyObject *keywords
) noexcept:
    """Return whether operators accept the arguments unchanged: with `axis` as the only keyword."""
    if self.along:
        first = <object>args[0]
        if type(first) is not Array or (<Array>first).tensor.ndim == 0:
            return False
        if keywords == NULL and (<Array>first).tensor.ndim > 1:
            return False
    if keywords == NULL:
        return True
    if not self.is_ordered or PyTuple_GET_SIZE(<tuple>keywords) != 1:
        return False
    return type(<object>args[n]) is int and <str>PyTuple_GET_ITEM(<tuple>keywords, 0) == "axis"


cdef inline object call_operator(
    ArrayFunction self, object op, PyObject *const *args, size_t nargsf, PyObject *keywords
):
    cdef int order[CUPLUG_MAX_NDIM]
    cdef Py_ssize_t n = PyVectorcall_NARGS(nargsf)
    if not self.is_ordered and turns_alike(args, n, self.in_place, order):
        return call_in_order(op, args, n, order)
    return PyObject_Vectorcall(op, args, nargsf, keywords)


cdef object operator_for(ArrayFunction self, PyObject *const *args, Py_ssize_t n):
    cdef uint32_t code, key = 0
    cdef Py_ssize_t k
    for k in range(n):
        code = code_of(<object>args[k])
        if not code:
            return None
        key = key << CODE_BITS | code
    op = self.operators.get(key, self)
    if op is self:
        op = self.operators[key] = find_operator(self, [<object>args[k] for k in range(n)])
    return op


cdef object find_operator(ArrayFunction self, list args):
    try:
        return self.find(*[x.dtype if isinstance(x, Array) else type(x) for x in args])
    except TypeError:  # the function reports it
        return None


cdef inline bint names_dtype(object x) noexcept:
    """`isinstance` takes longer for numpy.dtype, whose class is not a Python class."""
    return type(x) is str or isinstance(x, type) or PyObject_TypeCheck(x, numpy_dtype)


cdef object conversion_for(ArrayFunction self, object x, object dtype):
    cdef uint32_t code = code_of(x)
    if type(x) is not Array or not code or not names_dtype(dtype):
        return None
    found = self.operators.get(code)
    if found is None:
        found = self.operators[code] = {}
    op = (<dict>found).get(dtype)
    if op is None:
        try:
            op = self.convert(x.dtype, dtype)
        except TypeError:  # the function reports it
            return None
        if op is not None:
            (<dict>found)[dtype] = op
    return op


cdef inline uint32_t code_of(object x) noexcept:
    """Return the key of an argument: a dtype or a type of numbers; 0 for others."""
    cdef cuplug_dtype dtype
    if type(x) is Array:
        dtype = (<Array>x).tensor.dtype
        is_plain = dtype.lanes == 1 and dtype.code < 15 and dtype.bits <= 128
        return 1 + (dtype.code << 5 | dtype.bits >> 3) if is_plain else 0
    if type(x) is float:
        return FLOAT
    if type(x) is int:
        return INT
    if type(x) is bool_type:
        return BOOL
    return COMPLEX if type(x) is complex else 0


cdef inline bint is_common(object x) noexcept:
    """Return whether an argument's class records nothing."""
    cls = type(x)
    if cls is Array or cls is int or cls is tuple or cls is list or cls is float or x is None:
        return True
    return cls is str or cls is type or cls is bool_type


@lru_cache(256)
def recorder_of(cls):
    """Return a class's `__cuplug_function__`: the search for a missing one takes longer."""
    return getattr(cls, "__cuplug_function__", None)


cdef object record_call(
    ArrayFunction self, object record, object x, PyObject *const *args, Py_ssize_t n,
    PyObject *keywords
):
    names = () if keywords == NULL else <tuple>keywords
    given = [<object>args[k] for k in range(n + len(names))]
    return record(x, self.__name__, tuple(given[:n]), dict(zip(names, given[n:])))


# ---- Arrays in another order than C, such as x.T: read and written in memory order --------------


cdef bint turns_alike(
    PyObject *const *args, Py_ssize_t n, bint in_place, int *order
) noexcept:
    """Return whether all arrays are on the host, of one shape, in the same order other than C.

    If the first one is modified, only its order matters.
    """
    cdef const cuplug_tensor *first = NULL
    cdef const cuplug_tensor *x
    cdef Py_ssize_t k
    cdef int d
    for k in range(n):
        if type(<object>args[k]) is not Array:
            continue
        x = &(<Array>args[k]).tensor
        if first == NULL:
            first = x
        if first.strides == NULL or is_on_gpu(x) or x.ndim != first.ndim:
            return False
        if x.strides == NULL and not in_place:
            return False
        for d in range(x.ndim):
            if x.shape[d] != first.shape[d]:
                return False
            if not in_place and x.strides[d] != first.strides[d]:
                return False
    return first != NULL and sort_dims(first, order)


cdef bint sort_dims(const cuplug_tensor *x, int *order) noexcept:
    """Sort dimensions by decreasing stride. False if they are sorted, or elements are broadcast."""
    cdef bint is_turned = False
    cdef int d, k
    for d in range(x.ndim):
        if x.strides[d] <= 0:
            return False
        k = d
        while k and x.strides[order[k - 1]] < x.strides[d]:
            order[k] = order[k - 1]
            k -= 1
            is_turned = True
        order[k] = d
    return is_turned


cdef object call_in_order(object op, PyObject *const *args, Py_ssize_t n, const int *order):
    cdef PyObject *turned[MAX_KEYED]
    cdef list views = []
    cdef Py_ssize_t k
    for k in range(n):
        view = <object>args[k]
        if type(view) is Array:
            view = permuted(view, order, False)
        views.append(view)
        turned[k] = <PyObject *>view
    result = PyObject_Vectorcall(op, turned, n, NULL)
    return permuted(result, order, True) if type(result) is Array else result


cdef Array permuted(Array x, const int *order, bint is_back):
    cdef int64_t own[CUPLUG_MAX_NDIM]
    cdef int64_t shape[CUPLUG_MAX_NDIM]
    cdef int64_t strides[CUPLUG_MAX_NDIM]
    cdef const int64_t *steps = x.tensor.strides
    cdef cuplug_tensor to = x.tensor
    cdef int k, source, target
    if steps == NULL:
        contiguous_strides(x.tensor.ndim, x.tensor.shape, own)
        steps = own
    for k in range(x.tensor.ndim):
        source = k if is_back else order[k]
        target = order[k] if is_back else k
        shape[target], strides[target] = x.tensor.shape[source], steps[source]
    to.shape, to.strides = shape, strides
    return share_memory(&to, x, x.dtype)


cdef ArrayFunction nothing = None  # its fields are not read
enable_vectorcall(ArrayFunction, <char *>&nothing.vectorcall - <char *><PyObject *>nothing)


@lru_cache(maxsize=None)  # the search takes longer than a call
def stock(name):
    """Return the stock operator of a name."""
    from cuplug._engine.lookup.find import find_stock  # takes longer than `asarray`

    return find_stock(name)
