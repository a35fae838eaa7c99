# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint32_t

from cuplug._engine.base.core cimport cuplug_operator
from cuplug._engine.base.core_call cimport cuplug_definition_row
from cuplug._engine.base.vectorcall cimport vectorcallfunc
from cuplug._engine.call.operator_base cimport Described


@cython.final
cdef class Operator(Described):
    cdef vectorcallfunc vectorcall
    cdef tuple names  # of the parameters of all rows, interned
    cdef bytes positions  # of each name among the arguments
    cdef tuple rows  # of each overload, where a place has other names in others; else None
    cdef object made  # a PublicCall; of a plugin's, a function: what it is pickled as
    cdef object __weakref__


cdef Operator wrap_operator(cuplug_operator *op, object made)
# A new one without a plugin, for ever: its rows, what it is to say of itself, what makes it again.
cdef Operator define(
    const cuplug_definition_row *rows, uint32_t n_rows, str plugin, const char *version,
    str origin, str doc, object made
)
