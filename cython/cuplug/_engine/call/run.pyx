# SPDX-License-Identifier: Apache-2.0
"""One call, from arguments that were read to outputs."""

from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.sequence cimport PySequence_Fast_ITEMS
from cpython.tuple cimport PyTuple_Check, PyTuple_GET_SIZE
from libc.stdint cimport int32_t, uint32_t, uint64_t

from cuplug._engine.arguments.handle cimport handle_of
from cuplug._engine.arguments.inputs cimport read_again, read_arguments
from cuplug._engine.arguments.outputs cimport (
    allocate_output, copy_arguments, copy_items, count_writes,
)
from cuplug._engine.arguments.origins cimport MAX_ORIGINS, note_origin, set_origins
from cuplug._engine.arguments.outputs cimport finish_output
from cuplug._engine.arguments.scalar_arrays cimport find_first, unwrap_scalar_arrays
from cuplug._engine.base.core cimport (
    CUPLUG_ALL_GPUS, CUPLUG_ARGUMENT_NONE, CUPLUG_CPU, CUPLUG_CUDA,
    CUPLUG_CUDA_MANAGED, cuplug_argument, cuplug_device, cuplug_error, cuplug_operator,
    cuplug_operator_name, cuplug_operator_overload, cuplug_overload_entry, cuplug_tensor,
)
from cuplug._engine.base.core_call cimport (
    CUPLUG_COPY_ITEMS, cuplug_bind, cuplug_bind_overload, cuplug_check_device, cuplug_frame,
    cuplug_free_blocks, cuplug_keep_layout, cuplug_leave_out, cuplug_n_rounding_changes,
    cuplug_run, cuplug_set_output, cuplug_signature, cuplug_required_copies,
)
from cuplug._engine.base.status cimport raise_error, raise_later
from cuplug._engine.call.last_call cimport is_verbose, note_last, print_run
from cuplug._engine.cuda.placement cimport default_device, has_default, parse_places
from cuplug._engine.cuda.streams cimport in_graph
from cuplug._engine.host.progress cimport report_progress, watched
from cuplug._engine.interop.kinds cimport DLPACK
from cuplug._engine.interop.reading cimport MAX_READ, keep, arbitrary_code_ran, reading
from cuplug._engine.interop.stream_order cimport enter_stream, leave_stream
from cuplug._engine.interop.torch_scratch cimport free_scratch, lend_scratch, torch_scratch
from cuplug._engine.interop.torch_writes cimport count_write

from cuplug._engine.call.output_tuples import outputs_class
from cuplug.errors import PluginError

# The data of the core's callbacks: reports of progress, requests for workspaces, and for the memory
# of outputs of unknown size.
ctypedef struct deferred_outputs:
    watched watched  # first: the only field that the reports use
    torch_scratch scratch
    reading *r
    PyObject *outputs  # a list, borrowed

cdef dict result_types = {}  # by the addresses of signatures, which live as long as the process

def n_rounding_changes() -> int:
    """Return the number of entries that returned with changed rounding, flushing or traps."""
    return cuplug_n_rounding_changes()


