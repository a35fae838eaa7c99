# SPDX-License-Identifier: Apache-2.0
"""The class Array: a typed buffer with shape and strides."""

cimport cython
from cpython.buffer cimport PyObject_GetBuffer
from cpython.mem cimport PyMem_RawMalloc
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t, uint64_t

from cuplug._engine.array.arithmetic cimport as_float, changing, functions, is_apart, is_number
from cuplug._engine.array.arithmetic cimport stock, wrote_number
from cuplug._engine.array.buffer cimport FEW, are_positions, check_origin, check_request
from cuplug._engine.array.buffer cimport check_writable, device_text
from cuplug._engine.array.buffer cimport is_contiguous, is_on_gpu, n_elements
from cuplug._engine.array.copies cimport copy_small, has_no_gaps, as_numpy_view
from cuplug._engine.array.copies cimport to_numpy
from cuplug._engine.array.layout cimport may_overlap, select
from cuplug._engine.array.methods cimport Methods
from cuplug._engine.base.capsules cimport export, two_integers
from cuplug._engine.base.core cimport CUPLUG_CPU, CUPLUG_CUDA, CUPLUG_CUDA_MANAGED
from cuplug._engine.base.core cimport CUPLUG_MAX_NDIM, cuplug_element_bytes, cuplug_error
from cuplug._engine.base.core cimport cuplug_synchronize, cuplug_tensor
from cuplug._engine.base.dlpack cimport DLPACK_BOOL, DLPACK_FLOAT
from cuplug._engine.base.numpy_api cimport PyDataMemAllocator
from cuplug._engine.base.numpy_dtypes cimport OPAQUE, descr_of_dtype, dtype_in_memory, to_descr
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.cuda.memory cimport allocate
from cuplug._engine.cuda.streams cimport hold, memory_stream, order_streams, stream_owner
from cuplug._engine.cuda.streams cimport work_stream
from cuplug._engine.host.blocks cimport allocator_for, empty_array, is_large

import math

import numpy

from cuplug._engine.array.arrayprint import shown, format_values
from cuplug._engine.base.public import public


