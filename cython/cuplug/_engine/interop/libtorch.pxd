# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from cuplug._engine.base.core cimport cuplug_argument, cuplug_tensor

# Addresses of views of a freed storage are their offsets, below this limit. Larger ones are not
# checked.
cdef size_t MAX_FREED


# The offset of the tensor in objects of the type torch.Tensor, in bytes.
# 0: it was not found, or the type is a subclass, which may override something.
cdef size_t find_tensor(object obj, object cls)
# Returns whether a tensor was read: it is strided, requires no grad, and its dtype and device are
# known. If only these are unknown, a.kind is CUPLUG_ARGUMENT_ARRAY nevertheless. The caller checks
# whether the thread is in a trace.
cdef bint read_tensor(PyObject *obj, size_t place, cuplug_argument *a) noexcept
# Returns whether this thread is in `torch.jit.trace`, which records operators of PyTorch and stores
# other results as constants. Searches once for the functions that report it.
cdef bint is_traced() noexcept
cdef int learn_traces() except -1
# Fills `to` with the addresses of functions, each from the first loaded library that has it.
# Returns whether all were found. Names of C++ are the keys of MANGLED.
cdef bint find_symbols(tuple libraries, tuple names, void **to) except -1
# Learns the dtype and device of a tensor that DLPack has read, if both readings agree.
cdef int learn_tensor(PyObject *obj, size_t place, const cuplug_tensor *x) except -1


# Removes strides that follow from the shape, which the core would check again. Strides of single
# elements remain, as they may belong to a view whose values differ from its memory.
cdef inline void drop_strides(cuplug_tensor *x) noexcept nogil:
    cdef int k
    cdef int64_t stride = 1
    if x.strides == NULL:
        return
    for k in range(x.ndim - 1, -1, -1):
        if x.strides[k] != stride:
            return
        stride *= x.shape[k]
    if stride > 1:
        x.strides = NULL
