# SPDX-License-Identifier: Apache-2.0
"""The call in the generated typed functions, on the host and on GPUs."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cimport cuplug._engine.base.core as core
from cuplug._engine.array.buffer cimport Buffer
from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ARRAY,
    CUPLUG_ARGUMENT_LIST,
    CUPLUG_ARGUMENT_NONE,
    CUPLUG_CPU,
    CUPLUG_CUDA,
    CUPLUG_CUDA_MANAGED,
    CUPLUG_ERROR_MEMORY,
    CUPLUG_ERROR_VALUE,
    CUPLUG_MISALIGNED,
    CUPLUG_NEW_HANDLE,
    CUPLUG_OK,
    CUPLUG_READ_ONLY,
    CUPLUG_UINT8,
    CUPLUG_UNALIGNED_STRIDES,
    cuplug_allocate_device,
    cuplug_element_bytes,
    cuplug_error,
    cuplug_free_device,
    cuplug_free_handle,
    cuplug_n_elements,
    cuplug_operator_name,
    cuplug_tensor,
    cuplug_type,
)
from cuplug._engine.base.core_call cimport (
    CUPLUG_MAX_ARGUMENTS,
    cuplug_bind,
    cuplug_bound_call,
    cuplug_call_again,
    cuplug_call_otherwise,
    cuplug_copy_array,
    cuplug_copy_input,
    cuplug_frame,
    cuplug_free_blocks,
    cuplug_leave_out,
    cuplug_run,
    cuplug_set_output,
    cuplug_required_copies,
    cuplug_required_shape,
)

from cuplug._engine.base.status cimport raise_error
from cuplug._engine.cuda.streams cimport has_blocks, work_stream
from cuplug._engine.lookup.bound cimport bound_of, check_other_row

# If a GPU's memory runs out, other libraries are requested to release theirs.
import cuplug._engine.cuda.memory

cdef extern from "cuplug/view.h" nogil:
    """
    #define cuplug_load_slot(slot) \
      (const cuplug_bound_call *)__atomic_load_n((slot), __ATOMIC_ACQUIRE)
    """
    const cuplug_bound_call *load_slot "cuplug_load_slot"(cuplug_operator **slot)
    void set_items "cuplug_set_items"(cuplug_argument *of, cuplug_argument *items, Shape *shapes)
    enum:
        CUPLUG_NEW_VIEW
        GPU_SHIFT "CUPLUG__VIEW_GPU_SHIFT"
        MAX_VIEW_NDIM "CUPLUG_VIEW_NDIM"

cdef enum:
    MAX_NDIM = 64


cdef int call(
    cuplug_operator **slot, const char *name, const cuplug_argument *arguments,
    uint32_t n_parameters, uint32_t n_outputs,
) except -1 nogil:
    return call_on_stream(slot, name, arguments, n_parameters, n_outputs, NULL)


cdef int call_on_stream(
    cuplug_operator **slot, const char *name, const cuplug_argument *arguments,
    uint32_t n_parameters, uint32_t n_outputs, void *stream,
) except -1 nogil:
    cdef const core.cuplug_argument *given = <const core.cuplug_argument *>arguments
    cdef const cuplug_bound_call *bound = load_slot(slot)
    if bound != NULL and stream == NULL:
        return cuplug_call_again(bound, given, n_parameters, n_outputs)
    return call_slot(slot, name, given, n_parameters, n_outputs, stream)


cdef const cuplug_bound_call *found(cuplug_operator **slot, const char *name) except NULL nogil:
    return bound_of(
        <core.cuplug_operator **>slot, name, <cuplug_call_otherwise *>call_otherwise
    )


cdef int call_slot(
    cuplug_operator **slot, const char *name, const core.cuplug_argument *given,
    uint32_t n_parameters, uint32_t n_outputs, void *stream,
) except -1 nogil:
    cdef cuplug_frame frame
    return bind_and_run(&frame, found(slot, name), given, n_parameters, n_outputs, stream)


cdef int call_otherwise(
    const cuplug_bound_call *bound, const core.cuplug_argument *given, uint32_t n_parameters,
    uint32_t n_outputs, const cuplug_error *failed,
) except -1 nogil:
    cdef cuplug_frame frame
    if failed != NULL:
        return raise_copy(failed)
    return bind_and_run(&frame, bound, given, n_parameters, n_outputs, NULL)


cdef int raise_copy(const cuplug_error *failed) except -1 nogil:
    cdef cuplug_error error = failed[0]  # which a call of the code that this runs would replace
    return raise_error(&error)


cdef inline int bind_and_run(
    cuplug_frame *frame, const cuplug_bound_call *bound, const core.cuplug_argument *given,
    uint32_t n_parameters, uint32_t n_outputs, void *stream,
) except -1 nogil:
    cdef cuplug_error error
    if cuplug_bind(bound.op, given, n_parameters, frame, &error):
        return raise_error(&error)
    if frame.row != bound.row:
        check_other_row(bound, frame)
    if frame.home.type != CUPLUG_CPU or stream != NULL:
        enter_stream(frame, &given[n_parameters], n_outputs, stream)
    if frame.copy_mask and frame.home.type != CUPLUG_CUDA and cuplug_required_copies(frame):
        return call_with_copies(frame, given, n_parameters, n_outputs)
    return run(frame, &given[n_parameters], n_outputs)


cdef int call_with_lists(
    cuplug_operator **slot, const char *name, cuplug_argument *arguments,
    uint32_t n_parameters, uint32_t n_outputs, void *stream,
) except -1 nogil:
    cdef core.cuplug_argument *given = <core.cuplug_argument *>arguments
    cdef cuplug_frame frame
    cdef void *items = NULL
    frame.blocks = NULL
    try:
        items = fill_lists(given, n_parameters)
        return bind_and_run(&frame, found(slot, name), given, n_parameters, n_outputs, stream)
    finally:
        if frame.blocks != NULL:
            cuplug_free_blocks(frame.blocks)
        free(items)


cdef void *fill_lists(core.cuplug_argument *arguments, uint32_t n) except NULL nogil:
    """Make lists of arguments from lists of views and of numbers, in the returned memory."""
    cdef uint32_t k, n_items = 0
    cdef cuplug_argument *item
    cdef Shape *shape
    for k in range(n):
        if arguments[k].kind == CUPLUG_ARGUMENT_LIST:
            n_items += arguments[k].list.n
    shape = <Shape *>allocated(n_items * (sizeof(Shape) + sizeof(core.cuplug_argument)))
    result, item = shape, <cuplug_argument *>(shape + n_items)
    for k in range(n):
        if arguments[k].kind == CUPLUG_ARGUMENT_LIST:
            set_items(<cuplug_argument *>&arguments[k], item, shape)
            item += arguments[k].list.n
            shape += arguments[k].list.n
    return result


cdef int enter_stream(
    cuplug_frame *frame, const core.cuplug_argument *outputs, uint32_t n_outputs, void *stream
) except -1 nogil:
    """Set the stream of a call; without arrays among its inputs, it runs on its outputs' device."""
    cdef uint32_t k
    cdef core.cuplug_device place = frame.home
    for k in range(n_outputs if not place.type else 0):
        if outputs[k].kind == CUPLUG_ARGUMENT_ARRAY:
            place = outputs[k].tensor.device
            frame.device.id = place.id
            frame.device.type = CUPLUG_CPU
            if place.type == CUPLUG_CUDA or place.type == CUPLUG_CUDA_MANAGED:
                frame.device.type = CUPLUG_CUDA
            place = frame.device
            break
    if place.type == CUPLUG_CUDA:
        frame.stream = stream if stream != NULL else current_stream(place.id)
    elif stream != NULL:
        with gil:
            raise ValueError(
                f"{cuplug_operator_name(frame.op).decode()}: stream: got one for arrays of the "
                "host, expected arrays on a GPU"
            )
    return 0