@cython.final
cdef class Array(Methods):
    """Array()\n--\n
    An array on the host or in GPU memory, where it is ordered with the legacy default stream.

    `cuplug.asarray`, `cuplug.empty` and similar functions create it, and operators that take such
    arrays. It has the functions, operators and indexing of the Python array API standard, in
    `cuplug.array_api`; `x[1:, 0]` is a view. Other libraries read it through DLPack and
    `__cuda_array_interface__`, on the host through `__array_interface__` and the buffer protocol.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    device : Device
    strides : tuple of int
        In bytes.
    data_ptr : int
        The address of the first element.

    Examples
    --------
    >>> x = cuplug.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> float((x @ x.T)[0, 0])
    5.0
    """

    def __init__(self, *arguments, **keywords):
        raise TypeError("cuplug.Array: make one with cuplug.asarray, cuplug.empty or the like")

    @property
    def T(self) -> Array:
        """The dimensions in reverse order, without a copy.

        Examples
        --------
        >>> cuplug.empty((2, 3, 4)).T.shape
        (4, 3, 2)
        """
        cdef int64_t shape[2]
        cdef int64_t strides[2]
        cdef const int64_t *steps = self.tensor.strides
        cdef cuplug_tensor turned = self.tensor
        if self.tensor.ndim != 2:
            return functions().permute_dims(self, tuple(range(self.tensor.ndim))[::-1])
        shape[0], shape[1] = turned.shape[1], turned.shape[0]
        strides[0], strides[1] = 1, shape[0] if shape[0] else 1
        if steps != NULL:
            strides[0], strides[1] = steps[1], steps[0]
        turned.shape, turned.strides = shape, strides
        return share_memory(&turned, self, self.dtype)

    @property
    def mT(self) -> Array:
        """The last two dimensions exchanged, without a copy.

        Examples
        --------
        >>> cuplug.empty((2, 3, 4)).mT.shape
        (2, 4, 3)
        """
        return functions().matrix_transpose(self)

    def numpy(self, *, out: NDArray[Any] | None = None, stream=None) -> NDArray[Any]:
        """Copy to a NumPy array, after the work on `stream`.

        Parameters
        ----------
        out : numpy.ndarray, optional
            The destination, of the same shape and dtype; a new array if omitted.
        stream : as in calls of operators, optional
            The default is the legacy default stream, with which calls on such arrays are ordered.

        Returns
        -------
        numpy.ndarray

        Examples
        --------
        >>> cuplug.asarray([1.0, 2.0]).numpy()
        array([1., 2.])
        """
        return to_numpy(self if has_no_gaps(&self.tensor) else self.in_order(), out, stream)

    def _spread(self, shape: tuple[int, ...]) -> Array:
        """Return a C-contiguous copy, broadcast to a shape."""
        return functions().copied(functions().broadcast_to(self, shape))

    def __getitem__(self, key) -> Array:
        view = part_of(self, key)
        if view is None and self.tensor.ndim and are_positions(self, key):
            return stock("gather.gather")(self, key)
        return functions().take_at(self, key) if view is None else view

    def __setitem__(self, key, value):
        check_writable(self, "assignment")
        view = part_of(self, key)
        if view is None:
            functions().put_at(self, key, value)
        else:
            write(view, value)

    def __delitem__(self, key):
        raise TypeError("cuplug.Array: elements cannot be deleted")

    def __iter__(self) -> Iterator[Array]:
        if not self.tensor.ndim:
            raise TypeError("iteration over an array without dimensions")
        return _rows(self)

    def __reduce_ex__(self, protocol):  # from 5 on, memory of the host can be transferred itself
        host = self.__array__() if protocol > 4 and not is_on_gpu(&self.tensor) else self.numpy()
        return functions().asarray, (host, None, str(self.device))

    def __repr__(self):
        return shown(self)

    def __str__(self):
        return format_values(self)

    # ---- For other libraries -----------------------------------------------------------------

    def __array__(self, dtype=None, copy: bool | None = None):
        if self.tensor.device.type == CUPLUG_CUDA_MANAGED:
            wait_for_work(&self.tensor)
            check_origin(self)
        elif is_on_gpu(&self.tensor):
            raise TypeError(
                "cuplug.Array: it is in GPU memory; copy it to a NumPy array with x.numpy()"
            )
        seen = as_numpy_view(self)
        if dtype is None and not copy:
            return seen
        descr = None if dtype is None else to_descr("__array__", dtype)
        result = numpy.array(seen, descr) if copy else numpy.asarray(seen, descr)
        if copy is False and result is not seen:
            raise ValueError(f"cuplug.Array: copy: got False, expected None ({self.dtype})")
        return result

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        check_request(self, flags)
        seen = self.__array__()
        Py_DECREF(None)  # Cython's reference, which NumPy overwrites
        PyObject_GetBuffer(seen, buffer, flags)

    def __dlpack__(
        self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None, copy: bool | None = None,
    ):
        """Export as a DLPack capsule, ordered before the work on `stream`."""
        if self.tensor.dtype.code == OPAQUE:
            raise BufferError(f"cuplug.Array: got {self.dtype}, expected a dtype of DLPack")
        place = None if dl_device is None else two_integers("dl_device", dl_device)
        if place is not None and place != self.__dlpack_device__():
            if place != (CUPLUG_CPU, 0):
                told = f"got {device_text(place)}, expected {self.device} or cpu"
                raise BufferError(f"cuplug.Array: dl_device: {told}")
            if copy is False:
                raise BufferError(f"cuplug.Array: copy: got False, expected None ({self.device})")
            return functions().asarray(self, device="cpu").__dlpack__(max_version=max_version)
        if copy:
            exported = functions().asarray(self, copy=True)
            return exported.__dlpack__(stream=stream, max_version=max_version)
        if stream is not None and not is_on_gpu(&self.tensor):
            raise ValueError(f"cuplug.Array: stream: got {stream}, expected None on the host")
        if stream is not None and not isinstance(stream, int):
            raise TypeError(f"cuplug.Array: stream: got {stream!r:.60}, expected an int or None")
        if stream is not None and stream not in (-1, 0, 1):
            order_streams(self.tensor.device.id, <void *><size_t>stream, NULL)
        return export(self, &self.tensor, max_version, self.is_read_only)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """Return `cuplug.array_api`, the functions of the Python array API standard."""
        return functions().namespace(api_version)

    cdef Array in_order(self):
        """Return the array itself, or for a strided array on a GPU a contiguous copy."""
        cdef bint needs_copy = is_on_gpu(&self.tensor) and not is_contiguous(&self.tensor)
        if needs_copy and self.tensor.dtype.code == OPAQUE:
            raise ValueError("cuplug.Array: got strided structures on a GPU, expected whole ones")
        return functions().copied(self) if needs_copy else self


