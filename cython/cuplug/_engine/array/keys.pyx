# SPDX-License-Identifier: Apache-2.0
"""The first checks of keys with arrays: whether operators take them unchanged."""

from cpython.tuple cimport PyTuple_GET_SIZE

from cuplug._engine.array.arithmetic cimport functions, stock
from cuplug._engine.array.array cimport Array, empty_like_tensor, write
from cuplug._engine.array.buffer cimport are_on_one_device, are_positions, is_contiguous
from cuplug._engine.array.layout cimport may_overlap, same_shape
from cuplug._engine.base.core cimport cuplug_tensor
from cuplug._engine.base.dlpack cimport DLPACK_BOOL, DLPACK_INT


def is_mask_of(Array x not None, key) -> bool:
    """Return whether a key is an array of bools, one for each element."""
    if type(key) is not Array:
        return False
    cdef const cuplug_tensor *k = &(<Array>key).tensor
    return k.dtype.code == DLPACK_BOOL and same_shape(k, &x.tensor)


def axis_of_positions(Array x not None, key) -> int | None:
    """Return the dimension for which a key has an array of positions, after only full slices.

    Return None for other keys.
    """
    cdef Py_ssize_t k, last = 0
    if type(key) is tuple:
        last = PyTuple_GET_SIZE(<tuple>key) - 1
        if not 0 <= last < x.tensor.ndim:
            return None
        for k in range(last):
            if not is_of_all((<tuple>key)[k]):
                return None
        key = (<tuple>key)[last]
    return last if last < x.tensor.ndim and are_positions(x, key) else None


cpdef bint are_along_first(Array x, tuple keys) noexcept:
    """Return whether keys are arrays of positions for the first dimensions.

    They have one shape, and are int32 or int64.
    """
    cdef const cuplug_tensor *first = NULL
    cdef const cuplug_tensor *k
    if not 0 < PyTuple_GET_SIZE(keys) <= x.tensor.ndim:
        return False
    for key in keys:
        if not are_positions(x, key):
            return False
        k = &(<Array>key).tensor
        first = first if first != NULL else k
        if k.dtype.bits != first.dtype.bits or not same_shape(k, first):
            return False
        if k.dtype.code != DLPACK_INT or k.dtype.bits < 32:
            return False
    return True


def put_at(Array x not None, key, value):
    """Write to the selection of a key with arrays; a repeated element keeps one of its values."""
    cdef tuple keys = key if type(key) is tuple else (key,)
    values = values_for(x, keys, value)
    if values is None:
        functions().put_converted(x, key, value)
    else:
        stock("indexing.index_put")(x, keys, values)


cdef Array values_for(Array x, tuple keys, object value):
    """Return a value as an array that can be written unchanged to the selection of keys.

    Return None if it cannot, or if the keys are not positions along the first dimensions.
    """
    cdef cuplug_tensor like = x.tensor
    cdef Array single
    if not is_contiguous(&like) or not are_along_first(x, keys) or meets_any(x, keys):
        return None
    if type(value) is Array:
        return value if is_for(x, keys, value) else None
    if not isinstance(value, (bool, int, float, complex)):
        return None
    like.ndim, like.strides = 0, NULL
    single = empty_like_tensor(&like)
    write(single, value)
    return single


cdef bint is_for(Array x, tuple keys, Array values) except -1:
    """Return whether values in C order, one for each element or for all, have the array's dtype."""
    cdef const cuplug_tensor *own = &x.tensor
    cdef const cuplug_tensor *v = &values.tensor
    cdef const cuplug_tensor *k = &(<Array>keys[0]).tensor
    cdef int d, n = <int>PyTuple_GET_SIZE(keys)
    if not are_on_one_device(own, v) or not is_contiguous(v) or values.dtype != x.dtype:
        return False
    if may_overlap(own, v) or v.ndim and v.ndim != k.ndim + own.ndim - n:
        return False
    for d in range(v.ndim):
        if v.shape[d] != (k.shape[d] if d < k.ndim else own.shape[d - k.ndim + n]):
            return False
    return True


cdef bint meets_any(Array x, tuple keys) noexcept:
    for key in keys:
        if may_overlap(&x.tensor, &(<Array>key).tensor):
            return True
    return False


cdef bint is_of_all(object item):
    if type(item) is not slice:
        return False
    return item.start is None and item.stop is None and item.step is None