cdef object run_operator(
    cuplug_operator *op, reading *r, uint32_t n, PyObject *out, PyObject *device
):
    cdef cuplug_frame frame
    cdef cuplug_error error
    cdef deferred_outputs late
    cdef uint64_t origins[MAX_ORIGINS]
    cdef uint32_t n_outputs, n_given = 0
    cdef cuplug_device place
    cdef bint is_single
    cdef int status
    place.type = 0
    if out != NULL and <object>out is None:
        out = NULL
    if out != NULL:
        n_given = read_outputs(r, n, out)
    if device != NULL and <object>device is not None:
        place = read_place(r, op, <object>device)
    if r.must_reread or r.n_scalar_arrays:
        reread_arguments(op, r, n, n_given)  # no foreign code runs from here on
    if bind_arguments(op, r, n, &frame, &error):
        raise_error(&error)
    if out == NULL and frame.n_inputs and frame.tensors[0].strides != NULL:
        cuplug_keep_layout(&frame)
    if frame.blocks != NULL:
        keep_blocks(r, &frame)
    if place.type or has_default or not frame.home.type:
        choose_device(&frame, place)
    if frame.copy_mask and make_copies(r, &frame):
        if bind_arguments(op, r, n, &frame, &error):
            raise_error(&error)
        if frame.blocks != NULL:
            keep_blocks(r, &frame)
        choose_device(&frame, place)
    n_outputs = frame.n_tensors - frame.n_inputs
    if frame.signature.host_arrays:
        find_first(r, frame.signature, n)
    is_single = (
        n_outputs == 1 and n_given == (out != NULL) and not frame.signature.optional_outputs
    )
    if is_single and frame.n_bytes[frame.n_inputs] >= 0:
        result = one_output(r, &frame, 0, n, out)
    elif n_outputs == 0 and out == NULL:
        result = None if frame.signature.made == NULL else handle_of(&frame)
    else:
        result = several_outputs(r, &frame, n_outputs, n, out)
        late.r = r
        late.outputs = <PyObject *>result
        frame.allocate = allocate_deferred_output
        frame.user = &late
    if r.has_torch and not (is_single and out != NULL and counts_one(r, &frame, n)):
        count_writes(r, &frame, n, out != NULL)
    if r.device_kind != NULL or r.given_stream != NULL:
        enter_stream(r, &frame)
    if frame.home.type == CUPLUG_CUDA:
        set_origins(r, &frame, n, n_given, origins)
    if frame.runs_with_gil and frame.device.type != CUPLUG_CUDA:
        status = cuplug_run(&frame, &error)
    else:
        late.watched.what = frame.signature.name
        late.watched.task = -1
        late.scratch.n = 0
        frame.progress = report_progress
        frame.user = &late
        if r.device_kind != NULL and r.device_kind.is_torch and frame.home.type == CUPLUG_CUDA:
            if not in_graph(frame.home.id):  # PyTorch must not reuse memory of cuplug's graphs
                frame.keep_scratch = lend
        with nogil:
            status = cuplug_run(&frame, &error)
            free_scratch(&late.scratch)
    if status:
        raise_error(&error)
    if frame.device.type == CUPLUG_CUDA and r.n_streams:
        leave_stream(r, &frame)
    if frame.origin:
        note_origin(r, &frame, n, result)
    note_last(&frame)
    if is_verbose:
        print_run(&frame)
    if r.first_kind != NULL and r.first_kind.protocol == DLPACK and n_outputs:
        result = finish_outputs(r, frame.signature.name, result, n, out)
    return result if type(result) is not list else as_returned(result, &frame)


cdef inline bint counts_one(reading *r, const cuplug_frame *frame, uint32_t n) noexcept:
    """Count the write to the only output; return False if other writes must be counted."""
    cdef uint32_t i
    for i in range(n):
        if frame.signature.parameters[i].is_inout:
            return False
    return count_write(r.objects[n], r.first_kind)


cdef inline int bind_arguments(
    cuplug_operator *op, reading *r, uint32_t n, cuplug_frame *frame, cuplug_error *error
) noexcept:
    cdef int32_t n_matched = 0
    if r.row < 0:
        return cuplug_bind(op, r.args, n, frame, error)
    return cuplug_bind_overload(op, <uint32_t>r.row, r.args, n, 1, frame, &n_matched, error)


cdef int keep_blocks(reading *r, cuplug_frame *frame) except -1:
    """Let the memory of lists live until the call ends."""
    try:
        keep(r, PyCapsule_New(frame.blocks, NULL, free_blocks))
    except MemoryError:
        cuplug_free_blocks(frame.blocks)
        raise
    return 0


cdef void free_blocks(object capsule) noexcept:
    cuplug_free_blocks(PyCapsule_GetPointer(capsule, NULL))


cdef int reread_arguments(cuplug_operator *op, reading *r, uint32_t n, uint32_t n_given) except -1:
    if r.n_scalar_arrays:
        unwrap_scalar_arrays(op, r, n)
    if r.must_reread:
        read_again(r, n + n_given)
    return 0


