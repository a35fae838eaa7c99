# SPDX-License-Identifier: Apache-2.0
cimport cython

from cuplug.base.core_jit cimport cuplug_image


@cython.final
cdef class Image:
    cdef bytes code
    cdef bytes name
    cdef cuplug_image *image  # NULL until it is loaded
    cdef cython.pymutex lock

    cdef cuplug_image *load(self) except NULL
