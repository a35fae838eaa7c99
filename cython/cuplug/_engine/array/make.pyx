# SPDX-License-Identifier: Apache-2.0
"""New arrays: uninitialized, of host values, or of a pointer."""

from collections.abc import Iterable
from operator import index

from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.stdint cimport int64_t, uintptr_t

from cuplug._engine.array.array cimport Array, empty_like_tensor, share_memory
from cuplug._engine.array.buffer cimport is_on_gpu
from cuplug._engine.array.copies cimport take_numpy
from cuplug._engine.base.core cimport CUPLUG_MAX_NDIM, cuplug_device, cuplug_tensor
from cuplug._engine.base.numpy_api cimport (
    NPY_ARRAY_WRITEABLE,
    PyArray_DATA,
    PyArray_DIMS,
    PyArray_FLAGS,
    PyArray_NDIM,
    PyArray_STRIDES,
    PyArrayObject,
)
from cuplug._engine.base.numpy_dtypes cimport OPAQUE, dtype_in_memory, to_descr
from cuplug._engine.cuda.placement cimport parse_device, where_arrays_go

import numpy

from cuplug._engine.base.public import public

cdef extern from "Python.h":
    PyObject *PyTuple_GET_ITEM(tuple x, Py_ssize_t k)
    long long PyLong_AsLongLongAndOverflow(object x, int *overflow)


@public
def empty(shape: int | Sequence[int], dtype=None, device=None) -> Array:
    """Make an array with uninitialized elements.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : str or numpy.dtype, optional
        The default is float64. Array API names; `bfloat16` and `float8_e4m3fn` need the package
        ml_dtypes. Structured dtypes are for kernels: no operator takes them. The elements have the
        byte order of the machine, also if `dtype` has another one.
    device : str, int or Device, optional
        "cpu", "cuda", "cuda:1", a GPU's number, or a device object. The default is the device of
        `cuplug.Device` or CUPLUG_DEVICE, otherwise the first GPU, or the host if no GPU is
        available.

    Returns
    -------
    Array

    Raises
    ------
    ValueError, TypeError
        If a size is negative, or the dtype or device is unknown.
    MemoryError, CudaError
        If the device's memory is exhausted, or the GPU does not exist.

    Examples
    --------
    >>> cuplug.empty((2, 3), "float32", device="cpu").shape
    (2, 3)
    """
    return new_array("empty", shape, dtype, device)


cdef Array new_array(str function, object shape, object dtype, object device):
    cdef int64_t sizes[CUPLUG_MAX_NDIM]
    cdef cuplug_tensor x
    descr = describe(function, shape, "float64" if dtype is None else dtype, sizes, &x)
    x.device = place_for(function, device)
    return of_structures(empty_like_tensor(&x), descr)


@public
def from_pointer(
    pointer: int, shape: int | Sequence[int], dtype, device="cuda", owner=None
) -> Array:
    """Wrap existing memory in an array without a copy.

    Parameters
    ----------
    pointer : int
        The address of the first element, aligned for its dtype.
    shape, dtype, device
        As for `empty`; the elements are in C order.
    owner : object, optional
        An object that the array keeps alive, so that the memory stays valid.

    Returns
    -------
    Array
        The memory is not checked: a wrong address ends the process.

    Examples
    --------
    >>> x = numpy.arange(3.0)
    >>> cuplug.from_pointer(x.ctypes.data, x.shape, x.dtype, "cpu", owner=x).numpy()
    array([0., 1., 2.])
    """
    cdef int64_t sizes[CUPLUG_MAX_NDIM]
    cdef cuplug_tensor x
    descr = describe("from_pointer", shape, dtype, sizes, &x)
    x.device = place_for("from_pointer", device)
    if not 0 <= index(pointer) < 1 << 64:
        raise ValueError(f"from_pointer: pointer: got {pointer}, expected an address")
    x.data = <void *><uintptr_t>index(pointer)
    if <uintptr_t>x.data % descr.alignment:
        raise ValueError(
            f"from_pointer: pointer: got {pointer:#x}, expected a multiple of {descr.alignment}"
        )
    return of_structures(share_memory(&x, owner), descr)


cdef Array of_structures(Array x, object descr):
    """Return the dtype with the fields that the caller requested, for structures."""
    if x.tensor.dtype.code == OPAQUE:
        x.dtype = descr
    return x