public(Array)


def _rows(Array x):
    cdef int64_t k
    for k in range(x.tensor.shape[0]):
        yield part_of(x, k)


cdef Array part_of(Array x, object key):
    """Return the view that a key selects; None for a key that needs a copy."""
    cdef int64_t shape[CUPLUG_MAX_NDIM]
    cdef int64_t strides[CUPLUG_MAX_NDIM]
    cdef cuplug_tensor part
    if type(key) is Array and (<Array>key).tensor.ndim:
        return None
    if isinstance(key, str) and x.dtype.names:
        return field_of(x, key)
    if not select(key, &x.tensor, shape, strides, &part):
        return None
    return share_memory(&part, x, x.dtype)


cdef int write(Array x, object value) except -1:
    cdef bint is_direct = is_number(value)
    if type(value) is Array:
        if copy_small(&x.tensor, &(<Array>value).tensor):
            return 0
        is_direct = is_apart(x, value)
    if type(value) is int and x.tensor.dtype.code == DLPACK_FLOAT:
        value = as_float(value)
    elif type(value) is int and x.tensor.dtype.code == DLPACK_BOOL:
        value = bool(value)
    if is_direct and wrote_number(&x.tensor, value):
        return 0
    (changing("assign") if is_direct else functions().assign)(x, value)


