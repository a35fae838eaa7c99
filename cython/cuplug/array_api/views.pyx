# SPDX-License-Identifier: Apache-2.0
"""Views of the same elements in other shapes; axes and shapes as arguments."""

from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.stdint cimport int64_t

from cuplug._engine.array.array cimport Array, share_memory
from cuplug._engine.array.buffer cimport is_contiguous, n_elements
from cuplug._engine.array.layout cimport contiguous_strides
from cuplug._engine.base.dlpack cimport DLPACK_FLOAT
from cuplug._engine.base.core cimport CUPLUG_MAX_NDIM, cuplug_element_bytes, cuplug_tensor
from cuplug._engine.base.numpy_dtypes cimport dtype_in_memory, to_descr

from collections.abc import Iterable
from operator import index

from numpy.exceptions import AxisError

from cuplug.array_api.dtypes import checked, integer

cdef extern from "Python.h":
    PyObject *PyTuple_GET_ITEM(tuple x, Py_ssize_t k)
    long long PyLong_AsLongLongAndOverflow(object x, int *overflow)


cdef int64_t MOST = 0x7FFFFFFFFFFFFFFF

# A view under construction: a tensor with memory for its shape and strides.
ctypedef struct layout:
    cuplug_tensor x
    int64_t shape[CUPLUG_MAX_NDIM]
    int64_t strides[CUPLUG_MAX_NDIM]


cdef Array start(layout *to, str function, object x):
    """As an array is, which is returned."""
    cdef Array own = x if type(x) is Array else checked(function, "x", x)
    cdef int k
    to.x = own.tensor
    to.x.shape, to.x.strides = to.shape, to.strides
    if own.tensor.strides == NULL:
        contiguous_strides(own.tensor.ndim, own.tensor.shape, to.strides)
    for k in range(own.tensor.ndim):
        to.shape[k] = own.tensor.shape[k]
        if own.tensor.strides != NULL:
            to.strides[k] = own.tensor.strides[k]
    return own


cdef int check_ndim(Py_ssize_t n) except -1:
    if n > CUPLUG_MAX_NDIM:
        raise ValueError(f"cuplug.Array: got {n} dimensions, expected at most 64")
    return <int>n


# ---- Axes and shapes -----------------------------------------------------------------------------


def axis_of(str name, axis, int ndim) -> int:
    """Return an axis counted from 0."""
    return axis_number(name, axis, ndim)


cdef int axis_number(str name, object axis, int ndim) except -1:
    if type(axis) is int and -ndim <= axis < ndim:
        return axis if axis >= 0 else axis + ndim
    k = integer(f"{name}: axis", axis)
    if not -ndim <= k < ndim:
        raise AxisError(f"{name}: axis: got {k}, expected {-ndim} <= axis < {ndim} (out of range)")
    return k if k >= 0 else k + ndim


def axes_of(str name, axes, int ndim) -> tuple[int, ...]:
    """Return axes counted from 0, without duplicates; all of them for None."""
    if axes is None:
        return tuple(range(ndim))
    many = isinstance(axes, (tuple, list, range))
    found = tuple([axis_number(name, axis, ndim) for axis in (axes if many else (axes,))])
    if len(set(found)) != len(found):
        raise ValueError(f"{name}: axis: got {axes}, expected each dimension once")
    return found


def shape_of(what: str, shape) -> tuple[int, ...]:
    """Return an argument that must be one or several integers."""
    if type(shape) is tuple and are_plain(shape):
        return shape
    try:
        sizes = tuple(map(index, shape if isinstance(shape, Iterable) else (shape,)))
    except TypeError:
        wanted = "an integer or a sequence of them"
        raise TypeError(f"{what}: got {shape!r:.60}, expected {wanted}") from None
    return tuple([integer(what, n) for n in sizes])


