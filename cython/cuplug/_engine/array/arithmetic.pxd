# SPDX-License-Identifier: Apache-2.0
from cuplug._engine.array.buffer cimport Buffer
from cuplug._engine.base.core cimport cuplug_tensor


cdef class Arithmetic(Buffer):
    cdef object only(self, str kind)


# The module that computes with arrays, imported when something is computed.
cdef object functions()
cdef object stock(str name)  # a stock operator
# Writes a float or an int to the only element, on the host, for the most frequent dtypes and values
# that fit; False: nothing was done.
cdef bint wrote_number(const cuplug_tensor *x, object value) except -1
# Applies an operation in place to the first argument, an array, with a number or an array in other
# memory.
cdef object changing(str name)
cdef bint is_number(object x) noexcept
cdef object as_float(object value)  # of a number; the number itself if it is too large
# True if two arrays are on one device, in separate memory.
cdef bint is_apart(Buffer x, Buffer y) noexcept
