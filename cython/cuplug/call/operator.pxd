# SPDX-License-Identifier: Apache-2.0
cimport cython

from cuplug.base.core cimport cuplug_operator
from cuplug.base.vectorcall cimport vectorcallfunc


@cython.final
cdef class Operator:
    cdef vectorcallfunc vectorcall
    cdef cuplug_operator *op  # lives as long as the process
    cdef tuple names  # of the parameters of all rows, interned
    cdef bytes positions  # of each name among the arguments
    cdef object made  # what makes it again: (function, arguments); None for those of plugins
    cdef object __weakref__


cdef Operator wrap_operator(cuplug_operator *op)
# One without a plugin.
cdef Operator wrap_definition(cuplug_operator *op, object made)
