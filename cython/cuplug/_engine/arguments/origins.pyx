# SPDX-License-Identifier: Apache-2.0
"""Where the values of arrays on GPUs come from: which call has written them."""

from libc.stdint cimport uint32_t, uint64_t

from cuplug._engine.array.array cimport Array
from cuplug._engine.array.buffer cimport origin_of
from cuplug._engine.base.core cimport CUPLUG_ARGUMENT_ARRAY, CUPLUG_ARGUMENT_LIST
from cuplug._engine.base.core_call cimport CUPLUG_PARAMETER_INOUT, cuplug_frame
from cuplug._engine.interop.reading cimport keep, reading


cdef int set_origins(
    reading *r, cuplug_frame *frame, uint32_t n, uint32_t n_given, uint64_t *few
) except -1:
    cdef uint32_t i
    cdef list more = None
    frame.origins = few
    for i in range(n + n_given):
        if r.args[i].kind == CUPLUG_ARGUMENT_ARRAY:
            if type(<object>r.objects[i]) is Array:
                more = add(frame, few, more, <Array>r.objects[i], i >= n)
        elif r.args[i].kind == CUPLUG_ARGUMENT_LIST:
            for item in <object>r.objects[i]:
                if type(item) is Array:
                    more = add(frame, few, more, item, False)
    if more is None:
        return 0
    kept = bytearray(8 * len(more))
    keep(r, kept)
    for i in range(len(more)):
        (<uint64_t *><char *>kept)[i] = more[i]
    frame.origins, frame.n_origins = <uint64_t *><char *>kept, len(more)
    return 0


cdef inline list add(cuplug_frame *frame, uint64_t *few, list more, Array x, bint is_output):
    """An output that is all of its memory is written without having been read."""
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


cdef int note_origin(reading *r, const cuplug_frame *frame, object outputs) except -1:
    cdef uint32_t k, i
    if type(outputs) is Array:
        origin_of(<Array>outputs)[0] = frame.origin
    elif type(outputs) is list:
        for output in <list>outputs:
            if type(output) is Array:
                origin_of(<Array>output)[0] = frame.origin
    for k in range(frame.n_inputs):
        i = frame.parameter[k]
        if frame.signature.parameters[i].kind == CUPLUG_PARAMETER_INOUT:
            if type(<object>r.objects[i]) is Array:
                origin_of(<Array>r.objects[i])[0] = frame.origin
    return 0