cdef object describe(
    str function, object shape, object dtype, int64_t *sizes, cuplug_tensor *x
):
    cdef int k
    descr = to_descr(function, dtype)
    x.ndim = read_shape(function, shape, sizes)
    x.shape, x.strides, x.data, x.byte_offset = sizes, NULL, NULL, 0
    x.dtype = dtype_in_memory(descr)
    if not x.dtype.bits:
        raise TypeError(f"{function}: dtype: got {dtype}, expected a dtype of cuplug")
    cdef double n_bits = x.dtype.bits * x.dtype.lanes
    for k in range(x.ndim):
        n_bits *= sizes[k] if sizes[k] else 1  # as NumPy, which ignores sizes of 0
    if n_bits >= 2.0**66:
        seen = parse_shape(function, shape)
        raise ValueError(f"{function}: shape: got {seen}, expected less than 2^63 bytes")
    return descr


cdef int read_shape(str function, object shape, int64_t *sizes) except -1:
    """Set the sizes that a caller requests. Returns their number."""
    cdef Py_ssize_t k, n
    cdef int64_t bits = 0
    cdef tuple lengths
    if type(shape) is int:
        shape = (shape,)
    lengths = shape if type(shape) is tuple else parse_shape(function, shape)
    n = PyTuple_GET_SIZE(lengths)
    for k in range(n if n <= CUPLUG_MAX_NDIM else 0):
        sizes[k] = size_of(<object>PyTuple_GET_ITEM(lengths, k))
        bits |= sizes[k]
    if bits < 0 or n > CUPLUG_MAX_NDIM:
        lengths = parse_shape(function, shape)
        n = PyTuple_GET_SIZE(lengths)
        for k in range(n):
            sizes[k] = lengths[k]
    return <int>n


cdef inline int64_t size_of(object length) noexcept:
    """Return a size that is a plain number; -1 if `parse_shape` must report it."""
    cdef int overflow = 0
    return PyLong_AsLongLongAndOverflow(length, &overflow) if type(length) is int else -1


cdef tuple parse_shape(str function, object shape):
    try:
        is_one = type(shape) is int or not isinstance(shape, (tuple, Iterable))
        lengths = tuple(map(index, (shape,) if is_one else shape))
    except TypeError:
        wanted = "an int or a sequence of them"
        raise TypeError(f"{function}: shape: got {shape!r}, expected {wanted}") from None
    if len(lengths) > CUPLUG_MAX_NDIM:
        raise ValueError(f"{function}: shape: got {len(lengths)} dimensions, expected at most 64")
    if not all([0 <= length < 1 << 63 for length in lengths]):
        wanted = "sizes of at least 0, below 2^63"
        is_long = any([length >> 64 for length in lengths if length > 0])
        seen = "an integer beyond 64 bits" if is_long else lengths
        raise ValueError(f"{function}: shape: got {seen}, expected {wanted}")
    return lengths


cdef cuplug_device place_for(str function, object device) except *:
    return where_arrays_go() if device is None else parse_device(function, device)


cdef Array from_numpy(object host, cuplug_device place, bint is_copied):
    cdef int64_t strides[CUPLUG_MAX_NDIM]
    cdef PyArrayObject *array = <PyArrayObject *>host
    cdef Array result
    cdef cuplug_tensor x
    cdef int k
    x.device = place
    x.ndim = PyArray_NDIM(array)
    x.shape = <int64_t *>PyArray_DIMS(array)
    x.dtype = dtype_in_memory(host.dtype)
    x.byte_offset = 0
    if not (is_copied or is_on_gpu(&x)):
        for k in range(x.ndim):
            strides[k] = PyArray_STRIDES(array)[k] // <int64_t>host.itemsize
        x.strides, x.data = strides, PyArray_DATA(array)
        result = share_memory(&x, source_of(host), host.dtype)
        result.is_read_only = not PyArray_FLAGS(array) & NPY_ARRAY_WRITEABLE
        return result
    result = of_structures(empty_like_tensor(&x), host.dtype)
    take_numpy(result, host, None)
    return result


cdef object source_of(object host):
    """Return the Array whose memory a NumPy array shares; otherwise the array."""
    source = host.base
    if type(source) is memoryview:
        source = source.obj
        source = source.base if type(source) is numpy.ndarray else None
    return source if type(source) is Array else host