cdef Array field_of(Array x, str name):
    """Return the view of a field of structures."""
    if name not in x.dtype.fields:
        raise KeyError(f"cuplug.Array: got the field {name!r}, expected one of {x.dtype.names}")
    field, offset = x.dtype.fields[name][:2]
    dtype, inner = field.base, field.shape
    if not dtype_in_memory(dtype).bits:
        raise TypeError(f"cuplug.Array: {name}: got a field of {dtype}, expected a dtype of cuplug")
    if any([stride % dtype.itemsize for stride in x.strides]):
        wanted = f"multiples of the {dtype.itemsize} bytes of its elements"
        raise ValueError(f"cuplug.Array: {name}: got strides {x.strides}, expected {wanted}")
    steps = [math.prod(inner[k + 1 :]) for k in range(len(inner))]
    steps = [*[stride // dtype.itemsize for stride in x.strides], *steps]
    return view(x, x.shape + inner, tuple(steps), offset, dtype)


cdef int wait_for_work(const cuplug_tensor *x) except -1:
    cdef cuplug_error error
    cdef void *stream = work_stream(x.device.id)
    with nogil:
        cuplug_synchronize(x.device.id, stream, 0, &error)
    return raise_error(&error) if error.status else 0


cdef Array empty_like_tensor(cuplug_tensor *x):
    cdef Array result
    if is_on_gpu(x):
        x.device.type = CUPLUG_CUDA  # also for managed memory of another library
    result = without_memory(x, descr_of_dtype(x.dtype))
    if not is_on_gpu(x):
        allocate_on_host(result, False)
    else:
        result.stream_owner = stream_owner(x.device.id)
        allocate(result, x.device.id, n_bytes_of(x), memory_stream(x.device.id))
        hold(x.device.id, result)
        result.tensor.data = result.data
    x.data = result.tensor.data
    return result


cdef Array cleared_like_tensor(const cuplug_tensor *x):
    cdef Array result = without_memory(x, descr_of_dtype(x.dtype))
    allocate_on_host(result, True)
    return result


cdef uint64_t n_bytes_of(const cuplug_tensor *x) noexcept:
    return n_elements(x) * <uint64_t>cuplug_element_bytes(x)


cdef int allocate_on_host(Array x, bint is_cleared) except -1:
    """Do not cache pages that the system clears."""
    cdef bint large = is_large(&x.tensor)
    cdef uint64_t n_bytes = n_bytes_of(&x.tensor)
    cdef const PyDataMemAllocator *allocator = allocator_for(large and not is_cleared)
    if is_cleared:
        x.tensor.data = allocator.calloc(allocator.ctx, max(n_bytes, 1), 1)
    else:
        x.tensor.data = allocator.malloc(allocator.ctx, max(n_bytes, 1))
    if x.tensor.data == NULL:
        empty_array(&x.tensor, large)  # NumPy reports the size that failed
        raise MemoryError()
    x.allocator = allocator
    return 0


cdef Array share_memory(const cuplug_tensor *x, object owner, object dtype=None):
    cdef Array result = without_memory(x, descr_of_dtype(x.dtype) if dtype is None else dtype)
    cdef int k
    result.owner = owner
    if type(owner) is Array:
        result.is_read_only = (<Array>owner).is_read_only
        if (<Array>owner).owner is not None:
            result.owner = (<Array>owner).owner  # no chain of views, to be freed recursively
    result.tensor.data = <char *>x.data + x.byte_offset
    if not is_contiguous(x):
        result.tensor.strides = result.tensor.shape + x.ndim
        for k in range(x.ndim):
            result.tensor.strides[k] = x.strides[k]
    return result


cdef Array without_memory(const cuplug_tensor *x, object dtype):
    cdef Array result = Array.__new__(Array)
    cdef int k
    result.dtype = dtype
    result.tensor.device = x.device
    result.tensor.ndim = x.ndim
    result.tensor.dtype = x.dtype
    result.tensor.shape = result.few
    if x.ndim > FEW:
        result.tensor.shape = <int64_t *>PyMem_RawMalloc(2 * x.ndim * sizeof(int64_t))
        if result.tensor.shape == NULL:
            raise MemoryError()
    for k in range(x.ndim):
        result.tensor.shape[k] = x.shape[k]
    return result


cdef Array view(Array x, tuple shape, tuple strides, int64_t offset, object dtype):
    """Return an array's memory from a byte on, as elements of a dtype with strides in elements."""
    cdef int64_t sizes[CUPLUG_MAX_NDIM]
    cdef int64_t steps[CUPLUG_MAX_NDIM]
    cdef cuplug_tensor seen = x.tensor
    cdef double n_bytes = dtype.itemsize
    cdef int k
    if len(shape) > CUPLUG_MAX_NDIM:
        raise ValueError(f"cuplug.Array: got {len(shape)} dimensions, expected at most 64")
    seen.ndim = len(shape)
    seen.shape, seen.strides = sizes, steps
    for k in range(seen.ndim):
        n_bytes *= shape[k] or 1
    if n_bytes >= 2.0**63:
        raise ValueError(f"cuplug.Array: got shape {shape}, expected less than 2^63 bytes")
    for k in range(seen.ndim):
        sizes[k], steps[k] = shape[k], strides[k]
    seen.data = <char *>seen.data + offset
    seen.dtype = dtype_in_memory(dtype)
    return share_memory(&seen, x, dtype)


def may_meet(Array x not None, *others: Array) -> bool:
    """Return whether an array may share memory with one of several others."""
    for other in others:
        if may_overlap(&x.tensor, &(<Array?>other).tensor):
            return True
    return False
