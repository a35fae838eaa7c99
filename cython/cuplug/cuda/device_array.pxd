# SPDX-License-Identifier: Apache-2.0
cimport cython

from cuplug.base.core cimport cuplug_device, cuplug_tensor
from cuplug.cuda.memory cimport DeviceMemory


@cython.final
cdef class DeviceArray(DeviceMemory):
    cdef cuplug_tensor tensor  # C-contiguous; its shape is owned
    cdef readonly tuple shape
    cdef readonly object dtype  # a numpy.dtype
    cdef object owner  # of memory that is not its own
    cdef object __weakref__


# A new array of a tensor's shape and dtype on its GPU; sets the tensor's data.
cdef DeviceArray empty_like_tensor(cuplug_tensor *x)
# One that shares the memory of a C-contiguous tensor, and keeps what owns it.
cdef DeviceArray share_memory(const cuplug_tensor *x, object owner)
# A copy of what numpy.asarray makes of x, and of a dtype unless that is None.
cdef DeviceArray copy_to_device(object x, object descr, cuplug_device place)
# The dtype of NumPy that a caller means.
cdef object to_descr(str function, object dtype)