cdef void *current_stream(int32_t device) except? NULL nogil:
    if not has_blocks:
        return NULL
    with gil:
        return work_stream(device)


cdef const Tensor *tensor_of(object array) noexcept nogil:
    return NULL if array is None else <const Tensor *>&(<Buffer>array).tensor


cdef View view_of_array(object array) noexcept nogil:
    cdef View view = view_of_tensor(tensor_of(array))
    if array is not None and (<Buffer>array).is_read_only:
        view.head |= <uint64_t>CUPLUG_READ_ONLY << 32
    return view


cdef inline int run(
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
        elif (
            outputs[k].kind == CUPLUG_ARGUMENT_NONE and frame.signature.optional_outputs >> k & 1
        ):
            cuplug_leave_out(frame, k)
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
    """Run with outputs whose sizes are known after the run; an error leaves them without arrays."""
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
    cdef uint64_t n_bytes = <uint64_t>(cuplug_n_elements(x) * cuplug_element_bytes(x))
    cdef int32_t gpu = x.device.id if x.device.type == CUPLUG_CUDA else -1
    cdef int axis, status
    if x.ndim > MAX_VIEW_NDIM:
        return set_error(error, CUPLUG_ERROR_VALUE, b"got an output of %d dimensions, expected at "
                         b"most %d (those of a view)", x.ndim, MAX_VIEW_NDIM)
    if gpu >= 0:
        status = cuplug_allocate_device(gpu, n_bytes or 1, frame.stream, &x.data, error)
        if status:
            return status
    else:
        x.data = malloc(<size_t>n_bytes or 1)
    if x.data == NULL:
        return set_error(error, CUPLUG_ERROR_MEMORY, b"no memory for an output", 0, 0)
    place.data, place.type = x.data, cuplug_type(x)
    place.head = CUPLUG_ARGUMENT_ARRAY
    place.rank = <uint32_t>x.ndim | <uint32_t>(gpu + 1) << GPU_SHIFT
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
    cdef int32_t gpu = <int32_t>(view.rank >> GPU_SHIFT) - 1
    if gpu < 0:
        free(view.data)
    else:
        cuplug_free_device(gpu, view.data, NULL, NULL)
    view[0] = no_view()


cdef int call_with_copies(
    cuplug_frame *frame, const core.cuplug_argument *arguments, uint32_t n_parameters,
    uint32_t n_outputs,
) except -1 nogil:
    """Bind again with copies of inputs, first of those whose strides are in bytes."""
    cdef core.cuplug_argument inputs[CUPLUG_MAX_ARGUMENTS]
    cdef core.cuplug_argument *x
    cdef void *copies[2 * CUPLUG_MAX_ARGUMENTS]
    cdef cuplug_error error
    cdef uint64_t wanted = frame.unaligned_stride_mask
    cdef uint32_t k, step, n_copies = 0
    for k in range(n_parameters):
        inputs[k] = arguments[k]
    try:
        for step in range(0 if wanted else 1, 2):
            wanted = cuplug_required_copies(frame) if step else wanted
            for k in range(frame.n_inputs):
                if wanted >> k & 1:
                    x = argument_of(frame, k, inputs)
                    copies[n_copies] = copy_input(frame, k, x) if step else copy_bytes(x)
                    n_copies += 1
            if frame.blocks != NULL:
                cuplug_free_blocks(frame.blocks)
            if cuplug_bind(frame.op, inputs, n_parameters, frame, &error):
                return raise_error(&error)
        return run(frame, &arguments[n_parameters], n_outputs)
    finally:
        for k in range(n_copies):
            free(copies[k])


cdef core.cuplug_argument *argument_of(
    const cuplug_frame *frame, uint32_t k, core.cuplug_argument *inputs
) noexcept nogil:
    """Return the argument for input k, or the item of a list, from fill_lists."""
    cdef core.cuplug_argument *given = &inputs[frame.parameter[k]]
    cdef uint32_t item = 0
    if given.kind != CUPLUG_ARGUMENT_LIST:
        return given
    while item < k and frame.parameter[k - item - 1] == frame.parameter[k]:
        item += 1
    return &(<core.cuplug_argument *>given.list.items)[item]


cdef void *copy_bytes(core.cuplug_argument *argument) except NULL nogil:
    """Let an argument whose strides are in bytes be a C-contiguous copy; return its memory."""
    cdef cuplug_tensor copy, x = argument.tensor
    cdef int64_t[MAX_VIEW_NDIM + 1] shape, strides
    memcpy(shape, x.shape, <size_t>x.ndim * sizeof(int64_t))
    memcpy(strides, x.strides, <size_t>x.ndim * sizeof(int64_t))
    shape[x.ndim], strides[x.ndim] = cuplug_element_bytes(&x), 1
    x.ndim, x.shape, x.strides = x.ndim + 1, shape, strides
    x.dtype.code, x.dtype.bits = CUPLUG_UINT8 >> 24, 8
    copy = x
    copy.strides, copy.data = NULL, allocated(<size_t>cuplug_n_elements(&x))
    cuplug_copy_array(&copy, &x)
    argument.flags &= ~<uint32_t>(CUPLUG_MISALIGNED | CUPLUG_UNALIGNED_STRIDES)
    argument.tensor.data, argument.tensor.strides = copy.data, NULL
    return copy.data


cdef void *allocated(size_t n_bytes) except NULL nogil:
    cdef void *memory = malloc(n_bytes or 1)
    if memory == NULL:
        with gil:
            raise MemoryError()
    return memory


cdef void *copy_input(
    const cuplug_frame *frame, uint32_t k, core.cuplug_argument *argument
) except NULL nogil:
    """Copy input k into an argument; return its memory: room for a shape, then the copy."""
    cdef size_t n_bytes = <size_t>cuplug_element_bytes(&argument.tensor)
    cdef int64_t shape[MAX_NDIM]
    cdef int axis, ndim = cuplug_required_shape(frame, k, shape)
    cdef int64_t *memory
    for axis in range(ndim):
        n_bytes *= <size_t>shape[axis]
    memory = <int64_t *>allocated(sizeof(shape) + n_bytes)
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
