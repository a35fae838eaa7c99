# SPDX-License-Identifier: Apache-2.0
"""cuplug's own arrays in GPU memory, for programs without an array library for GPUs."""

from collections.abc import Iterable
from operator import index

cimport cython
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int32_t, int64_t, uint64_t

from cuplug.base.capsules cimport export
from cuplug.base.numpy_dtypes cimport descr_of_dtype, dtype_of_descr
from cuplug.base.core cimport (
    CUPLUG_CUDA,
    CUPLUG_MAX_NDIM,
    cuplug_device,
    cuplug_tensor,
)
from cuplug.host.blocks cimport empty_array, is_large
from cuplug.base.numpy_api cimport PyArray_DATA, PyArray_DIMS, PyArray_NDIM, PyArrayObject
from cuplug.host.progress cimport copy_watched
from cuplug.cuda.memory cimport allocate
from cuplug.cuda.placement cimport note_use, parse_gpu
from cuplug.cuda.streams cimport order_streams, parse_stream, refuse_capture

import numpy

from cuplug.base.dtypes import DTYPES
from cuplug.base.numpy_dtypes import numpy_dtype
from cuplug.cuda.placement import Placement
from cuplug.base.public import public


@cython.final
cdef class DeviceArray(DeviceMemory):
    """A C-contiguous array in GPU memory, on the legacy default stream.

    Made by `cuplug.asarray`, `cuplug.empty` and by operators that take such arrays. Other
    libraries read it through DLPack and `__cuda_array_interface__`; `numpy()` copies it back.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    device : Placement
    data_ptr : int
        The device address of the first element.
    """

    def __init__(self):
        raise TypeError("cuplug.DeviceArray: make one with cuplug.asarray or cuplug.empty")

    def __dealloc__(self):
        PyMem_RawFree(self.tensor.shape)

    @property
    def ndim(self):
        """Number of dimensions."""
        return self.tensor.ndim

    @property
    def size(self):
        """Number of elements."""
        return n_elements(&self.tensor)

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return n_elements(&self.tensor) * self.dtype.itemsize

    @property
    def device(self):
        """Where it is."""
        return Placement("cuda", self.tensor.device.id)

    @property
    def data_ptr(self):
        """The device address of the first element."""
        return <size_t>self.tensor.data

    def numpy(self, *, stream=None):
        """Return a copy as a NumPy array, after the work on `stream`.

        Parameters
        ----------
        stream : as in calls of operators, optional
            Without it, the legacy default stream, which calls on such arrays are ordered with.
        """
        cdef void *after = parse_stream("numpy", stream)
        if after != NULL:
            refuse_capture("numpy", after, "wanted a stream whose work is done")
        result = empty_array(&self.tensor, is_large(&self.tensor))
        cdef void *to = PyArray_DATA(<PyArrayObject *>result)
        copy_watched("numpy", self.tensor.device.id, True, to, self.tensor.data, self.nbytes, after)
        return result

    def __reduce__(self):
        raise TypeError(
            "cuplug.DeviceArray: its memory is of this process; pickle a copy of it, x.numpy()"
        )

    def __array__(self, dtype=None, copy=None):
        raise TypeError(
            "cuplug.DeviceArray: it is in GPU memory; copy it to a NumPy array with x.numpy()"
        )

    def __repr__(self):
        return f"cuplug.DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self.device})"

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    @property
    def __cuda_array_interface__(self):
        return cuda_array_interface(self)

    def __dlpack_device__(self):
        return CUPLUG_CUDA, self.tensor.device.id

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """Export as a DLPack capsule, without a copy, ordered before the work on `stream`."""
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"cuplug.DeviceArray: it is on {self.device}, not on {dl_device}")
        if copy:
            raise BufferError("cuplug.DeviceArray: its export makes no copies")
        if stream is not None and stream not in (-1, 0, 1):
            order_streams(self.tensor.device.id, <void *><size_t>stream, NULL)
        return export(self, &self.tensor, max_version)


public(DeviceArray)


cdef int64_t n_elements(const cuplug_tensor *x) noexcept:
    cdef int64_t n = 1
    cdef int k
    for k in range(x.ndim):
        n *= x.shape[k]
    return n


cdef DeviceArray empty_like_tensor(cuplug_tensor *x):
    cdef DeviceArray result = without_memory(x)
    allocate(result, x.device.id, n_elements(x) * <uint64_t>result.dtype.itemsize, NULL)
    x.data = result.tensor.data = result.data
    note_use(x.device.id)
    return result


cdef DeviceArray share_memory(const cuplug_tensor *x, object owner):
    cdef DeviceArray result = without_memory(x)
    result.owner = owner
    result.tensor.data = <char *>x.data + x.byte_offset
    note_use(x.device.id)
    return result


