# SPDX-License-Identifier: Apache-2.0
"""Concatenated and repeated arrays."""

from libc.stdint cimport int64_t

from cuplug._engine.array.array cimport Array, empty_like_tensor, share_memory, write
from cuplug._engine.array.buffer cimport is_on_gpu, n_elements
from cuplug._engine.array.copies cimport copy_small
from cuplug._engine.array.layout cimport contiguous_strides
from cuplug._engine.base.core cimport CUPLUG_MAX_NDIM, cuplug_element_bytes, cuplug_tensor
from cuplug._engine.base.numpy_dtypes cimport OPAQUE, dtype_in_memory

from cuplug._engine.array.promotion import name_of
from cuplug.array_api.dtypes import checked, integer, result_type, sequence
from cuplug.array_api.filled import copied
from cuplug.array_api.functions import stock
from cuplug.array_api.views import axis_of, expand_dims, reshape, shape_of

cdef enum:
    MOST = 4  # parts in one call of the operator
    SHORT_BYTES = 1 << 14  # of a row; on the host, copies of longer ones take the same time
    INLINE_CALL_BYTES = 1 << 15  # smaller arrays take less time than calling an operator


def concat(arrays, /, *, axis: int | None = 0) -> Array:
    """Join arrays along an existing dimension; with None, join all elements.

    Examples
    --------
    >>> print(xp.concat([xp.asarray([1, 2]), xp.asarray([3])]))
    [1 2 3]
    """
    cdef list given = arrays_of("concat", arrays)
    if not given:
        raise ValueError("concat: arrays: got none, expected at least one")
    if axis is None:
        return joined([reshape(x, (-1,)) for x in given], 0)
    return joined(given, axis_of("concat", axis, (<Array>given[0]).tensor.ndim))


def stack(arrays, /, *, axis: int = 0) -> Array:
    """Join arrays along a new dimension.

    Examples
    --------
    >>> print(xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])], axis=1))
    [[1 3]
     [2 4]]
    """
    cdef list given = [expand_dims(x, axis=axis) for x in arrays_of("stack", arrays)]
    return concat(given, axis=axis)


def roll(x: Array, /, shift, *, axis=None) -> Array:
    """Return elements moved along dimensions. Elements moved over one end enter at the other.

    Examples
    --------
    >>> print(xp.roll(xp.asarray([1, 2, 3]), 1))
    [3 1 2]
    """
    cdef Array given = x if type(x) is Array else checked("roll", "x", x)
    if axis is None and given.tensor.ndim != 1:
        return reshape(roll(reshape(given, (-1,)), shift, axis=0), given.shape)
    axis = 0 if axis is None else axis
    if not isinstance(axis, tuple) and not isinstance(shift, tuple):
        return rolled(given, shift, axis)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: shift: got {len(shifts)} numbers, expected {len(axes)}, as axes")
    moved = given
    for shift, axis in zip(shifts, axes):
        moved = rolled(moved, shift, axis)
    return copied(given) if moved is given else moved


cdef Array rolled(Array x, object shift, object axis):
    cdef int along = axis_of("roll", axis, x.tensor.ndim)
    cdef int64_t size = x.tensor.shape[along], at = 0
    by = integer("roll: shift", shift)
    if size:
        at = -by % size
    before = (slice(None),) * along
    return joined([x[(*before, slice(at, size))], x[(*before, slice(0, at))]], along)


cdef void copy_layout(const cuplug_tensor *x, int64_t *shape, int64_t *strides) noexcept:
    cdef int k
    if x.strides == NULL:
        contiguous_strides(x.ndim, x.shape, strides)
    for k in range(x.ndim):
        shape[k] = x.shape[k]
        if x.strides != NULL:
            strides[k] = x.strides[k]


cdef list arrays_of(str name, object arrays):
    given = arrays
    if type(given) is not list and type(given) is not tuple:
        given = sequence(f"{name}: arrays", arrays, "a sequence of cuplug.Array")
    return [x if type(x) is Array else checked(name, "arrays", x) for x in given]


