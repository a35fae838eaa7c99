# SPDX-License-Identifier: Apache-2.0
cimport cython

from cuplug._engine.array.methods cimport Methods
from cuplug._engine.base.core cimport cuplug_tensor


@cython.final
cdef class Array(Methods):
    cdef Array in_order(self)


# A new array with a tensor's shape and dtype on its device; sets the tensor's data.
cdef Array empty_like_tensor(cuplug_tensor *x)
# A new array of zeros, on the host.
cdef Array cleared_like_tensor(const cuplug_tensor *x)
# Writes a number or an array, which is broadcast, to all of an array.
cdef int write(Array x, object value) except -1
# An array that shares the memory of a tensor, strided or not, and keeps its owner alive.
cdef Array share_memory(const cuplug_tensor *x, object owner, object dtype=*)