cdef DeviceArray without_memory(const cuplug_tensor *x):
    cdef DeviceArray result = DeviceArray.__new__(DeviceArray)
    cdef int k
    result.dtype = descr_of_dtype(x.dtype)
    result.tensor.data = NULL
    result.tensor.device.type = CUPLUG_CUDA
    result.tensor.device.id = x.device.id
    result.tensor.ndim = x.ndim
    result.tensor.dtype = x.dtype
    result.tensor.strides = NULL
    result.tensor.byte_offset = 0
    result.tensor.shape = <int64_t *>PyMem_RawMalloc((x.ndim + 1) * sizeof(int64_t))
    if result.tensor.shape == NULL:
        raise MemoryError()
    for k in range(x.ndim):
        result.tensor.shape[k] = x.shape[k]
    result.shape = tuple([x.shape[k] for k in range(x.ndim)])
    return result


@public
def empty(shape, dtype="float32", device="cuda"):
    """Make a device array with uninitialised elements.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : str or numpy.dtype
        Array API names; "bfloat16" and "float8_..." need the package ml_dtypes. The elements have
        the byte order of the machine, whatever that of `dtype` is.
    device : str, int or device
        A GPU: "cuda", "cuda:1", its number, or a device object.

    Returns
    -------
    DeviceArray

    Raises
    ------
    ValueError, TypeError
        A negative size, an unknown dtype, a device that is no GPU.
    MemoryError, CudaError
        The device's memory ran out; there is no GPU.
    """
    cdef int64_t sizes[CUPLUG_MAX_NDIM]
    cdef int k
    lengths = parse_shape(shape)
    if len(lengths) > CUPLUG_MAX_NDIM:
        raise ValueError(f"empty: shape: seen {len(lengths)} dimensions, wanted at most 64")
    for k in range(len(lengths)):
        if not 0 <= lengths[k] < 1 << 63:
            wanted = "sizes of at least 0, below 2^63"
            raise ValueError(f"empty: shape: seen {lengths}, wanted {wanted}")
        sizes[k] = lengths[k]
    place = parse_gpu("empty", device)
    return make_array("empty", <int>len(lengths), sizes, to_descr("empty", dtype), place)


cdef tuple parse_shape(object shape):
    try:
        return tuple(map(index, shape if isinstance(shape, Iterable) else (shape,)))
    except TypeError:
        wanted = "an int or a sequence of them"
        raise TypeError(f"empty: shape: seen {shape!r}, wanted {wanted}") from None


cdef DeviceArray make_array(
    str function, int ndim, int64_t *sizes, object descr, cuplug_device device
):
    cdef cuplug_tensor x
    cdef int k
    x.device = device
    x.ndim = ndim
    x.shape = sizes
    x.dtype = dtype_of_descr(descr)
    if not x.dtype.bits:
        raise TypeError(f"{function}: dtype: seen {descr}, which no operator takes")
    cdef double n_bits = x.dtype.bits
    for k in range(ndim):
        n_bits *= sizes[k]
    if n_bits >= 2.0**66:
        lengths = tuple([sizes[k] for k in range(ndim)])
        raise ValueError(f"{function}: shape: seen {lengths}, wanted less than 2^63 bytes")
    return empty_like_tensor(&x)


def cuda_array_interface(x):
    """Return the protocol's version 3 of C-contiguous memory, for the legacy default stream."""
    return {
        "shape": x.shape,
        "typestr": x.dtype.str,
        "data": (x.data_ptr, False),
        "strides": None,
        "stream": 1,
        "version": 3,
    }


cdef object to_descr(str function, object dtype):
    if isinstance(dtype, str) and dtype in DTYPES:
        return numpy_dtype(dtype)
    try:
        if dtype is not None:  # NumPy takes it for float64
            return numpy.dtype(dtype)
    except TypeError:
        pass
    wanted = "a dtype of NumPy or ml_dtypes"
    raise TypeError(f"{function}: dtype: seen {dtype!r}, wanted {wanted}")


cdef DeviceArray copy_to_device(object x, object descr, cuplug_device place):
    cdef DeviceArray result
    cdef PyArrayObject *array
    host = numpy.asarray(x, dtype=descr, order="C")
    host = host if host.dtype.isnative else host.astype(host.dtype.newbyteorder("="))
    if not dtype_of_descr(host.dtype).bits:
        seen = f"{type(x).__name__}, of elements of dtype {host.dtype}"
        raise TypeError(f"asarray: x: seen {seen}, wanted numbers that an operator takes")
    array = <PyArrayObject *>host
    result = make_array(
        "asarray", PyArray_NDIM(array), <int64_t *>PyArray_DIMS(array), host.dtype, place
    )
    copy_watched(
        "asarray", place.id, False, result.tensor.data, PyArray_DATA(array), result.nbytes, NULL
    )
    return result
