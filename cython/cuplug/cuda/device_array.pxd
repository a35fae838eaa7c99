# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport int32_t, uint64_t

from cuplug.base.core cimport cuplug_tensor


# Memory of a GPU, which is freed with the object, after the work on its stream.
cdef class DeviceMemory:
    cdef void *data
    cdef int32_t gpu
    cdef void *stream  # NULL: the legacy default stream


# Makes it.
cdef int allocate(DeviceMemory memory, int32_t gpu, uint64_t n_bytes, void *stream) except -1


@cython.final
cdef class DeviceArray(DeviceMemory):
    cdef cuplug_tensor tensor  # C-contiguous; its shape is owned
    cdef readonly tuple shape
    cdef readonly object dtype  # a numpy.dtype
    cdef object __weakref__


# A new array of a tensor's shape and dtype on its GPU; sets the tensor's data.
cdef DeviceArray empty_like_tensor(cuplug_tensor *x)
