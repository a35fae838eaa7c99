# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t, uint64_t

from cuplug._engine.base.core cimport cuplug_tensor
from cuplug._engine.base.numpy_api cimport PyDataMemAllocator
from cuplug._engine.cuda.memory cimport DeviceMemory

cdef enum:
    FEW = 4  # dimensions


cdef class Buffer(DeviceMemory):
    cdef cuplug_tensor tensor  # owns shape and strides; strides NULL: C-contiguous
    cdef readonly object dtype  # a numpy.dtype
    cdef object owner  # the owner of memory that it shares: an array
    cdef bint is_read_only  # the library that owns the memory allows no writes
    cdef uint64_t origin  # the call on a GPU that wrote it last, stored in the memory's owner
    cdef const PyDataMemAllocator *allocator  # of its own host memory
    cdef int64_t few[2 * FEW]  # shape and strides of few dimensions
    cdef object __weakref__


# The origin of the contents of an array's memory: see cuplug_check_origin.
cdef uint64_t *origin_of(Buffer x) noexcept
# Raises, at each check, the fault of the call that wrote a GPU array, or of an earlier call.
cdef int check_origin(Buffer x) except -1
cdef int64_t n_elements(const cuplug_tensor *x) noexcept
cdef bint is_contiguous(const cuplug_tensor *x) noexcept nogil
# The common fields of the array interfaces of NumPy and CUDA.
cdef dict interface_of(Buffer x)
cdef bint is_on_gpu(const cuplug_tensor *x) noexcept
cdef bint are_on_one_device(const cuplug_tensor *x, const cuplug_tensor *y) noexcept
# Raises ValueError if the memory of an array that is to be changed is read-only.
cdef int check_writable(Buffer x, str name) except -1
# Rejects a buffer that would be misread: without a shape, or with a dtype without a format.
cdef int check_request(Buffer x, int flags) except -1
# The name of a DLPack device as `Device` writes it, if it has one.
cdef str device_text(tuple place)
# True if a key is an array of integers on the device of x.
cdef bint are_positions(Buffer x, object key) noexcept
