# SPDX-License-Identifier: Apache-2.0
"""The origins of values of arrays on GPUs: the calls that have written them."""

from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from cuplug._engine.array.array cimport Array
from cuplug._engine.array.buffer cimport origin_of
from cuplug._engine.base.core cimport CUPLUG_ARGUMENT_ARRAY, CUPLUG_ARGUMENT_LIST
from cuplug._engine.base.core_call cimport cuplug_frame
from cuplug._engine.interop.reading cimport items_of, keep, reading


cdef int set_origins(
    reading *r, cuplug_frame *frame, uint32_t n, uint32_t n_given, uint64_t *few
) except -1:
    cdef uint32_t i, k
    cdef PyObject **items
    cdef list more = None
    frame.origins = few
    for i in range(n + n_given):
        if r.args[i].kind == CUPLUG_ARGUMENT_ARRAY:
            if type(<object>r.objects[i]) is Array:
                more = add(frame, few, more, <Array>r.objects[i], i >= n)
        elif r.args[i].kind == CUPLUG_ARGUMENT_LIST:
            items = items_of(&r.args[i])
            for k in range(r.args[i].list.n):
                if type(<object>items[k]) is Array:
                    more = add(frame, few, more, <Array>items[k], False)
    if more is None:
        return 0
    kept = bytearray(8 * len(more))
    keep(r, kept)
    for i in range(len(more)):
        (<uint64_t *><char *>kept)[i] = more[i]
    frame.origins, frame.n_origins = <uint64_t *><char *>kept, len(more)
    return 0


cdef inline list add(cuplug_frame *frame, uint64_t *few, list more, Array x, bint is_output):
    """Add an array's origin. An output that is all of its memory keeps no earlier value."""
    cdef uint64_t origin = origin_of(x)[0]
    if not origin or is_output and x.owner is None:
        return more
    if more is not None:
        more.append(origin)
    elif frame.n_origins < MAX_ORIGINS:
        few[frame.n_origins] = origin
        frame.n_origins += 1
    else:
        more = [few[k] for k in range(MAX_ORIGINS)] + [origin]
    return more


cdef int note_origin(reading *r, const cuplug_frame *frame, uint32_t n, object outputs) except -1:
    cdef uint32_t i, k
    cdef PyObject **items
    if type(outputs) is Array:
        origin_of(<Array>outputs)[0] = frame.origin
    elif type(outputs) is list:
        for output in <list>outputs:
            note_one(frame, <PyObject *>output)
    for i in range(n):
        if not frame.signature.parameters[i].is_inout:
            continue
        if r.args[i].kind == CUPLUG_ARGUMENT_LIST:
            items = items_of(&r.args[i])
            for k in range(r.args[i].list.n):
                note_one(frame, items[k])
        elif r.args[i].kind == CUPLUG_ARGUMENT_ARRAY:
            note_one(frame, r.objects[i])
    return 0


cdef inline void note_one(const cuplug_frame *frame, PyObject *obj) noexcept:
    if type(<object>obj) is Array:
        origin_of(<Array>obj)[0] = frame.origin
