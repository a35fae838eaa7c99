# SPDX-License-Identifier: Apache-2.0
from cuplug.array.buffer cimport Buffer


cdef class Arithmetic(Buffer):
    cdef object only(self, str kind)


# The module that computes with arrays, imported when something is computed.
cdef object functions()
# What changes its first argument, an array, by a number, or by an array in other memory.
cdef object changing(str name)
cdef bint is_number(object x) noexcept
# Whether two arrays are on one device, in memory of their own.
cdef bint is_apart(Buffer x, Buffer y) noexcept
