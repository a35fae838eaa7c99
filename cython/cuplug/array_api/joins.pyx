# SPDX-License-Identifier: Apache-2.0
"""Arrays put together, and repeated."""

from libc.stdint cimport int64_t

from cuplug.array.array cimport Array, empty_like_tensor, share_memory, write
from cuplug.array.copies cimport copy_brief, is_brief
from cuplug.array.layout cimport contiguous_strides
from cuplug.base.core cimport CUPLUG_MAX_NDIM, cuplug_element_bytes, cuplug_tensor
from cuplug.base.numpy_dtypes cimport dtype_in_memory

from cuplug.array_api.dtypes import checked, name_of, result_type, sequence
from cuplug.array_api.views import axis_of, expand_dims, reshape, shape_of

cdef enum:
    FEW = 4  # repeats


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


def tile(x, repetitions, /):
    """Return an array repeated along each dimension."""
    cdef wide_view to
    cdef Array own = checked("tile", "x", x)
    cdef tuple times = shape_of("tile: repetitions", repetitions)
    cdef int k, more, n = max(len(times), own.tensor.ndim)
    if not all([0 <= t < 1 << 63 for t in times]):
        raise ValueError(f"tile: repetitions: seen {times!s:.60}, wanted 0 to 2**63 - 1")
    start_wide(&to, own, 2 * n)
    more = n - own.tensor.ndim
    for k in range(n):
        to.shape[2 * k] = times[k - n + len(times)] if k >= n - len(times) else 1
        to.strides[2 * k] = 0
        to.shape[2 * k + 1] = own.tensor.shape[k - more] if k >= more else 1
        to.strides[2 * k + 1] = to.own_strides[k - more] if k >= more else 0
    check_bytes("tile", &to)
    for k in range(n):
        to.whole[k] = to.shape[2 * k] * to.shape[2 * k + 1]
    return copy_wide(&to, own, n)


def repeated(Array x not None, times, int along):
    """Return an array with each part along a dimension several times, one after the other."""
    cdef wide_view to
    cdef int k, n = x.tensor.ndim
    if not 0 <= times < 1 << 63:
        raise ValueError(f"repeat: repeats: seen {times!s:.60}, wanted 0 to 2**63 - 1")
    start_wide(&to, x, n + 1)
    for k in range(n + 1):
        to.shape[k] = times if k == along + 1 else x.tensor.shape[k - (k > along)]
        to.strides[k] = 0 if k == along + 1 else to.own_strides[k - (k > along)]
    check_bytes("repeat", &to)
    for k in range(n):
        to.whole[k] = x.tensor.shape[k] * (times if k == along else 1)
    if 0 < times <= FEW and not is_brief(&to.x):  # operators take longer for as short rows
        return reshape(stack([x] * times, axis=along + 1), tuple([to.whole[k] for k in range(n)]))
    return copy_wide(&to, x, n)


# A view that repeats elements, and the shape of a copy, whose dimensions are several of its own.
ctypedef struct wide_view:
    cuplug_tensor x
    int64_t shape[CUPLUG_MAX_NDIM]
    int64_t strides[CUPLUG_MAX_NDIM]
    int64_t own_strides[CUPLUG_MAX_NDIM]
    int64_t whole[CUPLUG_MAX_NDIM]


cdef int start_wide(wide_view *to, Array own, int ndim) except -1:
    cdef int k
    name_of(own.dtype)  # refuses structures
    if ndim > CUPLUG_MAX_NDIM:
        raise ValueError(f"cuplug.Array: seen {ndim} dimensions, wanted at most 64")
    to.x = own.tensor
    to.x.ndim, to.x.shape, to.x.strides = ndim, to.shape, to.strides
    contiguous_strides(own.tensor.ndim, own.tensor.shape, to.own_strides)
    for k in range(own.tensor.ndim if own.tensor.strides != NULL else 0):
        to.own_strides[k] = own.tensor.strides[k]
    return 0


cdef int check_bytes(str name, const wide_view *to) except -1:
    cdef double n_bytes = cuplug_element_bytes(&to.x)
    cdef int k
    for k in range(to.x.ndim):
        n_bytes *= max(to.shape[k], 1)
    if n_bytes >= 2.0**63:
        raise ValueError(f"{name}: seen {n_bytes:.3g} bytes, wanted less than 2^63")
    return 0


cdef Array copy_wide(wide_view *to, Array own, int ndim):
    cdef cuplug_tensor target = to.x
    cdef Array result
    target.ndim, target.shape, target.strides = ndim, to.whole, NULL
    result = empty_like_tensor(&target)
    target.ndim, target.shape = to.x.ndim, to.shape
    if not copy_brief(&target, &to.x):
        write(share_memory(&target, result, own.dtype), share_memory(&to.x, own, own.dtype))
    return result
