# SPDX-License-Identifier: Apache-2.0
"""Shapes and strides of parts of an array."""

from cpython.object cimport PyObject
from cpython.sequence cimport PySequence_Fast_ITEMS
from cpython.slice cimport PySlice_GetIndicesEx
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.stdint cimport int64_t, uintptr_t

from cuplug._engine.base.core cimport CUPLUG_MAX_NDIM, cuplug_element_bytes, cuplug_tensor

from operator import index

import numpy

cdef extern from "Python.h":
    Py_ssize_t PyNumber_AsSsize_t(object x, void *error) except? -1

# The kind of an item of a key.
cdef enum:
    OTHER
    NUMBER
    RANGE
    NEW
    REST


cdef void contiguous_strides(int ndim, const int64_t *shape, int64_t *strides) noexcept:
    cdef int64_t stride = 1
    cdef int k
    for k in range(ndim - 1, -1, -1):
        strides[k] = stride
        stride *= shape[k] if shape[k] else 1


cdef bint same_shape(const cuplug_tensor *x, const cuplug_tensor *y) noexcept:
    cdef int k
    for k in range(x.ndim if x.ndim == y.ndim else 0):
        if x.shape[k] != y.shape[k]:
            return False
    return x.ndim == y.ndim


cdef void find_span(const cuplug_tensor *x, uintptr_t *low, uintptr_t *high) noexcept:
    """Get the first byte and the end; both are equal for an empty array."""
    cdef int64_t own[CUPLUG_MAX_NDIM]
    cdef const int64_t *strides = x.strides
    cdef int64_t reach, n_bytes = cuplug_element_bytes(x)
    cdef int k
    if strides == NULL:
        contiguous_strides(x.ndim, x.shape, own)
        strides = own
    low[0] = high[0] = <uintptr_t>x.data + x.byte_offset
    for k in range(x.ndim):
        if not x.shape[k]:
            high[0] = low[0]
            return
        reach = (x.shape[k] - 1) * strides[k] * n_bytes
        if reach < 0:
            low[0] += reach
        else:
            high[0] += reach
    high[0] += n_bytes


cdef bint may_overlap(const cuplug_tensor *x, const cuplug_tensor *y) noexcept:
    cdef uintptr_t low = 0, high = 0, first = 0, last = 0
    find_span(x, &low, &high)
    find_span(y, &first, &last)
    return low < last and first < high


cdef bint repeats_elements(const cuplug_tensor *x) noexcept:
    """Return whether a dimension's stride does not exceed the extent of the narrower ones."""
    cdef int64_t reach, step, other
    cdef int k, j
    for k in range(x.ndim if x.strides != NULL else 0):
        if not x.shape[k]:
            return False
    for k in range(x.ndim if x.strides != NULL else 0):
        if x.shape[k] == 1:
            continue
        reach, step = 1, abs(x.strides[k])
        for j in range(x.ndim):
            other = abs(x.strides[j])
            if j != k and x.shape[j] != 1 and (other < step or (other == step and j < k)):
                reach += other * (x.shape[j] - 1)
        if step < reach:
            return True
    return False


# A key in progress: the result for the dimensions before `at`, and the position of its first
# element.
ctypedef struct selection:
    const cuplug_tensor *x
    const int64_t *steps
    int64_t *shape
    int64_t *strides
    int64_t first
    int n
    int at


cdef inline int kind_of_item(object item) except -1:
    if type(item) is int:
        return NUMBER
    if type(item) is slice:
        return RANGE
    if item is None:
        return NEW
    if item is Ellipsis:
        return REST
    return kind_of_other(item)


cdef int kind_of_other(object item) except -1:
    if isinstance(item, (bool, numpy.bool_)):  # with `__index__` in NumPy 1
        return OTHER
    if isinstance(item, (int, numpy.integer)):
        return NUMBER
    is_array = hasattr(item, "__dlpack__")
    return NUMBER if hasattr(item, "__index__") and not is_array else OTHER


