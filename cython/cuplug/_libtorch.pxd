# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject

from cuplug._host cimport cuplug_tensor


# Where objects of a type that is PyTorch's own hold their tensor, in bytes from their begin.
# 0: this PyTorch does not offer it, or the type is a subclass, which may hide something.
cdef size_t find_tensor(object obj, object cls)
# Whether a tensor was read: strided, requires no grad, and of a dtype and device already learnt.
cdef bint read_tensor(PyObject *obj, size_t place, cuplug_tensor *x) noexcept
# Learn the dtype and device of a tensor that DLPack has read, if all that is read agrees.
cdef int learn_tensor(PyObject *obj, size_t place, const cuplug_tensor *x) except -1
