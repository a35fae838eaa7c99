# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from cuplug._engine.base.core cimport cuplug_argument, cuplug_tensor

# Views of a freed storage have an address below it: their offset. Larger ones are not asked for.
cdef size_t MAX_FREED


# Where objects of a type that is PyTorch's own hold their tensor, in bytes from their begin.
# 0: it was not found, or the type is a subclass, which may hide something.
cdef size_t find_tensor(object obj, object cls)
# Whether a tensor was read: strided, requires no grad, and of a dtype and device already learnt.
# Where these alone are not known, a.kind is CUPLUG_ARGUMENT_ARRAY all the same. The caller checks
# whether the thread is in a trace.
cdef bint read_tensor(PyObject *obj, size_t place, cuplug_argument *a) noexcept
# Whether this thread is in `torch.jit.trace`, which records operators of PyTorch, and keeps what
# others compute as constants; and a search, once, for the functions that tell so.
cdef bint is_traced() noexcept
cdef int learn_traces() except -1
# Fills `to` with the addresses of functions, each of the first library that is loaded and has it.
# Returns whether all were found. Names of C++ are the keys of MANGLED.
cdef bint find_symbols(tuple libraries, tuple names, void **to) except -1
# Learn the dtype and device of a tensor that DLPack has read, if all that is read agrees.
cdef int learn_tensor(PyObject *obj, size_t place, const cuplug_tensor *x) except -1


# Strides that say no more than the shape: the core would go through them again. Those of single
# elements stay, as they may be of a view that is not its memory.
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
