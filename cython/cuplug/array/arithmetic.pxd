# SPDX-License-Identifier: Apache-2.0
from cuplug.array.buffer cimport Buffer


cdef class Arithmetic(Buffer):
    cdef object only(self, str kind)


# The module that computes with arrays, imported when something is computed.
cdef object functions()
