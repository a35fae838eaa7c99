# SPDX-License-Identifier: Apache-2.0
cimport cython

from cuplug.base.core cimport cuplug_tensor
from cuplug.cuda.memory cimport DeviceMemory


@cython.final
cdef class DeviceArray(DeviceMemory):
    cdef cuplug_tensor tensor  # C-contiguous; its shape is owned
    cdef readonly tuple shape
    cdef readonly object dtype  # a numpy.dtype
    cdef object __weakref__


# A new array of a tensor's shape and dtype on its GPU; sets the tensor's data.
cdef DeviceArray empty_like_tensor(cuplug_tensor *x)
