# SPDX-License-Identifier: Apache-2.0
"""Operators of functions without cuplug tables: their definition, and their entry."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from cuplug._engine.adoption.direct cimport MANY, NOT_TAKEN, Handle, Program, run_direct
from cuplug._engine.adoption.programs cimport make_handle, make_program, take_handle
from cuplug._engine.base.core cimport (
    CUPLUG_OVERLOAD_NO_SPLIT,
    cuplug_call,
    cuplug_element_bytes,
    cuplug_n_elements,
    cuplug_output,
    cuplug_scalar,
    cuplug_set_handle,
    cuplug_tensor,
)
from cuplug._engine.base.runtime cimport (
    cuplug_definition_overload,
    cuplug_entry_error,
    cuplug_entry_number,
)
from cuplug._engine.base.status cimport raise_later
from cuplug._engine.call.define cimport define
from cuplug._engine.cuda.streams cimport order_streams, refuse_capture


ON_DEFAULT = "another (the function launches on the default stream)"


cdef object scalar_value(const cuplug_scalar *scalar, str member):
    if member == "h":
        return <object>(<const Handle *>scalar.handle).opaque
    if member == "f":
        return scalar.f
    if member == "s":
        return <bytes>scalar.s
    return scalar.u if member == "u" else scalar.i


cdef list arrays_of(const cuplug_call *call, bint with_shapes):
    """Return each array's address, number of elements and shape, () unless requested."""
    return [
        (
            <size_t>call.tensors[k].data,
            cuplug_n_elements(&call.tensors[k]),
            shape_of(&call.tensors[k]) if with_shapes else (),
        )
        for k in range(call.n_tensors)
    ]


cdef int give_output(const cuplug_call *call, int at, tuple shape, size_t source) except -1:
    """Allocate an output of unknown size, and copy to it."""
    cdef const cuplug_tensor *x = &call.tensors[at]
    cdef int64_t sizes[64]
    for k, size in enumerate(shape):
        sizes[k] = size
    cdef int status = cuplug_output(call, at, sizes)
    if not status and cuplug_n_elements(x):
        memcpy(x.data, <void *>source, cuplug_n_elements(x) * cuplug_element_bytes(x))
    return status


cdef int give_results(const cuplug_call *call, object adopted, object results) except -1:
    """Pass on the results of a call: a handle, or the outputs of unknown sizes."""
    cdef int status = 0
    if adopted.makes_handle:
        return cuplug_set_handle(call, make_handle(results))
    for at, shape, address, _ in results:
        status = status or give_output(call, at, shape, address)
    return status


cdef int close_handle(const cuplug_call *call, void *handle) noexcept with gil:
    """Destroy the object of a handle, which no call uses any more."""
    try:
        take_handle(<Handle *>handle).close()
        return 0
    except BaseException as raised:
        return raise_later(raised, cuplug_entry_error(call))


cdef tuple shape_of(const cuplug_tensor *x):
    return tuple([x.shape[axis] for axis in range(x.ndim)])


cdef int run_adopted(const cuplug_call *call) noexcept nogil:
    """Run an entry for the host or a GPU, without Python if a thunk is compiled."""
    cdef Program *program = <Program *>call.context
    cdef int64_t numbers[MANY]
    cdef int status = 0 if program.is_tried else prepare(call, program)
    if status:
        return status
    if program.thunk != NULL:
        for k in range(program.n_numbers):
            status = get_number(call, program, k, &numbers[k])
            if status:
                return status
        status = run_direct(program, call, numbers)
        if status != NOT_TAKEN:
            return status
    return run_in_python(call, program)


cdef int prepare(const cuplug_call *call, Program *program) noexcept with gil:
    """Compile the thunk, at the first call."""
    program.is_tried = True
    try:
        (<object>program.adopted).compile(<size_t>program)
        return 0
    except BaseException as raised:
        return raise_later(raised, cuplug_entry_error(call))


cdef int get_number(
    const cuplug_call *call, const Program *program, int at, int64_t *number
) noexcept nogil:
    return cuplug_entry_number(call, &program.terms[at], b"arguments", program.types[at], number)


cdef int run_in_python(const cuplug_call *call, Program *program) noexcept with gil:
    """Make calls that need Python, with cffi."""
    cdef bint on_default
    cdef int64_t number = 0
    cdef int status
    adopted = <object>program.adopted
    try:
        numbers = []
        for k in range(program.n_numbers):
            status = get_number(call, program, k, &number)
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


def define_adopted(
    object adopted, str plugin, str path, str doc, made: PublicCall, str gradient="", str linear=""
) -> Operator:
    """Define an operator that calls `adopted.call(arrays, scalars, numbers, stream)`.

    It is never freed. The numbers are `adopted.numbers`, pairs of a formula.Term and a type's id.
    """
    cdef cuplug_definition_overload row
    cdef bytes signature = adopted.text.encode()
    row.signature = signature
    row.host = NULL
    row.cuda = NULL
    if adopted.place == "host":
        row.host = run_adopted
    else:
        row.cuda = run_adopted
    row.context = make_program(adopted)
    row.reshape = NULL
    row.flags = CUPLUG_OVERLOAD_NO_SPLIT
    row.null_strides_when_contiguous = 0
    row.scans = 0
    row.takes_handles = 1
    cdef bytes gradient_text = gradient.encode(), linear_text = linear.encode()
    row.gradient = <const char *>gradient_text if gradient else NULL
    row.linear = <const char *>linear_text if linear else NULL
    row.close = NULL
    if adopted.makes_handle:
        row.close = close_handle
    return define(&row, 1, plugin, NULL, path, doc, made)
