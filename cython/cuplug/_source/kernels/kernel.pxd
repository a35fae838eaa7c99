# SPDX-License-Identifier: Apache-2.0
cimport cython

from cuplug._source.kernels.function cimport Function


@cython.final
cdef class Kernel(Function):
    cdef dict launches  # by grid and block
    cdef object declaration  # the types that `prepare` declared
