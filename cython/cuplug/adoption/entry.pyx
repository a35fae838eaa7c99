# SPDX-License-Identifier: Apache-2.0
"""Operators of functions that know nothing of cuplug: their definition, and the calls' way out."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from cuplug.base.core cimport (
    CUPLUG_ROW_KEEPS_WHOLE,
    cuplug_device,
    cuplug_error,
    cuplug_scalar,
    cuplug_tensor,
)
from cuplug.base.core_call cimport cuplug_call, cuplug_definition_row
from cuplug.base.status cimport raise_later
from cuplug.call.operator cimport define
from cuplug.cuda.streams cimport order_streams, refuse_capture


cdef extern from "internal/define.h":
    ctypedef struct seen_call "cuplug_call":
        cuplug_device device
        void *stream
        const cuplug_tensor *tensors
        const cuplug_scalar *scalars
        int n_tensors
        int n_scalars

    void *cuplug_entry_context(const cuplug_call *call)
    cuplug_error *cuplug_entry_error(const cuplug_call *call)

ON_DEFAULT = "wanted another: the function launches on the default stream"


cdef object scalar_value(const cuplug_scalar *scalar, str member):
    if member == "f":
        return scalar.f
    return scalar.u if member == "u" else scalar.i


cdef list arrays_of(const seen_call *call):
    return [
        (
            <size_t>call.tensors[k].data,
            tuple([call.tensors[k].shape[d] for d in range(call.tensors[k].ndim)]),
        )
        for k in range(call.n_tensors)
    ]


cdef int run_adopted(const cuplug_call *given) noexcept with gil:
    """An entry for either side. The function itself is called without Python's lock."""
    cdef const seen_call *call = <const seen_call *>given
    cdef bint on_default
    adopted = <object>cuplug_entry_context(given)
    try:
        on_default = adopted.place == "cuda" and not adopted.takes_stream
        scalars = [scalar_value(&call.scalars[k], m) for k, m in enumerate(adopted.members)]
        if on_default:
            refuse_capture(adopted.name, call.stream, ON_DEFAULT)
            order_streams(call.device.id, NULL, call.stream)
        try:
            adopted.call(arrays_of(call), scalars, <size_t>call.stream)
        finally:
            if on_default:
                order_streams(call.device.id, call.stream, NULL)
        return 0
    except BaseException as raised:
        return raise_later(raised, cuplug_entry_error(<const cuplug_call *>call))


def define_adopted(object adopted, str plugin, str path, str doc, object made):
    """Define an operator that calls `adopted.call(arrays, scalars, stream)`, for ever."""
    cdef cuplug_definition_row row
    cdef bytes signature = adopted.text.encode()
    row.signature = signature
    row.host = NULL
    row.cuda = NULL
    if adopted.place == "host":
        row.host = run_adopted
    else:
        row.cuda = run_adopted
    row.context = <void *><PyObject *>adopted
    row.reshape = NULL
    row.flags = CUPLUG_ROW_KEEPS_WHOLE
    op = define(&row, 1, plugin, NULL, path, doc, made)
    Py_INCREF(adopted)
    return op
