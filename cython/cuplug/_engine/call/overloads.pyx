# SPDX-License-Identifier: Apache-2.0
"""Keywords of operators whose overloads name their parameters differently.

A name then has a different position in each overload, or none. Each overload is tried with the
arguments in its own order. Operators whose overloads agree do not use this module.
"""

import sys

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memcpy

from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ABSENT,
    cuplug_argument,
    cuplug_operator,
    cuplug_operator_n_overloads,
    cuplug_operator_name,
    cuplug_operator_overload,
    cuplug_overload_signature,
)
from cuplug._engine.base.core_call cimport (
    cuplug_bind_overload,
    cuplug_frame,
    cuplug_free_blocks,
    cuplug_operator_signature,
    cuplug_signature,
)
from cuplug._engine.base.strings cimport to_str
from cuplug._engine.call.run cimport reread_arguments
from cuplug._engine.interop.reading cimport MAX_ARGUMENTS, reading


cdef tuple names_of(const cuplug_operator *op):
    cdef const cuplug_signature *s
    cdef uint32_t k
    cdef int i
    positions, rows = {}, []
    for k in range(cuplug_operator_n_overloads(op)):
        s = cuplug_operator_signature(op, k)
        row = [sys.intern(to_str(s.parameters[i].name)) for i in range(s.n_parameters)]
        rows.append(tuple(row))
        for i in range(s.n_parameters):
            positions.setdefault(row[i], i)
    names, places = tuple(positions), bytes(positions.values())
    return names, places, None if are_alike(rows) else tuple(rows)


cdef bint are_alike(list rows):
    """Return whether each position has one name in all overloads."""
    longest = max(rows, key=len)
    return all([row == longest[: len(row)] for row in rows])


cdef uint32_t choose_overload(
    cuplug_operator *op, reading *r, uint32_t n, list names, tuple rows
) except? 0xFFFFFFFF:
    cdef cuplug_argument args[MAX_ARGUMENTS]
    cdef PyObject *objects[MAX_ARGUMENTS]
    cdef cuplug_frame frame
    cdef int32_t n_matched = 0, n_best = 0
    cdef uint32_t k, n_given = n + <uint32_t>len(names)
    memcpy(args, r.args, n_given * sizeof(cuplug_argument))
    memcpy(objects, r.objects, n_given * sizeof(PyObject *))
    best, twice = None, None
    for k in range(<uint32_t>len(rows)):
        places = places_of(<tuple>rows[k], n, names)
        if type(places) is not list:
            twice = twice or places
            continue
        n_given = put_in_order(r, args, objects, places)
        r.row = <int32_t>k
        if r.n_scalar_arrays:
            reread_arguments(op, r, n_given, 0)
        if not cuplug_bind_overload(
            op, k, r.args, n_given, not r.takes_specs, &frame, &n_matched, NULL
        ):
            cuplug_free_blocks(frame.blocks)
            return n_given
        if best is None or n_matched > n_best:
            n_best, best = n_matched, (k, places)
    if best is None:
        refuse(op, names, twice)
    r.row = best[0]  # whose error the call then raises
    return put_in_order(r, args, objects, best[1])


cdef object places_of(tuple row, uint32_t n, list names):
    """Return the argument that each parameter gets (-1: none), as a list up to the last one.

    Return None if the overload lacks a name, and the name if an argument by position has it
    already.
    """
    cdef Py_ssize_t i, k
    cdef list places = [*range(n)]
    for k, name in enumerate(names):
        if name not in row:
            return None
        i = row.index(name)
        if i < n:
            return name
        while len(places) <= i:
            places.append(-1)
        places[i] = n + k
    return places


cdef uint32_t put_in_order(
    reading *r, const cuplug_argument *args, PyObject *const *objects, list places
) noexcept:
    cdef uint32_t i = 0
    cdef int place
    for place in places:
        if place < 0:
            r.args[i].kind = CUPLUG_ARGUMENT_ABSENT
            r.args[i].flags = 0
        else:
            r.args[i] = args[place]
            r.objects[i] = objects[place]
        i += 1
    return i


cdef int refuse(const cuplug_operator *op, list names, object twice) except -1:
    name = to_str(cuplug_operator_name(op))
    if twice is not None:
        raise TypeError(f"{name}: {twice}: got two values, by position and keyword, expected one")
    rows = range(cuplug_operator_n_overloads(op))
    texts = [to_str(cuplug_overload_signature(cuplug_operator_overload(op, k))) for k in rows]
    listed = "".join([f"\n  {text}" for text in texts])
    raise TypeError(
        f"{name}: got the keywords {', '.join(names)}, expected those of one overload:{listed}"
    )
