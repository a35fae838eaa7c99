# SPDX-License-Identifier: Apache-2.0
"""The call behind the generated typed functions."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cimport cuplug._engine.base.core as core
from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ARRAY,
    CUPLUG_ERROR_MEMORY,
    CUPLUG_ERROR_VALUE,
    CUPLUG_MISALIGNED,
    CUPLUG_NEW_HANDLE,
    CUPLUG_OK,
    cuplug_element_bytes,
    cuplug_error,
    cuplug_free_handle,
    cuplug_n_elements,
    cuplug_operator_name,
    cuplug_tensor,
    cuplug_type,
)
from cuplug._engine.base.core_call cimport (
    CUPLUG_MAX_ARGUMENTS,
    cuplug_bind,
    cuplug_copy_input,
    cuplug_frame,
    cuplug_run,
    cuplug_set_output,
    cuplug_wanted_copies,
    cuplug_wanted_shape,
)

from cuplug._engine.base.status cimport raise_error
from cuplug._engine.lookup.bound cimport bound_call, bound_of, check_other_row

# Where a GPU's memory runs out, other libraries are asked for theirs.
import cuplug._engine.cuda.memory

cdef extern from "cuplug/view.h":
    enum:
        CUPLUG_NEW_VIEW
        MAX_VIEW_NDIM "CUPLUG_VIEW_NDIM"

cdef enum:
    MAX_NDIM = 64


cdef int call(
    cuplug_operator **slot, const char *name, const cuplug_argument *arguments,
    uint32_t n_parameters, uint32_t n_outputs,
) except -1 nogil:
    cdef cuplug_error error
    cdef cuplug_frame frame
    cdef const core.cuplug_argument *given = <const core.cuplug_argument *>arguments
    cdef const bound_call *bound = bound_of(<core.cuplug_operator **>slot, name)
    if cuplug_bind(bound.op, given, n_parameters, &frame, &error):
        return raise_error(&error)
    if frame.row != bound.row:
        check_other_row(bound, &frame)
    if frame.copy_mask and cuplug_wanted_copies(&frame):
        return call_with_copies(&frame, given, n_parameters, n_outputs)
    return run(&frame, &given[n_parameters], n_outputs)


cdef int run(
    cuplug_frame *frame, const core.cuplug_argument *outputs, uint32_t n_outputs
) except -1 nogil:
    cdef cuplug_error error
    cdef uint32_t k
    cdef bint has_new = False
    if n_outputs and outputs[0].flags & CUPLUG_NEW_HANDLE:
        frame.made = <core.cuplug_handle **>outputs[0].scalar.handle
        n_outputs = 0
    for k in range(n_outputs):
        if outputs[k].flags & CUPLUG_NEW_VIEW:
            has_new = True
        elif cuplug_set_output(frame, k, &outputs[k], &error):
            return raise_error(&error)
    if has_new:
        return run_and_allocate(frame, outputs, n_outputs)
    if cuplug_run(frame, &error):
        return raise_error(&error)
    return 0


cdef int run_and_allocate(
    cuplug_frame *frame, const core.cuplug_argument *outputs, uint32_t n_outputs
) except -1 nogil:
    """Run with outputs whose sizes are known after it; after an error they are no arrays."""
    cdef cuplug_error error
    cdef uint32_t k
    for k in range(n_outputs):
        if outputs[k].flags & CUPLUG_NEW_VIEW:
            (<View *>outputs[k].scalar.handle)[0] = no_view()
    frame.allocate, frame.user = allocate, <void *>outputs
    if not cuplug_run(frame, &error):
        return 0
    for k in range(n_outputs):
        if outputs[k].flags & CUPLUG_NEW_VIEW:
            free_view(<View *>outputs[k].scalar.handle)
    return raise_error(&error)


cdef int allocate(void *user, cuplug_frame *frame, uint32_t k, cuplug_error *error) noexcept nogil:
    cdef cuplug_tensor *x = &frame.tensors[k]
    cdef const core.cuplug_argument *outputs = <const core.cuplug_argument *>user
    cdef View *place = <View *>outputs[k - frame.n_inputs].scalar.handle
    cdef int axis
    if x.ndim > MAX_VIEW_NDIM:
        return set_error(error, CUPLUG_ERROR_VALUE, b"got an output of %d dimensions, expected at "
                         b"most %d (those of a view)", x.ndim, MAX_VIEW_NDIM)
    x.data = malloc(<size_t>(cuplug_n_elements(x) * cuplug_element_bytes(x)) or 1)
    if x.data == NULL:
        return set_error(error, CUPLUG_ERROR_MEMORY, b"no memory for an output", 0, 0)
    place.data, place.type = x.data, cuplug_type(x)
    place.head, place.rank = CUPLUG_ARGUMENT_ARRAY, <uint32_t>x.ndim
    for axis in range(x.ndim):
        place.shape[axis] = x.shape[axis]
    return CUPLUG_OK


cdef int set_error(
    cuplug_error *error, int status, const char *text, int first, int second
) noexcept nogil:
    error.status = status
    error.message_bytes = <uint32_t>snprintf(
        error.message, sizeof(error.message), text, first, second
    )
    return status


cdef void free_view(View *view) noexcept nogil:
    free(view.data)
    view[0] = no_view()


cdef int call_with_copies(
    cuplug_frame *frame, const core.cuplug_argument *arguments, uint32_t n_parameters,
    uint32_t n_outputs,
) except -1 nogil:
    """Bind again, with copies of the inputs that are strided, misaligned or to be broadcast."""
    cdef core.cuplug_argument inputs[CUPLUG_MAX_ARGUMENTS]
    cdef int64_t *copies[CUPLUG_MAX_ARGUMENTS]
    cdef uint64_t wanted = cuplug_wanted_copies(frame)
    cdef cuplug_error error
    cdef uint32_t k, n_copies = 0
    if frame.odd_mask:
        with gil:
            raise ValueError(
                f"{cuplug_operator_name(frame.op).decode()}: got strides that are no multiples of "
                "the element size, expected multiples of it; pass a copy of the array"
            )
    for k in range(n_parameters):
        inputs[k] = arguments[k]
    try:
        for k in range(frame.n_inputs):
            if wanted >> k & 1:
                copies[n_copies] = copy_input(frame, k, &inputs[frame.parameter[k]])
                n_copies += 1
        if cuplug_bind(frame.op, inputs, n_parameters, frame, &error):
            return raise_error(&error)
        return run(frame, &arguments[n_parameters], n_outputs)
    finally:
        for k in range(n_copies):
            free(copies[k])


cdef int64_t *copy_input(
    const cuplug_frame *frame, uint32_t k, core.cuplug_argument *argument
) except NULL nogil:
    """Let an argument be a copy of input k; return its memory: room for a shape, then the copy."""
    cdef size_t n_bytes = <size_t>cuplug_element_bytes(&argument.tensor)
    cdef int64_t shape[MAX_NDIM]
    cdef int axis, ndim = cuplug_wanted_shape(frame, k, shape)
    cdef int64_t *memory
    for axis in range(ndim):
        n_bytes *= <size_t>shape[axis]
    memory = <int64_t *>malloc(sizeof(shape) + n_bytes)
    if memory == NULL:
        with gil:
            raise MemoryError()
    memcpy(memory, shape, sizeof(shape))
    cuplug_copy_input(frame, k, memory + MAX_NDIM)
    argument.flags &= ~<uint32_t>CUPLUG_MISALIGNED
    argument.tensor.data, argument.tensor.shape = memory + MAX_NDIM, memory
    argument.tensor.strides, argument.tensor.ndim = NULL, ndim
    return memory


cdef int close_handle(cuplug_handle *handle) except -1 nogil:
    cdef cuplug_error error
    if cuplug_free_handle(<core.cuplug_handle *>handle, &error):
        return raise_error(&error)
    return 0