cdef bint are_plain(tuple numbers) noexcept:
    """Return whether all are Python integers of 64 bits."""
    cdef Py_ssize_t k
    cdef int overflow = 0
    for k in range(PyTuple_GET_SIZE(numbers)):
        number = <object>PyTuple_GET_ITEM(numbers, k)
        if type(number) is not int:
            return False
        PyLong_AsLongLongAndOverflow(number, &overflow)
        if overflow:
            return False
    return True


# ---- Views ---------------------------------------------------------------------------------------


def permute_dims(x: Array, /, axes) -> Array:
    """Return a view with the dimensions in another order.

    Examples
    --------
    >>> xp.permute_dims(xp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    cdef layout given, to
    cdef Array own = start(&given, "permute_dims", x)
    cdef int k, at, n = given.x.ndim
    cdef tuple order = axes_of("permute_dims", shape_of("permute_dims: axes", axes), n)
    if PyTuple_GET_SIZE(order) != n:
        raise ValueError(f"permute_dims: axes: got {axes}, expected all of {n} dimensions")
    to.x = given.x
    to.x.shape, to.x.strides = to.shape, to.strides
    for k in range(n):
        at = <object>PyTuple_GET_ITEM(order, k)
        to.shape[k], to.strides[k] = given.shape[at], given.strides[at]
    return share_memory(&to.x, own, own.dtype)


def matrix_transpose(x: Array, /) -> Array:
    """Return a view with the last two dimensions exchanged.

    Examples
    --------
    >>> xp.matrix_transpose(xp.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    cdef layout to
    cdef Array own = start(&to, "matrix_transpose", x)
    cdef int n = to.x.ndim
    if n < 2:
        raise ValueError(f"matrix_transpose: x: got {n} dimensions, expected at least 2")
    to.shape[n - 1], to.shape[n - 2] = to.shape[n - 2], to.shape[n - 1]
    to.strides[n - 1], to.strides[n - 2] = to.strides[n - 2], to.strides[n - 1]
    return share_memory(&to.x, own, own.dtype)


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """Return the diagonals of matrices, as a view.

    Parameters
    ----------
    x : Array, shape (..., m, n)
    offset : int, default 0
        Above 0 for diagonals above the main one.

    Examples
    --------
    >>> print(xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]])))
    [1 4]
    """
    cdef layout to
    cdef Array own = start(&to, "diagonal", x)
    cdef int n = to.x.ndim
    cdef int64_t n_bytes = cuplug_element_bytes(&to.x), row, column
    cdef object given = integer("diagonal: offset", offset)
    if n < 2:
        raise ValueError(f"diagonal: x: got {n} dimensions, expected at least 2")
    row = min(max(-given, 0), to.shape[n - 2])
    column = min(max(given, 0), to.shape[n - 1])
    to.shape[n - 2] = min(to.shape[n - 2] - row, to.shape[n - 1] - column)
    if to.shape[n - 2]:
        row, column = row * to.strides[n - 2], column * to.strides[n - 1]
        to.x.data = <char *>to.x.data + (row + column) * n_bytes
    to.strides[n - 2] += to.strides[n - 1]
    to.x.ndim = n - 1
    return share_memory(&to.x, own, own.dtype)


def expand_dims(x: Array, /, axis: int | tuple[int, ...] = 0) -> Array:
    """Return a view with an additional dimension of size 1, or with one for each of several axes.

    Examples
    --------
    >>> xp.expand_dims(xp.ones((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    cdef layout to
    cdef Array own = start(&to, "expand_dims", x)
    if isinstance(axis, (tuple, list)):
        for each in sorted(axes_of("expand_dims", axis, to.x.ndim + len(axis))):
            x = expand_dims(x, each)
        return x
    cdef int k, n = check_ndim(to.x.ndim + 1), at = axis_number("expand_dims", axis, n)
    for k in range(n - 1, at, -1):
        to.shape[k], to.strides[k] = to.shape[k - 1], to.strides[k - 1]
    to.shape[at], to.strides[at] = 1, 0
    to.x.ndim = n
    return share_memory(&to.x, own, own.dtype)


def squeeze(x: Array, /, axis) -> Array:
    """Return a view without dimensions of size 1.

    Examples
    --------
    >>> xp.squeeze(xp.ones((2, 1, 3)), 1).shape
    (2, 3)
    """
    cdef layout to
    cdef Array own = start(&to, "squeeze", x)
    cdef int k, n = 0
    cdef tuple gone = axes_of("squeeze", axis, to.x.ndim)
    for k in gone:
        if to.shape[k] != 1:
            raise ValueError(f"squeeze: axis: got {k} of size {to.shape[k]}, expected size 1")
    for k in range(to.x.ndim):
        if k not in gone:
            to.shape[n], to.strides[n] = to.shape[k], to.strides[k]
            n += 1
    to.x.ndim = n
    return share_memory(&to.x, own, own.dtype)


def flip(x: Array, /, *, axis=None) -> Array:
    """Return a view with elements along dimensions in reverse.

    Examples
    --------
    >>> print(xp.flip(xp.asarray([1, 2, 3])))
    [3 2 1]
    """
    cdef layout to
    cdef Array own = start(&to, "flip", x)
    cdef int64_t n_bytes = cuplug_element_bytes(&to.x)
    cdef int k
    for k in axes_of("flip", axis, to.x.ndim):
        if to.shape[k] > 1:
            to.x.data = <char *>to.x.data + (to.shape[k] - 1) * to.strides[k] * n_bytes
            to.strides[k] = -to.strides[k]
    return share_memory(&to.x, own, own.dtype)


def part_of_complex(Array x not None, int number) -> Array:
    """Return the real parts (number 0) or imaginary parts (number 1) as a view."""
    cdef layout to
    cdef int k
    start(&to, "part", x)
    to.x.dtype.code, to.x.dtype.bits = DLPACK_FLOAT, to.x.dtype.bits // 2
    to.x.data = <char *>to.x.data + number * cuplug_element_bytes(&to.x)
    for k in range(to.x.ndim):
        to.strides[k] *= 2
    return share_memory(&to.x, x)


def viewed(Array x not None, dtype) -> Array:
    """Return the bytes of an array as elements of a dtype, along the last dimension."""
    cdef layout to
    cdef object descr = to_descr("view", dtype)
    cdef int64_t own = x.dtype.itemsize, size = descr.itemsize, bytes_of_last
    cdef int k, last
    start(&to, "view", x)
    to.x.dtype, last = dtype_in_memory(descr), to.x.ndim - 1
    if not to.x.dtype.bits:
        raise TypeError(f"view: dtype: got {descr}, expected a dtype of cuplug")
    if <size_t>to.x.data % <size_t>descr.alignment:
        raise ValueError(f"view: got memory that is not aligned for {descr}, expected a copy of it")
    if own != size:
        if last < 0 or (to.strides[last] != 1 and to.shape[last] > 1):
            raise ValueError("view: got a last dimension with gaps, expected a contiguous one")
        bytes_of_last = to.shape[last] * own
        if bytes_of_last % size or any([to.strides[k] * own % size for k in range(last)]):
            raise ValueError(f"view: got lines of {bytes_of_last} bytes, expected ones of {descr}")
        for k in range(last):
            to.strides[k] = to.strides[k] * own // size
        to.shape[last], to.strides[last] = bytes_of_last // size, 1
    return share_memory(&to.x, x, descr)


def broadcast_to(x: Array, /, shape) -> Array:
    """Return a view in another shape, which repeats elements.

    Examples
    --------
    >>> print(xp.broadcast_to(xp.asarray(7), (3,)))
    [7 7 7]
    """
    cdef layout to
    cdef Array own = start(&to, "broadcast_to", x)
    cdef tuple wanted = shape_of("broadcast_to: shape", shape)
    cdef int k, n = check_ndim(PyTuple_GET_SIZE(wanted)), more = n - to.x.ndim
    cdef int64_t size
    cdef double n_bytes = cuplug_element_bytes(&to.x)
    cdef bint fits = more >= 0
    for k in range(n - 1, -1, -1):
        size = to.shape[k - more] if k >= more else 1
        to.strides[k] = 0 if size == 1 else to.strides[k - more]
        to.shape[k] = length_of(wanted, k)
        fits &= to.shape[k] >= 0 and (size == 1 or size == to.shape[k])
        n_bytes *= max(wanted[k], 1)
    if n_bytes >= 2.0**63:
        raise ValueError(f"broadcast_to: got shape {wanted}, expected less than 2^63 bytes")
    if not fits:
        raise ValueError(f"broadcast_to: shape: got {wanted}, expected one that {own.shape} fits")
    to.x.ndim = n
    return share_memory(&to.x, own, own.dtype)


cdef int64_t length_of(tuple shape, int k) except? -1:
    """Return a size; -1 if it is not a size."""
    length = <object>PyTuple_GET_ITEM(shape, k)
    return length if 0 <= length < 1 << 63 else -1


def reshape(x: Array, /, shape, *, copy: bool | None = None) -> Array:
    """Return the elements in C order in another shape, as a view if possible.

    Examples
    --------
    >>> xp.reshape(xp.arange(6), (2, -1)).shape
    (2, 3)
    """
    cdef layout to
    cdef Array source = start(&to, "reshape", x)
    cdef tuple wanted = shape_of("reshape: shape", shape)
    cdef int k
    to.x.ndim, to.x.strides = check_ndim(PyTuple_GET_SIZE(wanted)), NULL
    complete(source, wanted, to.shape)
    if copy or not is_contiguous(&source.tensor):
        steps = None if copy else reshaped_steps(source, [to.shape[k] for k in range(to.x.ndim)])
        if steps is None and copy is False:
            raise ValueError("reshape: copy: got False, expected None or True (no strides fit it)")
        if steps is None:
            source = source._spread(source.shape)
            to.x.data = source.tensor.data
        else:
            to.x.strides = to.strides
            for k in range(to.x.ndim):
                to.strides[k] = steps[k]
    return share_memory(&to.x, source, source.dtype)


def is_in_order(Array x not None) -> bool:
    """Return whether the elements are contiguous in C order."""
    return is_contiguous(&x.tensor)


cdef int complete(Array x, tuple wanted, int64_t *shape) except -1:
    """Set the sizes of a shape, in which one may be -1."""
    cdef int64_t size = n_elements(&x.tensor), known = 1
    cdef int k, at = -1, n_open = 0
    cdef bint fits = True
    for k in range(<int>PyTuple_GET_SIZE(wanted)):
        shape[k] = length_of(wanted, k)
        if shape[k] < 0:
            fits &= <object>PyTuple_GET_ITEM(wanted, k) == -1
            at = k
            n_open += 1
        else:
            known = MOST if shape[k] and known > MOST // shape[k] else known * shape[k]
    if n_open == 1 and fits and known and not size % known:
        shape[at] = size // known
    elif n_open or known != size:
        raise ValueError(f"reshape: shape: got {wanted}, expected {size} elements as in {x.shape}")
    return 0


cdef list reshaped_steps(Array x, list shape):
    """Return the strides of a view in another shape; None if no view has this shape."""
    cdef int64_t n, s, size, step, left
    cdef list runs = [], steps = []  # of consecutive dimensions: size and step
    cdef layout own
    start(&own, "reshape", x)
    for k in range(own.x.ndim):
        n, s = own.shape[k], own.strides[k]
        if n != 1 and runs and runs[-1][1] == n * s:
            runs[-1] = (runs[-1][0] * n, s)
        elif n != 1:
            runs.append((n, s))
    size, step = runs.pop() if runs else (1, 1)
    left = size
    for n in reversed(shape):
        if left == 1 and n != 1:
            if not runs:
                return None
            left, step = runs.pop()
        if left % n:
            return None
        steps.append(step)
        step, left = step * n, left // n
    steps.reverse()
    return steps