cdef bint select(
    object key, const cuplug_tensor *x, int64_t *shape, int64_t *strides, cuplug_tensor *to
) except -1:
    cdef PyObject *only = <PyObject *>key
    cdef PyObject *const *items = &only
    cdef Py_ssize_t k, n_items = 1
    cdef int64_t own[CUPLUG_MAX_NDIM]
    cdef selection s
    cdef int n_rest
    if type(key) is tuple:
        items, n_items = PySequence_Fast_ITEMS(key), PyTuple_GET_SIZE(key)
    n_rest = n_not_named(items, n_items, x.ndim)
    if n_rest < 0:
        return False
    s.x, s.steps, s.shape, s.strides, s.first, s.n, s.at = x, x.strides, shape, strides, 0, 0, 0
    if s.steps == NULL:
        contiguous_strides(x.ndim, x.shape, own)
        s.steps = own
    for k in range(n_items):
        take_item(&s, <object>items[k], n_rest)
    take_whole(&s, x.ndim - s.at)
    to[0] = x[0]
    to.ndim, to.shape, to.strides = s.n, shape, strides
    to.data = <char *>x.data + s.first * cuplug_element_bytes(x)
    return True


cdef int n_not_named(PyObject *const *items, Py_ssize_t n_items, int ndim) except -2:
    """Return the number of dimensions that a key leaves to '...'; -1 if it has arrays."""
    cdef int n_named = 0, n_rests = 0, kind
    cdef Py_ssize_t k
    for k in range(n_items):
        kind = kind_of_item(<object>items[k])
        if kind == OTHER:
            return -1
        n_named += kind == NUMBER or kind == RANGE
        n_rests += kind == REST
    if n_named > ndim:
        raise IndexError(f"cuplug.Array: got {n_named} indices, expected at most {ndim}")
    if n_rests > 1:
        raise IndexError("cuplug.Array: got several '...' in a key, expected one")
    return ndim - n_named


cdef int take_item(selection *s, object item, int n_rest) except -1:
    cdef int kind = kind_of_item(item)
    if kind == REST:
        return take_whole(s, n_rest)
    if kind == RANGE or kind == NEW:
        check_room(s, 1)
    if kind == NEW:
        s.shape[s.n], s.strides[s.n] = 1, 0
    elif kind == RANGE:
        s.first += take_range(
            item, s.x.shape[s.at], s.steps[s.at], &s.shape[s.n], &s.strides[s.n]
        )
    else:
        s.first += position(item, s.at, s.x.shape[s.at]) * s.steps[s.at]
    s.n += kind == RANGE or kind == NEW
    s.at += kind != NEW
    return 0


cdef int take_whole(selection *s, int n) except -1:
    """Take the next n dimensions, unchanged."""
    cdef int k
    check_room(s, n)
    for k in range(n):
        s.shape[s.n + k], s.strides[s.n + k] = s.x.shape[s.at + k], s.steps[s.at + k]
    s.n += n
    s.at += n
    return 0


cdef inline int check_room(selection *s, int n) except -1:
    if s.n + n > CUPLUG_MAX_NDIM:
        raise IndexError("cuplug.Array: a key makes more than 64 dimensions")
    return 0


cdef int64_t take_range(
    object part, int64_t size, int64_t step, int64_t *n, int64_t *stride
) except? -1:
    """Set size and stride of a slice of a dimension. Return the offset of its first element."""
    cdef Py_ssize_t start = 0, stop = 0, by = 0, length = 0
    try:
        PySlice_GetIndicesEx(part, size, &start, &stop, &by, &length)
    except TypeError:
        raise TypeError(f"cuplug.Array: got {part!r}, expected integers or None in it") from None
    except ValueError:
        raise ValueError(f"cuplug.Array: got {part!r}, expected a step other than 0") from None
    n[0] = length
    stride[0] = step * by if length > 1 else step
    return start * step if length else 0


cdef int64_t position(object item, int dimension, int64_t size) except -1:
    cdef Py_ssize_t k = PyNumber_AsSsize_t(item, NULL)  # the largest, for larger ones
    if not -size <= k < size:
        raise IndexError(
            f"cuplug.Array: index {index(item)} is out of bounds for dimension {dimension} of "
            f"size {size}"
        )
    return k if k >= 0 else k + size
