# SPDX-License-Identifier: Apache-2.0
cimport cython

from cuplug._engine.base.core cimport cuplug_operator
from cuplug._engine.base.vectorcall cimport vectorcallfunc
from cuplug._engine.call.operator_base cimport Described


@cython.final
cdef class Operator(Described):
    cdef vectorcallfunc vectorcall
    cdef tuple names  # of the parameters of all overloads, interned
    cdef bytes positions  # of each name among the arguments
    cdef tuple rows  # of each overload, if overloads name a position differently; else None
    cdef object made  # its pickled form: a PublicCall, or a function for operators of plugins
    cdef object __weakref__


cdef Operator wrap_operator(cuplug_operator *op, object made)
