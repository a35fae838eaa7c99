# SPDX-License-Identifier: Apache-2.0
"""New arrays with one value, uninitialized, or like another array."""

from libc.stdint cimport int64_t

from cuplug._engine.array.array cimport Array, cleared_like_tensor, empty_like_tensor
from cuplug._engine.array.array cimport share_memory, write
from cuplug._engine.array.buffer cimport is_on_gpu
from cuplug._engine.array.copies cimport runs_with_gil
from cuplug._engine.array.make cimport describe, new_array, of_structures, place_for
from cuplug._engine.base.core cimport CUPLUG_MAX_NDIM, cuplug_element_bytes, cuplug_tensor
from cuplug._engine.base.dlpack cimport DLPACK_UINT
from cuplug._engine.base.numpy_dtypes cimport OPAQUE, dtype_in_memory, to_descr

from cuplug._engine.arguments.to_array import to_array
from cuplug._engine.array.promotion import kind_of, to_dtype
from cuplug.array_api.dtypes import checked, conversion


def full(shape, fill_value, *, dtype=None, device=None) -> Array:
    """Return an array of one value.

    Examples
    --------
    >>> print(xp.full((2, 2), 7))
    [[7 7]
     [7 7]]
    """
    dtype = dtype_of(fill_value) if dtype is None else dtype
    return filled("full", shape, fill_value, dtype, device)


def ones(shape, *, dtype=None, device=None) -> Array:
    """Return an array of ones.

    Examples
    --------
    >>> print(xp.ones(3, dtype=xp.int8))
    [1 1 1]
    """
    return filled("ones", shape, 1, dtype, device)


def zeros(shape, *, dtype=None, device=None) -> Array:
    """Return an array of zeros.

    Examples
    --------
    >>> print(xp.zeros((2, 2)))
    [[0. 0.]
     [0. 0.]]
    """
    cdef int64_t sizes[CUPLUG_MAX_NDIM]
    cdef cuplug_tensor x
    descr = describe("zeros", shape, "float64" if dtype is None else dtype, sizes, &x)
    x.device = place_for("zeros", device)
    return cleared(&x, descr)


def empty_like(x: Array, /, *, dtype=None, device=None) -> Array:
    """Return an array of the same shape, dtype and device, uninitialized.

    Examples
    --------
    >>> xp.empty_like(xp.ones((2, 3)), dtype=xp.int32).shape
    (2, 3)
    """
    cdef cuplug_tensor like = tensor_like("empty_like", x, dtype, device)
    return of_structures(empty_like_tensor(&like), descr_like("empty_like", x, dtype))


def full_like(x: Array, /, fill_value, *, dtype=None, device=None) -> Array:
    """Return an array like another one, of one value.

    Examples
    --------
    >>> print(xp.full_like(xp.asarray([1.0, 2.0]), 7))
    [7. 7.]
    """
    return written(empty_like(x, dtype=dtype, device=device), fill_value)


def ones_like(x: Array, /, *, dtype=None, device=None) -> Array:
    """Return an array like another one, of ones.

    Examples
    --------
    >>> print(xp.ones_like(xp.asarray([1.5, 2.5])))
    [1. 1.]
    """
    return written(empty_like(x, dtype=dtype, device=device), 1)


def zeros_like(x: Array, /, *, dtype=None, device=None) -> Array:
    """Return an array like another one, of zeros.

    Examples
    --------
    >>> print(xp.zeros_like(xp.asarray([1, 2])))
    [0 0]
    """
    cdef cuplug_tensor like = tensor_like("zeros_like", x, dtype, device)
    return cleared(&like, descr_like("zeros_like", x, dtype))


def single_like(Array x not None, value) -> Array:
    """Return an array without dimensions, with one value, and another one's dtype and device."""
    cdef cuplug_tensor like = x.tensor
    like.ndim, like.strides = 0, NULL
    return written(empty_like_tensor(&like), value)


def as_bytes(Array x not None, Array like=None) -> Array:
    """Return elements as unsigned integers of their size, or of the element size of `like`."""
    cdef cuplug_tensor seen = x.tensor
    if like is not None:
        seen.dtype = like.tensor.dtype
        return share_memory(&seen, x, like.dtype)
    seen.dtype.code, seen.dtype.bits = DLPACK_UINT, 8 * cuplug_element_bytes(&seen)
    seen.dtype.lanes = 1
    return share_memory(&seen, x)


def copied(Array x not None) -> Array:
    """Return a copy in C order."""
    cdef cuplug_tensor like = x.tensor
    if like.dtype.code == OPAQUE:  # no operator copies structures
        return to_array(x.numpy(), None, x.device, None)
    if kind_of(x.dtype) == "storage":
        return as_bytes(copied(as_bytes(x)), x)
    like.strides = NULL
    copy = empty_like_tensor(&like)
    return written(copy, x) if runs_with_gil(&like) else conversion(x.dtype, x.dtype)(x, out=copy)


cdef object dtype_of(object value):
    if isinstance(value, (bool, int, float, complex)):
        return to_dtype(type(value))
    if hasattr(value, "dtype"):
        return value.dtype
    raise TypeError(f"full: fill_value: got {type(value).__name__}, expected a number")


cdef Array filled(str function, object shape, object value, object dtype, object device):
    return written(new_array(function, shape, dtype, device), value)


cdef Array written(Array x, object value):
    write(x, value)
    return x


cdef object descr_like(str function, Array x, object dtype):
    return x.dtype if dtype is None else to_descr(function, dtype)


cdef Array cleared(cuplug_tensor *x, object descr):
    """On the host, memory from the system, whose new pages are zeros."""
    cdef Array result
    if is_on_gpu(x) and x.dtype.code != OPAQUE and kind_of(descr) == "storage":
        result = empty_like_tensor(x)
        write(as_bytes(result), 0)
        return result
    if x.dtype.code == OPAQUE or is_on_gpu(x):
        return written(of_structures(empty_like_tensor(x), descr), 0)
    return cleared_like_tensor(x)


cdef cuplug_tensor tensor_like(str function, object x, object dtype, object device) except *:
    """Without memory, in C order."""
    cdef cuplug_tensor like = (<Array>checked(function, "x", x)).tensor
    like.strides = NULL
    if dtype is not None:
        like.dtype = dtype_in_memory(to_descr(function, dtype))
        if not like.dtype.bits:
            raise TypeError(f"{function}: dtype: got {dtype}, expected a dtype of cuplug")
    if device is not None:
        like.device = place_for(function, device)
    return like
