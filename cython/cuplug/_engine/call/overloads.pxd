# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint32_t

from cuplug._engine.base.core cimport cuplug_operator
from cuplug._engine.interop.reading cimport reading


# The names of all parameters, interned; the first position of each, as bytes; and if overloads use
# different names for a position, the names of each, else None.
cdef tuple names_of(const cuplug_operator *op)
# Orders arguments of which the last were given by name like the first overload that accepts them,
# which becomes r.row. Returns their number, absent ones included.
cdef uint32_t choose_overload(
    cuplug_operator *op, reading *r, uint32_t n, list names, tuple rows
) except? 0xFFFFFFFF
