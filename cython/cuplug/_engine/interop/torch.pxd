# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport int32_t

from cuplug._engine.base.core cimport cuplug_argument, cuplug_tensor
from cuplug._engine.interop.kinds cimport array_kind
from cuplug._engine.interop.reading cimport reading


# All checks of a tensor that DLPack's exchange API has read.
cdef int check_torch(
    PyObject *obj, reading *r, cuplug_argument *a, const array_kind *kind
) except -1
# A tensor with elements but without memory represents an array, and so does each tensor in
# torch.jit.trace.
cdef int check_memory(PyObject *obj, reading *r, cuplug_argument *a) except -1
cdef int check_grad(
    PyObject *obj, reading *r, cuplug_argument *a, const array_kind *kind
) except -1
# Returns whether a tensor is a view whose values differ from its memory, if its dtype and strides
# allow that.
cdef int check_views(object obj, reading *r, cuplug_argument *a) except -1
cdef int check_bits(object obj, reading *r, cuplug_argument *a) except -1
cdef object empty_like(object x)
# A tensor with the shape and dtype of x on the device of `like`, which may be known to have that
# dtype.
cdef object new_tensor(object like, const cuplug_tensor *x, bint is_of_dtype)
# The same with the shape and strides of `layout`, and the dtype of x.
cdef object new_strided(object like, const cuplug_tensor *x)
# The handle of the current stream of PyTorch; NULL: the legacy default one.
cdef void *torch_stream(int32_t device) except? NULL
