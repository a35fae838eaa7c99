# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays without dimensions, read as scalars."""

from cpython.object cimport PyObject
from libc.stdint cimport uint32_t

from cuplug._engine.arguments.inputs cimport read_argument
from cuplug._engine.base.core cimport CUPLUG_ARGUMENT_ARRAY, cuplug_operator
from cuplug._engine.base.core_call cimport (
    CUPLUG_PARAMETER_SCALAR,
    CUPLUG_WORD_HOST,
    cuplug_operator_signature,
    cuplug_signature,
)
from cuplug._engine.interop.reading cimport keep, kind_of, arbitrary_code_ran, reading

import numpy


cdef int unwrap_scalar_arrays(cuplug_operator *op, reading *r, uint32_t n) except -1:
    cdef const cuplug_signature *s = cuplug_operator_signature(op, <uint32_t>max(r.row, 0))
    cdef uint32_t i
    for i in range(min(n, <uint32_t>s.n_parameters)):
        if (
            s.parameters[i].kind == CUPLUG_PARAMETER_SCALAR
            and r.args[i].kind == CUPLUG_ARGUMENT_ARRAY
            and not r.args[i].tensor.ndim
            and isinstance(<object>r.objects[i], numpy.ndarray)
        ):
            arbitrary_code_ran(r)
            value = (<object>r.objects[i])[()]
            keep(r, value)
            was_first = r.first == r.objects[i]
            r.objects[i] = <PyObject *>value
            read_argument(r.objects[i], r, &r.args[i])
            if was_first:
                find_first(r, s, n)
    return 0


cdef int find_first(reading *r, const cuplug_signature *s, uint32_t n) except -1:
    cdef uint32_t i
    cdef bint is_on_host
    r.first = NULL
    r.first_kind = NULL
    for i in range(n):
        is_on_host = i < <uint32_t>s.n_parameters and s.parameters[i].words & CUPLUG_WORD_HOST
        if r.args[i].kind == CUPLUG_ARGUMENT_ARRAY and (r.first == NULL or not is_on_host):
            r.first = r.objects[i]
            r.first_kind = kind_of(r, r.objects[i])
            if not is_on_host:
                return 0
    return 0
