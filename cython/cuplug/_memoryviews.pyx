# SPDX-License-Identifier: Apache-2.0
"""The call behind the generated typed-memoryview functions."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from cuplug._engine.base.core cimport cuplug_error, cuplug_free_handle, cuplug_handle
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

cdef enum:
    MAX_NDIM = 64


cdef int call(
    cuplug_operator **slot, const char *name, const cuplug_argument *arguments,
    uint32_t n_parameters, uint32_t n_outputs,
) except -1 nogil:
    cdef cuplug_error error
    cdef cuplug_frame frame
    cdef const bound_call *bound = bound_of(slot, name)
    if cuplug_bind(bound.op, arguments, n_parameters, &frame, &error):
        return raise_error(&error)
    if frame.row != bound.row:
        check_other_row(bound, &frame)
    if frame.copy_mask and cuplug_wanted_copies(&frame):
        return call_with_copies(&frame, arguments, n_parameters, n_outputs)
    return run(&frame, &arguments[n_parameters], n_outputs)


cdef int run(
    cuplug_frame *frame, const cuplug_argument *outputs, uint32_t n_outputs
) except -1 nogil:
    cdef cuplug_error error
    cdef uint32_t k
    if n_outputs and outputs[0].flags & CUPLUG_NEW_HANDLE:
        frame.made = <cuplug_handle **>outputs[0].scalar.handle
        n_outputs = 0
    for k in range(n_outputs):
        if cuplug_set_output(frame, k, &outputs[k], &error):
            return raise_error(&error)
    if cuplug_run(frame, &error):
        return raise_error(&error)
    return 0


cdef int call_with_copies(
    cuplug_frame *frame, const cuplug_argument *arguments, uint32_t n_parameters,
    uint32_t n_outputs,
) except -1 nogil:
    """Bind again, with copies of the inputs that are misaligned or to be broadcast."""
    cdef cuplug_argument inputs[CUPLUG_MAX_ARGUMENTS]
    cdef int64_t *copies[CUPLUG_MAX_ARGUMENTS]
    cdef uint64_t wanted = cuplug_wanted_copies(frame)
    cdef cuplug_error error
    cdef uint32_t k, n_copies = 0
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
    const cuplug_frame *frame, uint32_t k, cuplug_argument *argument
) except NULL nogil:
    """Let an argument be a copy of input k; return its memory: room for a shape, then the copy."""
    cdef size_t n_bytes = argument.tensor.dtype.bits // 8
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
    argument.tensor.ndim = ndim
    return memory


cdef int close_handle(cuplug_handle *handle) except -1 nogil:
    cdef cuplug_error error
    return raise_error(&error) if cuplug_free_handle(handle, &error) else 0
