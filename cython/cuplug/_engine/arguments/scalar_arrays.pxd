# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint32_t

from cuplug._engine.base.core cimport cuplug_operator
from cuplug._engine.base.core_call cimport cuplug_signature
from cuplug._engine.interop.reading cimport reading


# Reads arrays without dimensions among the first n arguments again, as scalars, if their parameters
# are scalars.
cdef int unwrap_scalar_arrays(cuplug_operator *op, reading *r, uint32_t n) except -1

# Makes outputs like the first array that is not a host array by the signature.
cdef int find_first(reading *r, const cuplug_signature *s, uint32_t n) except -1
