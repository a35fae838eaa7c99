# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport int32_t, uint32_t, uint64_t

from cuplug._engine.base.runtime cimport cuplug_image, cuplug_kernel

cdef extern from *:
    """
    #define cuplug_load_kernel(slot) __atomic_load_n((slot), __ATOMIC_ACQUIRE)
    #define cuplug_store_kernel(slot, kernel) __atomic_store_n((slot), (kernel), __ATOMIC_RELEASE)
    """
    cuplug_kernel *cuplug_load_kernel(cuplug_kernel **slot) noexcept nogil
    void cuplug_store_kernel(cuplug_kernel **slot, cuplug_kernel *kernel) noexcept nogil

cdef enum:
    MAX_PARAMETERS = 256


@cython.final
cdef class Image:
    cdef bytes code
    cdef bytes name
    cdef cuplug_image *image  # NULL until it is loaded
    cdef cython.pymutex lock

    cdef cuplug_image *load(self) except NULL


cdef class Function:
    cdef Image image
    cdef cuplug_kernel *kernel  # NULL until it is found; codes and n_parameters are set before it
    cdef uint64_t *codes
    cdef Py_ssize_t n_parameters  # -1: unknown
    cdef bint is_declared  # declared by the user; the compiler did not report them
    cdef int32_t device
    cdef readonly str name
    cdef readonly str symbol
    cdef readonly object types
    # arguments that recreate it when unpickled; None if it cannot be pickled
    cdef public object module
    cdef bytes text  # the name in UTF-8
    cdef cython.pymutex lock
    cdef object __weakref__

    cdef int take_codes(self, types) except -1
    cdef cuplug_kernel *load(self, int32_t device) except NULL
    cdef cuplug_kernel *find(self, int32_t device) except NULL
    cdef int32_t number(self, device) except -1


# Returns a number of 32 bits. Errors name it as `what`.
cdef uint32_t size_of(str name, str what, object given) except? 0xFFFFFFFF