cdef bint make_copies(reading *r, cuplug_frame *frame) except -1:
    """Copy the inputs that need it."""
    cdef uint64_t wanted = cuplug_required_copies(frame)
    if not wanted:
        return False
    frame.copy_mask = wanted & ~CUPLUG_COPY_ITEMS
    copy_arguments(r, frame)
    if wanted & CUPLUG_COPY_ITEMS:
        copy_items(r, frame)
    return True


cdef object as_returned(list result, const cuplug_frame *frame):
    """Return None, the single output, or a tuple of several: a named one if they have names."""
    cdef const cuplug_signature *s = frame.signature
    cdef uint32_t k
    for k in range(len(result)):
        if result[k] is None and frame.tensors[frame.n_inputs + k].ndim >= 0:
            name = (<const char *>s.name).decode()
            raise PluginError(f"{name}: the plugin left an output without memory")
    if len(result) < 2:
        return result[0] if result else None
    made = result_types.get(<size_t>s, ())
    if made == ():
        made = result_types.setdefault(<size_t>s, result_type(s))
    return tuple(result) if made is None else made._make(result)


cdef object result_type(const cuplug_signature *s):
    """Return the named tuple of several outputs that all have names; else None."""
    names = [s.parameters[s.n_parameters + k].name.decode() for k in range(s.n_outputs)]
    return outputs_class(s.name.decode(), tuple(names)) if all(names) else None


cdef cuplug_device read_place(reading *r, const cuplug_operator *op, object device) except *:
    if type(device) is not str and type(device) is not int:
        arbitrary_code_ran(r)
    return parse_places(cuplug_operator_name(op).decode(), device)


cdef int choose_device(cuplug_frame *frame, cuplug_device given) except -1:
    cdef cuplug_device by_default
    cdef cuplug_error error
    if given.type:
        frame.device = given
    elif has_default and frame.home.type != CUPLUG_CUDA:
        default_device(&by_default)
        if by_default.type:
            frame.device = by_default
    if frame.device.id == CUPLUG_ALL_GPUS and cuplug_check_device(frame, &error):
        raise_error(&error)
    if not frame.home.type and not frame.device.type and frame.n_tensors > frame.n_inputs:
        # Outputs without inputs need memory on the device of the run.
        row = cuplug_operator_overload(frame.op, frame.row)
        on_host = cuplug_overload_entry(row, CUPLUG_CPU) != NULL
        frame.device.type = CUPLUG_CPU if on_host else CUPLUG_CUDA
        frame.device.id = 0
    return 0


cdef uint32_t read_outputs(reading *r, uint32_t n, PyObject *out) except? 0xFFFFFFFF:
    """Read the outputs given as arguments after the first n. Return their number."""
    cdef uint32_t n_given
    if not PyTuple_Check(<object>out):
        read_arguments(&out, 1, r, n)
        return 1
    # Outputs beyond this limit exceed the number of every operator.
    n_given = <uint32_t>min(PyTuple_GET_SIZE(<tuple>out), MAX_READ - n)
    read_arguments(PySequence_Fast_ITEMS(<tuple>out), n_given, r, n)
    return n_given


cdef inline bint is_given(const reading *r, uint32_t at, const PyObject *out) noexcept:
    return out != NULL and r.args[at].kind != CUPLUG_ARGUMENT_NONE


cdef inline object one_output(
    reading *r, cuplug_frame *frame, uint32_t k, uint32_t n, const PyObject *out
):
    """Return output k, counted from 0: the caller's, or a new array."""
    cdef cuplug_error error
    cdef const cuplug_argument *a = &r.args[n + k]
    if not is_given(r, n + k, out):
        return allocate_output(r, frame, frame.n_inputs + k)
    if cuplug_set_output(frame, k, a, &error):
        raise_error(&error)
    if not frame.home.type:
        place_by_output(frame, &a.tensor)
    return <object>r.objects[n + k]


cdef void place_by_output(cuplug_frame *frame, const cuplug_tensor *x) noexcept:
    """Set the device of a call without array inputs to its output's device."""
    cdef bint on_cuda = x.device.type == CUPLUG_CUDA or x.device.type == CUPLUG_CUDA_MANAGED
    frame.device.type = CUPLUG_CUDA if on_cuda else CUPLUG_CPU
    frame.device.id = x.device.id if on_cuda else 0