cdef Array joined(list arrays, int along):
    cdef int64_t shape[CUPLUG_MAX_NDIM]
    cdef Array x, rows, first = arrays[0]
    cdef cuplug_tensor whole = first.tensor
    cdef bint is_alike = True
    cdef int k
    dtype = first.dtype
    whole.shape, whole.strides = shape, NULL
    for k in range(whole.ndim):
        shape[k] = first.tensor.shape[k]
    shape[along] = 0
    for x in arrays:
        check_fit(&first.tensor, x, along)
        shape[along] += x.tensor.shape[along]
        is_alike &= x.dtype is dtype and is_beside(&first.tensor, &x.tensor)
        dtype = dtype if x.dtype is dtype else result_type(*arrays)
    if is_alike and wants_operator(&whole, along, len(arrays)):
        rows = joined_rows(arrays, along)
        if rows is not None:
            return shaped(rows, &whole)
    whole.dtype = dtype_in_memory(dtype)
    return written(arrays, along, &whole, dtype)


cdef Array written(list arrays, int along, cuplug_tensor *whole, object dtype):
    """Arrays that are written consecutively."""
    cdef int64_t shape[CUPLUG_MAX_NDIM]
    cdef int64_t strides[CUPLUG_MAX_NDIM]
    cdef Array x, result = empty_like_tensor(whole)
    cdef cuplug_tensor part = whole[0]
    copy_layout(whole, shape, strides)
    part.shape, part.strides, part.byte_offset = shape, strides, 0
    for x in arrays:
        shape[along] = x.tensor.shape[along]
        if not copy_small(&part, &x.tensor):
            write(share_memory(&part, result, dtype), x)
        part.data = <char *>part.data + shape[along] * strides[along] * cuplug_element_bytes(&part)
    return result


cdef bint is_beside(const cuplug_tensor *x, const cuplug_tensor *y) noexcept:
    """Return whether two arrays are on one device."""
    return x.device.type == y.device.type and x.device.id == y.device.id


# ---- By one operator: all elements are written once, in order ------------------------------------


cdef bint wants_operator(const cuplug_tensor *whole, int along, Py_ssize_t n_parts) noexcept:
    """Return whether one operator concatenates: on a GPU, or on the host if rows are short."""
    cdef int64_t size = 1
    cdef int k
    if not 1 < n_parts <= MOST or whole.dtype.code == OPAQUE:
        return False
    if is_on_gpu(whole):
        return True
    for k in range(along, whole.ndim):
        size *= whole.shape[k]
    size *= cuplug_element_bytes(whole)
    return size <= SHORT_BYTES and is_worth(whole)


cdef bint is_worth(const cuplug_tensor *x) noexcept:
    """Return whether an array on the host is large enough for an operator call."""
    return n_elements(x) * cuplug_element_bytes(x) > INLINE_CALL_BYTES


cdef Array joined_rows(list arrays, int along):
    """Return the concatenated rows of arrays from a dimension on; None without strides."""
    cdef list views = [rows_of(x, along) for x in arrays]
    for view in views:
        if view is None:
            return None
    return stock("indexing.join")(*views)


cdef Array rows_of(Array x, int along):
    """Merge the dimensions before one, and those from it on; None if no strides describe these."""
    cdef int64_t shape[2]
    cdef int64_t strides[2]
    cdef cuplug_tensor rows = x.tensor
    rows.ndim, rows.shape, rows.strides = 2, shape, strides
    if not merge(&x.tensor, 0, along, &shape[0], &strides[0]):
        return None
    if not merge(&x.tensor, along, x.tensor.ndim, &shape[1], &strides[1]):
        return None
    if x.tensor.strides == NULL:
        rows.strides = NULL
    return share_memory(&rows, x, x.dtype)


cdef bint merge(
    const cuplug_tensor *x, int first, int last, int64_t *size, int64_t *stride
) noexcept:
    """Merge dimensions. Returns False if no strides describe the result."""
    cdef int k
    size[0] = stride[0] = 1
    for k in range(last - 1, first - 1, -1):
        if x.strides != NULL and x.shape[k] != 1:
            if size[0] != 1 and x.strides[k] != stride[0] * size[0]:
                return False
            if size[0] == 1:
                stride[0] = x.strides[k]
        size[0] *= x.shape[k]
    return True


cdef Array shaped(Array rows, const cuplug_tensor *whole):
    """Return the elements of a new array in the shape of another one."""
    cdef cuplug_tensor to = whole[0]
    to.device, to.data, to.strides, to.byte_offset = rows.tensor.device, rows.tensor.data, NULL, 0
    return share_memory(&to, rows, rows.dtype)


