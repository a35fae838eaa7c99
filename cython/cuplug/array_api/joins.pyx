# SPDX-License-Identifier: Apache-2.0
"""Arrays put together."""

from libc.stdint cimport int64_t

from cuplug.array.array cimport Array, empty_like_tensor, share_memory, write
from cuplug.array.copies cimport copy_brief
from cuplug.array.layout cimport contiguous_strides
from cuplug.base.core cimport CUPLUG_MAX_NDIM, cuplug_element_bytes, cuplug_tensor
from cuplug.base.numpy_dtypes cimport dtype_in_memory

from cuplug.array_api.dtypes import checked, result_type, sequence
from cuplug.array_api.views import axis_of, expand_dims, reshape


def concat(arrays, /, *, axis=0):
    """Return arrays one behind the other along a dimension; with None, all elements."""
    cdef list given = arrays_of("concat", arrays)
    if not given:
        raise ValueError("concat: arrays: seen none, wanted at least one")
    if axis is None:
        return joined([reshape(x, (-1,)) for x in given], 0)
    return joined(given, axis_of("concat", axis, (<Array>given[0]).tensor.ndim))


def stack(arrays, /, *, axis=0):
    """Return arrays beside each other along a new dimension."""
    given = [expand_dims(x, axis=axis) for x in arrays_of("stack", arrays)]
    return concat(given, axis=axis)


cdef list arrays_of(str name, object arrays):
    given = sequence(f"{name}: arrays", arrays, "a sequence of cuplug.Array")
    return [checked(name, "arrays", x) for x in given]


cdef Array joined(list arrays, int along):
    cdef int64_t shape[CUPLUG_MAX_NDIM]
    cdef int64_t strides[CUPLUG_MAX_NDIM]
    cdef Array x, first = arrays[0], result
    cdef cuplug_tensor part = first.tensor
    cdef int k
    dtype = first.dtype
    part.shape = shape
    for k in range(part.ndim):
        shape[k] = first.tensor.shape[k]
    shape[along] = 0
    for x in arrays:
        check_fit(&first.tensor, x, along)
        shape[along] += x.tensor.shape[along]
        dtype = dtype if x.dtype is dtype else result_type(*arrays)
    part.dtype = dtype_in_memory(dtype)
    result = empty_like_tensor(&part)
    contiguous_strides(part.ndim, shape, strides)
    part.strides, part.byte_offset = strides, 0
    for x in arrays:
        shape[along] = x.tensor.shape[along]
        if not copy_brief(&part, &x.tensor):
            write(share_memory(&part, result, dtype), x)
        part.data = <char *>part.data + shape[along] * strides[along] * cuplug_element_bytes(&part)
    return result


cdef int check_fit(const cuplug_tensor *first, Array x, int along) except -1:
    """All sizes but those along the dimension must be the same."""
    cdef int k
    cdef bint fits = x.tensor.ndim == first.ndim
    for k in range(first.ndim if fits else 0):
        fits &= k == along or x.tensor.shape[k] == first.shape[k]
    if not fits:
        seen = tuple([first.shape[k] for k in range(first.ndim)])
        raise ValueError(f"concat: arrays: seen shapes {seen} and {x.shape}, which differ")
    return 0
