# SPDX-License-Identifier: Apache-2.0
"""The memory of an array, and the protocols by which other libraries read it."""

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND
from cpython.mem cimport PyMem_RawFree
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int64_t, uint64_t

from cuplug._engine.base.core cimport (
    CUPLUG_CPU,
    CUPLUG_CUDA,
    CUPLUG_CUDA_MANAGED,
    CUPLUG_MAX_NDIM,
    cuplug_element_bytes,
    cuplug_error,
    cuplug_tensor,
)
from cuplug._engine.base.core_call cimport cuplug_check_origin
from cuplug._engine.base.dlpack cimport DLPACK_INT, DLPACK_UINT
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.array.layout cimport contiguous_strides
from cuplug._engine.cuda.memory cimport DeviceMemory

from cuplug._engine.cuda.placement import HOST, Device


cdef class Buffer(DeviceMemory):
    """Memory with a shape, strides and a dtype."""

    def __dealloc__(self):
        cdef int64_t n_bytes
        if self.allocator != NULL:
            n_bytes = n_elements(&self.tensor) * cuplug_element_bytes(&self.tensor)
            self.allocator.free(self.allocator.ctx, self.tensor.data, n_bytes)
        if self.tensor.shape != self.few:
            PyMem_RawFree(self.tensor.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions.

        Examples
        --------
        >>> cuplug.empty((2, 3)).shape
        (2, 3)
        """
        return tuple_of(self.tensor.shape, self.tensor.ndim)

    @property
    def ndim(self) -> int:
        """Number of dimensions.

        Examples
        --------
        >>> cuplug.empty((2, 3)).ndim
        2
        """
        return self.tensor.ndim

    @property
    def size(self) -> int:
        """Number of elements.

        Examples
        --------
        >>> cuplug.empty((2, 3)).size
        6
        """
        return n_elements(&self.tensor)

    @property
    def itemsize(self) -> int:
        """Bytes of one element.

        Examples
        --------
        >>> cuplug.empty((2, 3), "float32").itemsize
        4
        """
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements.

        Examples
        --------
        >>> cuplug.empty((2, 3), "float32").nbytes
        24
        """
        return n_elements(&self.tensor) * self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Distance to the next element along each dimension, in bytes.

        Examples
        --------
        >>> cuplug.empty((2, 3), "float32").strides
        (12, 4)
        """
        cdef int64_t own[CUPLUG_MAX_NDIM]
        cdef int64_t *strides = self.tensor.strides
        if strides == NULL:
            contiguous_strides(self.tensor.ndim, self.tensor.shape, own)
            strides = own
        return tuple([strides[k] * self.dtype.itemsize for k in range(self.tensor.ndim)])

    @property
    def device(self) -> Device:
        """The device of the array.

        Examples
        --------
        >>> cuplug.empty(3, device="cpu").device
        cuplug.Device('cpu')
        """
        return Device(self.tensor.device.id) if is_on_gpu(&self.tensor) else HOST

    @property
    def data_ptr(self) -> int:
        """The address of the first element.

        Examples
        --------
        >>> x = cuplug.empty(3, "float32")
        >>> x[1:].data_ptr - x.data_ptr
        4
        """
        return <size_t>self.tensor.data

    def __len__(self):
        if not self.tensor.ndim:
            raise TypeError("len() of an array without dimensions")
        return self.tensor.shape[0]

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if is_on_gpu(&self.tensor):
            raise AttributeError("__array_interface__: the array is in GPU memory")
        if self.dtype.isbuiltin == 2:  # from a package, such as bfloat16 of ml_dtypes
            raise AttributeError(f"__array_interface__: it has no name for {self.dtype}")
        return interface_of(self) | {"strides": self.strides}  # Pillow then reads `tobytes`

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if not is_on_gpu(&self.tensor):
            raise AttributeError("__cuda_array_interface__: the array is on the host")
        return interface_of(self) | {"stream": 1}

    def __arrow_array__(self, type=None):
        """Return the elements as an array of pyarrow."""
        import pyarrow

        return pyarrow.array(self.__array__(), type=type)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.device.type, self.tensor.device.id


cdef uint64_t *origin_of(Buffer x) noexcept:
    return &(<Buffer>x.owner).origin if isinstance(x.owner, Buffer) else &x.origin


cdef int check_origin(Buffer x) except -1:
    cdef uint64_t origin = origin_of(x)[0]
    cdef cuplug_error error
    return raise_error(&error) if origin and cuplug_check_origin(origin, &error) else 0


cdef int check_writable(Buffer x, str name) except -1:
    if x.is_read_only:
        raise ValueError(f"{name}: got a read-only array, expected a writable one; use x.copy()")
    return 0


cdef int check_request(Buffer x, int flags) except -1:
    """Reject requests without a shape, which are for bytes: PyTorch flattens these."""
    if flags & PyBUF_ND != PyBUF_ND and x.tensor.ndim != 1:
        raise BufferError(
            f"cuplug.Array: got a request for bytes without a shape, expected one for {x.dtype} of "
            f"shape {x.shape}; pass memoryview(x), x.numpy(), or to PyTorch torch.from_dlpack(x)"
        )
    if flags & PyBUF_FORMAT and x.dtype.isbuiltin == 2:  # of a package, such as ml_dtypes
        raise BufferError(
            f"cuplug.Array: got a request for a format, which {x.dtype} does not have, expected a "
            "dtype of NumPy's own; use x.numpy() or x.__dlpack__()"
        )
    return 0


cdef tuple tuple_of(const int64_t *numbers, int n):
    """Return a tuple, without creating a list first, which takes longer."""
    cdef tuple result = PyTuple_New(n)
    cdef object number
    cdef int k
    for k in range(n):
        number = numbers[k]
        Py_INCREF(number)
        PyTuple_SET_ITEM(result, k, number)
    return result


cdef dict interface_of(Buffer x):
    """Return version 3 of the array interfaces."""
    return {
        "shape": x.shape,
        "typestr": x.dtype.str,
        "data": (x.data_ptr, x.is_read_only),
        "strides": None if x.tensor.strides == NULL else x.strides,
        "version": 3,
    }


cdef int64_t n_elements(const cuplug_tensor *x) noexcept:
    cdef int64_t n = 1
    cdef int k
    for k in range(x.ndim):
        n *= x.shape[k]
    return n


cdef bint is_contiguous(const cuplug_tensor *x) noexcept nogil:
    cdef int64_t step = 1
    cdef int k
    cdef bint is_broken = False
    if x.strides == NULL:
        return True
    for k in range(x.ndim - 1, -1, -1):
        is_broken |= x.shape[k] != 1 and x.strides[k] != step
        step *= x.shape[k]
    return not is_broken or not step


cdef bint is_on_gpu(const cuplug_tensor *x) noexcept:
    return x.device.type == CUPLUG_CUDA or x.device.type == CUPLUG_CUDA_MANAGED


cdef bint are_on_one_device(const cuplug_tensor *x, const cuplug_tensor *y) noexcept:
    return is_on_gpu(x) == is_on_gpu(y) and (not is_on_gpu(x) or x.device.id == y.device.id)


cdef str device_text(tuple place):
    if place[0] == CUPLUG_CPU:
        return "cpu"
    return f"cuda:{place[1]}" if place[0] == CUPLUG_CUDA else f"DLPack's device {place}"


cdef bint are_positions(Buffer x, object key) noexcept:
    if type(key) is not type(x):
        return False
    cdef const cuplug_tensor *k = &(<Buffer>key).tensor
    is_whole = k.dtype.code == DLPACK_INT or k.dtype.code == DLPACK_UINT
    return is_whole and are_on_one_device(k, &x.tensor)