cdef list several_outputs(
    reading *r, cuplug_frame *frame, uint32_t n_outputs, uint32_t n, const PyObject *out
):
    """Return the outputs as a list, with None for sizes that are unknown before the run."""
    cdef uint32_t k
    if out != NULL:
        check_number(frame, n_outputs, <object>out)
    if frame.signature.optional_outputs | r.returned:
        leave_out(r, frame, n_outputs, n, out)
    result = [None] * n_outputs
    for k in range(n_outputs):  # they may determine the device of the others
        if is_given(r, n + k, out):
            result[k] = one_output(r, frame, k, n, out)
    for k in range(n_outputs):
        if is_given(r, n + k, out) or frame.tensors[frame.n_inputs + k].ndim < 0:
            continue
        if frame.n_bytes[frame.n_inputs + k] >= 0:
            result[k] = one_output(r, frame, k, n, out)
    return result


cdef int note_returned(reading *r, object operator, object keyword, object value) except -1:
    """Store an argument `return_<name>`, which requests an optional output."""
    if value is not True and value is not False:
        raise TypeError(f"{operator.name}: {keyword}: got {value!r}, expected True or False")
    if value:
        r.returned |= <uint64_t>1 << <uint32_t>operator.returns[keyword]
    return 0


cdef int leave_out(
    reading *r, cuplug_frame *frame, uint32_t n_outputs, uint32_t n, const PyObject *out
) except -1:
    """Omit the optional outputs that are neither given nor requested."""
    cdef uint64_t optional = frame.signature.optional_outputs
    cdef uint32_t k
    if r.returned & ~optional:
        refuse_returned(frame, r.returned & ~optional)
    for k in range(n_outputs):
        if (optional & ~r.returned) >> k & 1 and not is_given(r, n + k, out):
            cuplug_leave_out(frame, k)
    return 0


cdef int refuse_returned(const cuplug_frame *frame, uint64_t asked) except -1:
    cdef uint32_t k = 0
    while not asked >> k & 1:
        k += 1
    name = (<const char *>frame.signature.name).decode()
    raise TypeError(
        f"{name}: got a request for output {k}, expected an optional output of this overload"
    )


cdef int check_number(const cuplug_frame *frame, uint32_t n, object outs) except -1:
    name = (<const char *>frame.signature.name).decode()
    if not n:
        raise TypeError(f"{name}: out: got an array, expected none: it has no outputs")
    if n == 1 and not isinstance(outs, tuple):
        return 0
    if not isinstance(outs, tuple) or len(outs) != n:
        raise TypeError(f"{name}: out: got {describe(outs)}, expected a tuple of {n} arrays")
    return 0


cdef object describe(object outs):
    return f"a tuple of {len(outs)}" if isinstance(outs, tuple) else type(outs).__name__


cdef int allocate_deferred_output(
    void *user, cuplug_frame *frame, uint32_t tensor, cuplug_error *error
) noexcept with gil:
    cdef deferred_outputs *late = <deferred_outputs *>user
    try:
        (<list>late.outputs)[tensor - frame.n_inputs] = allocate_output(late.r, frame, tensor)
        return 0
    except BaseException as raised:
        return raise_later(raised, error)


cdef int lend(
    void *user, const cuplug_frame *frame, uint32_t number, uint64_t n_bytes, void **pointer,
    cuplug_error *error
) noexcept nogil:
    return lend_scratch(
        &(<deferred_outputs *>user).scratch, frame, number, n_bytes, pointer, error
    )


cdef object finish_outputs(
    reading *r, const char *name, object result, uint32_t n, const PyObject *out
):
    """Allocate the outputs that were not given."""
    cdef uint32_t k
    if type(result) is not list:
        return result if is_given(r, n, out) else finish_output(r, name, result)
    for k in range(len(result)):
        if not is_given(r, n + k, out):
            result[k] = finish_output(r, name, result[k])
    return result
