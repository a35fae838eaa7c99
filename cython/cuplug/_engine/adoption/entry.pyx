# SPDX-License-Identifier: Apache-2.0
"""Operators of functions that know nothing of cuplug: their definition, and the calls' way out."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from cuplug._engine.base.core cimport (
    CUPLUG_ROW_KEEPS_WHOLE,
    cuplug_call,
    cuplug_element_bytes,
    cuplug_error,
    cuplug_n_elements,
    cuplug_output,
    cuplug_scalar,
    cuplug_set_handle,
    cuplug_tensor,
)
from cuplug._engine.base.core_call cimport cuplug_term
from cuplug._engine.base.runtime cimport (
    cuplug_definition_row,
    cuplug_entry_error,
    cuplug_entry_number,
)
from cuplug._engine.base.status cimport raise_later
from cuplug._engine.call.define cimport define
from cuplug._engine.cuda.streams cimport order_streams, refuse_capture
from cuplug._engine.signature.terms cimport allocate, set_term


ON_DEFAULT = "expected another: the function launches on the default stream"


cdef object scalar_value(const cuplug_scalar *scalar, str member):
    if member == "h":
        return <object><PyObject *>scalar.handle
    if member == "f":
        return scalar.f
    if member == "s":
        return <bytes>scalar.s
    return scalar.u if member == "u" else scalar.i


cdef list arrays_of(const cuplug_call *call, bint with_shapes):
    """The address, the number of elements, and the shape of each array, () unless it is asked."""
    return [
        (
            <size_t>call.tensors[k].data,
            cuplug_n_elements(&call.tensors[k]),
            shape_of(&call.tensors[k]) if with_shapes else (),
        )
        for k in range(call.n_tensors)
    ]


cdef int give_output(const cuplug_call *call, int at, tuple shape, size_t source) except -1:
    """Give an output of unknown size its memory, and copy to it."""
    cdef const cuplug_tensor *x = &call.tensors[at]
    cdef int64_t sizes[64]
    for k, size in enumerate(shape):
        sizes[k] = size
    cdef int status = cuplug_output(call, at, sizes)
    if not status and cuplug_n_elements(x):
        memcpy(x.data, <void *>source, cuplug_n_elements(x) * cuplug_element_bytes(x))
    return status


cdef int give_results(const cuplug_call *call, object adopted, object results) except -1:
    """Hand on what a call has made: a handle, or the outputs of unknown sizes."""
    cdef int status = 0
    if adopted.makes_handle:
        Py_INCREF(results)
        return cuplug_set_handle(call, <void *><PyObject *>results)
    for at, shape, address, _ in results:
        status = status or give_output(call, at, shape, address)
    return status


cdef int close_handle(const cuplug_call *call, void *handle) noexcept with gil:
    """Destroy the object behind a handle, which no call uses any more."""
    opaque = <object><PyObject *>handle
    Py_DECREF(opaque)
    try:
        opaque.close()
        return 0
    except BaseException as raised:
        return raise_later(raised, cuplug_entry_error(call))


cdef tuple shape_of(const cuplug_tensor *x):
    return tuple([x.shape[axis] for axis in range(x.ndim)])


cdef int run_adopted(const cuplug_call *call) noexcept with gil:
    """An entry for either side. The function itself is called without Python's lock."""
    cdef bint on_default
    cdef int64_t number = 0
    cdef const cuplug_term *terms
    cdef int status
    adopted = <object>call.context
    try:
        numbers = []
        terms = <const cuplug_term *><size_t>adopted.terms_at
        for k, (_, type) in enumerate(adopted.numbers):
            status = cuplug_entry_number(call, &terms[k], b"arguments", type, &number)
            if status:
                return status
            numbers.append(number)
        on_default = adopted.place == "cuda" and not adopted.takes_stream
        scalars = [
            None if call.none_mask >> k & 1 else scalar_value(&call.scalars[k], m)
            for k, m in enumerate(adopted.members)
        ]
        if on_default:
            refuse_capture(adopted.name, call.stream, ON_DEFAULT)
            order_streams(call.device.id, NULL, call.stream)
        try:
            arrays = arrays_of(call, adopted.needs_shapes)
            results = adopted.call(arrays, scalars, numbers, <size_t>call.stream)
        finally:
            if on_default:
                order_streams(call.device.id, call.stream, NULL)
        return give_results(call, adopted, results)
    except BaseException as raised:
        return raise_later(raised, cuplug_entry_error(call))


def define_adopted(object adopted, str plugin, str path, str doc, object made):
    """Define an operator that calls `adopted.call(arrays, scalars, numbers, stream)`, for ever.

    The numbers are those of `adopted.numbers`, pairs of a formula.Term and the id of a type.
    """
    cdef cuplug_term *terms = <cuplug_term *>allocate(len(adopted.numbers), sizeof(cuplug_term))
    for k, (term, _) in enumerate(adopted.numbers):
        set_term(&terms[k], term)
    adopted.terms_at = <size_t>terms
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
    row.null_strides_when_contiguous = 0
    row.scans = 0
    row.takes_handles = 1
    row.close = NULL
    if adopted.makes_handle:
        row.close = close_handle
    op = define(&row, 1, plugin, NULL, path, doc, made)
    Py_INCREF(adopted)
    return op
