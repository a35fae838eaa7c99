# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport int32_t, uint64_t

from cuplug.base.core_jit cimport cuplug_kernel
from cuplug.kernels.image cimport Image

cdef extern from *:
    """
    #define cuplug_load_kernel(slot) __atomic_load_n((slot), __ATOMIC_ACQUIRE)
    #define cuplug_store_kernel(slot, kernel) __atomic_store_n((slot), (kernel), __ATOMIC_RELEASE)
    """
    cuplug_kernel *cuplug_load_kernel(cuplug_kernel **slot) noexcept nogil
    void cuplug_store_kernel(cuplug_kernel **slot, cuplug_kernel *kernel) noexcept nogil

cdef enum:
    MAX_PARAMETERS = 256


cdef class Function:
    cdef Image image
    cdef cuplug_kernel *kernel  # NULL until it is found; codes and n_parameters are set before
    cdef uint64_t *codes
    cdef Py_ssize_t n_parameters  # -1: not known
    cdef bint is_declared  # by the user, not found by the compiler
    cdef int32_t device
    cdef readonly str name
    cdef readonly str symbol
    cdef readonly object types
    cdef bytes text  # the name's UTF-8
    cdef cython.pymutex lock
    cdef object __weakref__

    cdef int take_codes(self, types) except -1
    cdef cuplug_kernel *load(self, int32_t device) except NULL
    cdef cuplug_kernel *find(self, int32_t device) except NULL
    cdef int32_t number(self, device) except -1
