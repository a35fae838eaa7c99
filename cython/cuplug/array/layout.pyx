# SPDX-License-Identifier: Apache-2.0
"""Shapes and strides of parts of an array."""

from cpython.slice cimport PySlice_GetIndicesEx
from libc.stdint cimport int64_t, uintptr_t

from cuplug.base.core cimport CUPLUG_MAX_NDIM, cuplug_element_bytes, cuplug_tensor

from operator import index

import numpy

# What an item of a key is.
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


cdef void find_span(const cuplug_tensor *x, uintptr_t *low, uintptr_t *high) noexcept:
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


cdef bint repeats_elements(const cuplug_tensor *x) noexcept:
    cdef int k
    for k in range(x.ndim):
        if x.strides != NULL and not x.strides[k] and x.shape[k] > 1:
            return True
    return False


cdef int kind_of_item(object item) except -1:
    if isinstance(item, bool):
        return OTHER
    if isinstance(item, (int, numpy.integer)):
        return NUMBER
    if isinstance(item, slice):
        return RANGE
    if item is None:
        return NEW
    if item is Ellipsis:
        return REST
    is_array = hasattr(item, "__dlpack__")
    return NUMBER if hasattr(item, "__index__") and not is_array else OTHER


cdef bint select(
    object key, const cuplug_tensor *x, int64_t *shape, int64_t *strides, cuplug_tensor *to
) except -1:
    cdef int64_t own[CUPLUG_MAX_NDIM]
    cdef const int64_t *steps = x.strides
    cdef int64_t first = 0
    cdef int n = 0, at = 0
    if x.ndim and (type(key) is int or type(key) is slice):
        return select_first(key, x, shape, strides, to)
    items = key if type(key) is tuple else (key,)
    kinds = [kind_of_item(item) for item in items]
    if OTHER in kinds:
        return False
    if steps == NULL:
        contiguous_strides(x.ndim, x.shape, own)
        steps = own
    for item, kind in completed(items, kinds, x.ndim):
        if kind != NUMBER and n == CUPLUG_MAX_NDIM:
            raise IndexError("cuplug.Array: a key makes more than 64 dimensions")
        if kind == NUMBER:
            first += position(item, at, x.shape[at]) * steps[at]
        elif kind == NEW:
            shape[n], strides[n] = 1, 0
        else:
            first += take_range(item, x.shape[at], steps[at], &shape[n], &strides[n])
        at += kind != NEW
        n += kind != NUMBER
    to[0] = x[0]
    to.ndim, to.shape, to.strides = n, shape, strides
    to.data = <char *>x.data + first * cuplug_element_bytes(x)
    return True


cdef bint select_first(
    object key, const cuplug_tensor *x, int64_t *shape, int64_t *strides, cuplug_tensor *to
) except -1:
    """As `select`, for an integer or a slice of the first dimension: what most keys are."""
    cdef int k, dropped = type(key) is int
    cdef int64_t own[CUPLUG_MAX_NDIM]
    cdef const int64_t *steps = x.strides
    cdef int64_t first
    if steps == NULL:
        contiguous_strides(x.ndim, x.shape, own)
        steps = own
    for k in range(dropped, x.ndim):
        shape[k - dropped], strides[k - dropped] = x.shape[k], steps[k]
    if dropped:
        first = position(key, 0, x.shape[0]) * steps[0]
    else:
        first = take_range(key, x.shape[0], steps[0], shape, strides)
    to[0] = x[0]
    to.ndim, to.shape, to.strides = x.ndim - dropped, shape, strides
    to.data = <char *>x.data + first * cuplug_element_bytes(x)
    return True


cdef int64_t take_range(
    object part, int64_t size, int64_t step, int64_t *n, int64_t *stride
) except? -1:
    """Size and stride of a slice of a dimension. Returns how far its first element is."""
    cdef Py_ssize_t start = 0, stop = 0, by = 0, length = 0
    try:
        PySlice_GetIndicesEx(part, size, &start, &stop, &by, &length)
    except TypeError:
        raise TypeError(f"cuplug.Array: seen {part!r}, wanted integers or None in it") from None
    except ValueError:
        raise ValueError(f"cuplug.Array: seen {part!r}, wanted a step other than 0") from None
    n[0] = length
    stride[0] = step * by if length > 1 else step
    return start * step if length else 0


cdef list completed(tuple items, list kinds, int ndim):
    """The items with their kinds, and whole ranges where dimensions are not named."""
    n_named = kinds.count(NUMBER) + kinds.count(RANGE)
    if n_named > ndim:
        raise IndexError(f"cuplug.Array: seen {n_named} indices, wanted at most {ndim}")
    if kinds.count(REST) > 1:
        raise IndexError("cuplug.Array: seen several '...' in a key, wanted one")
    rest = [(slice(None), RANGE)] * (ndim - n_named)
    at = kinds.index(REST) if REST in kinds else len(items)
    pairs = list(zip(items, kinds))
    return [*pairs[:at], *rest, *pairs[at + 1 :]]


cdef int64_t position(object item, int dimension, int64_t size) except -1:
    k = index(item)
    if not -size <= k < size:
        raise IndexError(
            f"cuplug.Array: index {k} is out of bounds for dimension {dimension} of size {size}"
        )
    return k if k >= 0 else k + size