cdef int check_fit(const cuplug_tensor *first, Array x, int along) except -1:
    """Check that all sizes except those along the dimension are the same."""
    cdef int k
    cdef bint fits = x.tensor.ndim == first.ndim
    for k in range(first.ndim if fits else 0):
        fits &= k == along or x.tensor.shape[k] == first.shape[k]
    if not fits:
        seen = tuple([first.shape[k] for k in range(first.ndim)])
        raise ValueError(
            f"concat: arrays: got shapes {seen} and {x.shape}, expected equal sizes but along axis"
        )
    return 0


def tile(x: Array, repetitions, /) -> Array:
    """Return an array repeated along each dimension.

    Examples
    --------
    >>> print(xp.tile(xp.asarray([1, 2]), (2,)))
    [1 2 1 2]
    """
    cdef wide_view to
    cdef Array own = checked("tile", "x", x)
    cdef tuple times = shape_of("tile: repetitions", repetitions)
    cdef int k, more, n = max(len(times), own.tensor.ndim)
    if not all([0 <= t < 1 << 63 for t in times]):
        raise ValueError(f"tile: repetitions: got {times!s:.60}, expected 0 to 2**63 - 1")
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


def repeated(Array x not None, times: int, int along) -> Array:
    """Return an array with each part along a dimension repeated consecutively."""
    cdef wide_view to
    cdef Array rows
    cdef int64_t size = cuplug_element_bytes(&x.tensor)
    cdef int k, n = x.tensor.ndim
    if not 0 <= times < 1 << 63:
        raise ValueError(f"repeat: repeats: got {times!s:.60}, expected 0 to 2**63 - 1")
    start_wide(&to, x, n + 1)
    for k in range(n + 1):
        to.shape[k] = times if k == along + 1 else x.tensor.shape[k - (k > along)]
        to.strides[k] = 0 if k == along + 1 else to.own_strides[k - (k > along)]
    check_bytes("repeat", &to)
    for k in range(n):
        to.whole[k] = x.tensor.shape[k] * (times if k == along else 1)
        size *= x.tensor.shape[k] if k > along else 1
    if is_on_gpu(&x.tensor) or (size <= SHORT_BYTES and is_worth(&to.x)):
        rows = rows_of(x, along + 1)
        if rows is not None:
            to.x.ndim, to.x.shape = n, to.whole
            return shaped(stock("indexing.repeat")(rows, times), &to.x)
    return copy_wide(&to, x, n)


# Return a view that repeats elements, and the shape of its copy with merged dimensions.
ctypedef struct wide_view:
    cuplug_tensor x
    int64_t shape[CUPLUG_MAX_NDIM]
    int64_t strides[CUPLUG_MAX_NDIM]
    int64_t own_strides[CUPLUG_MAX_NDIM]
    int64_t whole[CUPLUG_MAX_NDIM]


cdef int start_wide(wide_view *to, Array own, int ndim) except -1:
    name_of(own.dtype)  # rejects structures
    if ndim > CUPLUG_MAX_NDIM:
        raise ValueError(f"cuplug.Array: got {ndim} dimensions, expected at most 64")
    to.x = own.tensor
    to.x.ndim, to.x.shape, to.x.strides = ndim, to.shape, to.strides
    copy_layout(&own.tensor, to.whole, to.own_strides)
    return 0


cdef int check_bytes(str name, const wide_view *to) except -1:
    cdef double n_bytes = cuplug_element_bytes(&to.x)
    cdef int k
    for k in range(to.x.ndim):
        n_bytes *= max(to.shape[k], 1)
    if n_bytes >= 2.0**63:
        raise ValueError(f"{name}: got {n_bytes:.3g} bytes, expected less than 2^63")
    return 0


cdef Array copy_wide(wide_view *to, Array own, int ndim):
    cdef cuplug_tensor target = to.x
    cdef Array result
    target.ndim, target.shape, target.strides = ndim, to.whole, NULL
    result = empty_like_tensor(&target)
    target.ndim, target.shape = to.x.ndim, to.shape
    if not copy_small(&target, &to.x):
        write(share_memory(&target, result, own.dtype), share_memory(&to.x, own, own.dtype))
    return result
