# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject

from cuplug._engine.base.core cimport cuplug_argument, cuplug_tensor
from cuplug._engine.interop.kinds cimport array_kind
from cuplug._engine.interop.reading cimport reading


cdef int read_exchange(
    PyObject *obj, reading *r, cuplug_argument *a, const array_kind *kind
) except -1
cdef int read_torch(
    PyObject *obj, reading *r, cuplug_argument *a, const array_kind *kind
) except -1
cdef int read_dlpack(object obj, reading *r, cuplug_argument *a) except -1
cdef bint read_tvm(PyObject *obj, cuplug_argument *a, const array_kind *kind) noexcept
# A new tensor of PyTorch with the shape and strides of `layout`; sets the data of x, the same
# memory as one dimension.
cdef object empty_strided(object like, cuplug_tensor *x)
# A new array of the library, on the device of `like`; sets the tensor's data.
cdef object empty_exchange(object like, const array_kind *kind, cuplug_tensor *x)
