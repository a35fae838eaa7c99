# SPDX-License-Identifier: Apache-2.0
"""Launches of kernels that were compiled at run time."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from cuplug._engine.array.array cimport Array
from cuplug._engine.array.buffer cimport origin_of
from cuplug._engine.base.core cimport CUPLUG_CUDA, cuplug_error, cuplug_query_stream
from cuplug._engine.base.core_call cimport cuplug_frame
from cuplug._engine.base.core_call cimport cuplug_check_origin, cuplug_query_attribute
from cuplug._engine.base.runtime cimport cuplug_join_origins
from cuplug._engine.base.runtime cimport (
    CUPLUG_COOPERATIVE,
    CUPLUG_PROGRAMMATIC,
    cuplug_grid,
    cuplug_kernel,
    cuplug_kernel_info,
    cuplug_launch_kernel,
    cuplug_max_active_blocks,
    cuplug_opt_in_shared,
    cuplug_query_kernel,
)
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.base.vectorcall cimport (
    PyVectorcall_Call,
    PyVectorcall_NARGS,
    enable_vectorcall,
    vectorcallfunc,
)
from cuplug._engine.cuda.streams cimport parse_stream, refuse_capture, work_stream
from cuplug._engine.interop.reading cimport reading, start_reading
from cuplug._engine.interop.stream_order cimport (
    add_current_stream,
    enter_stream,
    leave_stream,
    wait_for_streams,
)
from cuplug._source.kernels.function cimport MAX_PARAMETERS, Function, cuplug_load_kernel, size_of
from cuplug._source.kernels.parameters cimport (
    convert,
    count_writes,
    launch_state,
    parameter_value,
)
from cuplug._source.kernels.host_arguments cimport Block, Staged, check_targets, stage, unstage


from cuplug._engine.base import nvtx_ranges

cdef bint has_ranges = nvtx_ranges.is_on
cdef enum:
    USUAL_SHARED_BYTES = 49152  # the maximum for a block without opting in
    COOPERATIVE_LAUNCH = 95  # a device attribute


@cython.final
cdef class Launch:
    """A kernel with its grid, block, shared memory and stream: call it with the arguments."""

    cdef vectorcallfunc vectorcall
    cdef Function kernel
    cdef cuplug_grid grid
    cdef void *stream
    cdef object stream_owner
    cdef uint64_t checked  # bit d: the grid was checked on GPU d

    def __cinit__(
        self, Function kernel not None, tuple configuration not None, cluster=None,
        bint is_cooperative=False, bint is_programmatic=False
    ):
        self.kernel = kernel
        parse_grid(kernel.name, configuration, &self.grid)
        if cluster is not None:
            set_sizes(kernel.name, "cluster", cluster, self.grid.cluster)
        if is_cooperative:
            self.grid.flags |= CUPLUG_COOPERATIVE
        if is_programmatic:
            self.grid.flags |= CUPLUG_PROGRAMMATIC
        if len(configuration) > 3 and configuration[3] is not None:
            self.stream = parse_stream(kernel.name, configuration[3])
            self.stream_owner = configuration[3]
        self.vectorcall = <vectorcallfunc>call_launch

    def __call__(self, *args, **keywords) -> None:
        return PyVectorcall_Call(self, args, keywords)

    def __repr__(self):
        grid = tuple([self.grid.blocks[k] for k in range(3)])
        block = tuple([self.grid.threads[k] for k in range(3)])
        return f"<launch of {self.kernel.name}, grid {grid}, block {block}>"


cdef int parse_grid(str name, tuple configuration, cuplug_grid *grid) except -1:
    """Read blocks, threads per block and bytes of shared memory from (grid, block[, shared])."""
    memset(grid, 0, sizeof(cuplug_grid))
    set_sizes(name, "grid", configuration[0], grid.blocks)
    set_sizes(name, "block", configuration[1], grid.threads)
    if len(configuration) > 2 and configuration[2] is not None:
        grid.shared_bytes = size_of(name, "shared", configuration[2])
    return 0


cdef int set_sizes(str name, str what, object given, uint32_t *sizes) except -1:
    cdef int k
    parts = given if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"{name}: {what}: got {len(parts)} sizes, expected 1 to 3")
    for k in range(3):
        sizes[k] = size_of(name, what, parts[k]) if k < len(parts) else 1
    return 0


cdef Launch nothing = None  # its fields are not read
enable_vectorcall(Launch, <char *>&nothing.vectorcall - <char *><PyObject *>nothing)


cdef object call_launch(
    PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *keywords
):
    cdef Launch self = <Launch>callable
    cdef launch_state state
    if keywords != NULL and len(<tuple>keywords):
        raise TypeError(f"{self.kernel.name}: got keywords, expected arguments by position")
    start_reading(&state.r)
    state.name = <PyObject *>self.kernel.name
    state.name_text = self.kernel.text
    state.device = -1
    state.n_written = 0
    if has_ranges:
        nvtx_ranges.push(self.kernel.name)
    try:
        return run(self, &state, args, PyVectorcall_NARGS(nargsf))
    finally:
        Py_XDECREF(state.r.kept)
        if has_ranges:
            nvtx_ranges.pop()


cdef object run(Launch launch, launch_state *state, PyObject *const *args, Py_ssize_t n):
    """Convert the arguments, find device and stream, launch."""
    cdef parameter_value[MAX_PARAMETERS] values
    cdef void *parameters[MAX_PARAMETERS]
    cdef Function kernel = launch.kernel
    cdef cuplug_kernel *loaded = cuplug_load_kernel(&kernel.kernel)
    cdef Py_ssize_t k
    cdef cuplug_frame frame
    cdef cuplug_error error
    cdef list blocks = None
    cdef bint is_staged = False
    cdef uint64_t origin
    cdef int status
    if loaded == NULL and kernel.types is None:
        loaded = kernel.load(kernel.device)
    if n != kernel.n_parameters:
        refuse_number(kernel, n)
    for k in range(n):
        if isinstance(<object>args[k], Staged):
            is_staged = True
        else:
            convert(state, k, kernel.codes[k], args[k], &values[k], &parameters[k])
    if state.r.has_torch:
        count_writes(state, args)
    choose_stream(launch, state, &frame)
    if loaded == NULL:
        loaded = kernel.load(frame.device.id)
    if not launch.checked >> (frame.device.id & 63) & 1:
        check_grid(launch, loaded, frame.device.id)
    if is_staged:
        blocks = stage_all(kernel, state, args, &frame, values, parameters)
    origin = join_origins(args, n, &frame)
    with nogil:
        status = cuplug_launch_kernel(
            loaded, frame.device.id, &launch.grid, frame.stream, parameters, &error
        )
    if status:
        raise_error(&error)
    if origin:
        set_origin(state, args, origin)
    if state.r.n_streams:
        leave_stream(&state.r, &frame)
    if is_staged:
        for block in blocks:
            unstage(block, state.name_text)
        if origin and cuplug_check_origin(origin, &error):
            raise_error(&error)
    return None


cdef uint64_t join_origins(
    PyObject *const *args, Py_ssize_t n, const cuplug_frame *frame
) except? 0:
    """Return the origin of the kernel's outputs; 0 if no argument has one.

    Arrays that it may write also count as inputs: the kernel need not write all elements.
    """
    cdef uint64_t[MAX_PARAMETERS] origins
    cdef uint64_t origin = 0
    cdef uint32_t n_origins = 0
    cdef cuplug_error error
    cdef Py_ssize_t k
    for k in range(n):
        if type(<object>args[k]) is Array:
            origins[n_origins] = origin_of(<Array><object>args[k])[0]
            n_origins += origins[n_origins] != 0
    if n_origins and cuplug_join_origins(
        frame.device.id, frame.stream, origins, n_origins, &origin, &error
    ):
        raise_error(&error)
    return origin


cdef int set_origin(launch_state *state, PyObject *const *args, uint64_t origin) except -1:
    cdef uint32_t i
    for i in range(state.n_written):
        if type(<object>args[state.written[i]]) is Array:
            origin_of(<Array><object>args[state.written[i]])[0] = origin
    return 0


cdef int refuse_number(Function kernel, Py_ssize_t n) except -1:
    if kernel.n_parameters < 0:
        raise TypeError(
            f"{kernel.name}: its parameters are not known: name it in names= of cuplug.compile, or "
            "declare them with kernel.prepare"
        )
    raise TypeError(
        f"{kernel.name}: got {n} arguments, expected {kernel.n_parameters}"
        + (f": {kernel.signature}" if kernel.signature else "")
    )


cdef int choose_stream(Launch launch, launch_state *state, cuplug_frame *frame) except -1:
    """Sets the frame's device and stream, ordered with the streams of other libraries."""
    cdef reading *r = &state.r
    frame.home.type = frame.device.type = CUPLUG_CUDA
    frame.home.id = frame.device.id = state.device if state.device >= 0 else launch.kernel.device
    frame.stream = launch.stream
    if launch.stream == NULL and r.device_kind != NULL:
        return enter_stream(r, frame)
    if launch.stream == NULL:
        frame.stream = work_stream(frame.device.id)
        return 0
    use_stream(launch, state, frame)
    if r.device_kind != NULL:
        add_current_stream(r, r.device_kind, frame.device.id)
    return wait_for_streams(r, frame.device.id, frame.stream)


cdef int use_stream(Launch launch, launch_state *state, cuplug_frame *frame) except -1:
    """Without GPU arrays, the stream determines the GPU."""
    cdef cuplug_error error
    cdef int32_t device = -1, is_captured = 0
    if cuplug_query_stream(launch.stream, &device, &is_captured, &error):
        raise_error(&error)
    if device < 0 or device == frame.device.id:
        return 0
    if state.device >= 0:
        raise ValueError(
            f"{launch.kernel.name}: stream: got one of cuda:{device}, expected one of "
            f"cuda:{frame.device.id}, where the arrays are"
        )
    frame.home.id = frame.device.id = device
    return 0


cdef int check_grid(Launch launch, cuplug_kernel *kernel, int32_t device) except -1:
    """Check a grid against the limits of a kernel and a GPU, once for each launch object."""
    cdef cuplug_grid *grid = &launch.grid
    cdef cuplug_kernel_info info
    cdef cuplug_error error
    if cuplug_query_kernel(kernel, device, &info, &error):
        raise_error(&error)
    refusal = (
        refuse_sizes("grid", grid.blocks, &info.sizes[3])
        or refuse_sizes("block", grid.threads, info.sizes)
        or refuse_block(grid, &info, device)
        or refuse_cluster(grid, &info)
    )
    if not refusal and grid.shared_bytes + <uint64_t>info.shared_bytes > USUAL_SHARED_BYTES:
        if cuplug_opt_in_shared(kernel, device, grid.shared_bytes, &error):
            raise_error(&error)
    if not refusal and grid.flags & CUPLUG_COOPERATIVE:
        refusal = refuse_cooperative(grid, &info, kernel, device)
    if refusal:
        raise ValueError(f"{launch.kernel.name}: {refusal}")
    launch.checked |= <uint64_t>1 << (device & 63)
    return 0


cdef str refuse_sizes(str what, const uint32_t *sizes, const int32_t *most):
    for k in range(3):
        if sizes[k] > <uint32_t>most[k]:
            return f"{what}: got {sizes[k]} in dimension {'xyz'[k]}, expected at most {most[k]}"
    return ""


cdef str refuse_block(const cuplug_grid *grid, const cuplug_kernel_info *info, int32_t device):
    cdef uint64_t n = <uint64_t>grid.threads[0] * grid.threads[1] * grid.threads[2]
    if not 0 < n <= <uint64_t>info.max_threads:
        return (
            f"block: got {n} threads, expected 1 to {info.max_threads} with the "
            f"{info.n_registers} registers that each takes"
        )
    if grid.shared_bytes <= <int64_t>info.max_dynamic_shared_bytes:
        return ""
    return (
        f"shared: got {grid.shared_bytes} bytes, expected at most "
        f"{info.max_dynamic_shared_bytes} on cuda:{device} beside the {info.shared_bytes} that the "
        "kernel declares"
    )


cdef str refuse_cluster(const cuplug_grid *grid, const cuplug_kernel_info *info):
    """Clusters and programmatic launches require compute capability 9.0."""
    if not (grid.cluster[0] or grid.flags & CUPLUG_PROGRAMMATIC):
        return ""
    if info.compute_capability < 90:
        asked = "cluster" if grid.cluster[0] else "programmatic"
        seen = info.compute_capability / 10
        return f"{asked}: got a GPU of compute capability {seen}, expected 9.0 or newer"
    for k in range(3):
        if grid.cluster[0] and (not grid.cluster[k] or grid.blocks[k] % grid.cluster[k]):
            return (
                f"grid: got {grid.blocks[k]} blocks in dimension {'xyz'[k]}, expected a multiple "
                f"of the cluster's {grid.cluster[k]}"
            )
    return ""


cdef refuse_cooperative(
    const cuplug_grid *grid, const cuplug_kernel_info *info, cuplug_kernel *kernel, int32_t device
):
    """All blocks of a cooperative launch must run at once."""
    cdef uint32_t n_threads = grid.threads[0] * grid.threads[1] * grid.threads[2]
    cdef int32_t n_each = 0, is_supported = 0, is_known = 0
    cdef cuplug_error error
    if cuplug_query_attribute(
        device, COOPERATIVE_LAUNCH, &is_supported, &is_known, &error
    ) or cuplug_max_active_blocks(
        kernel, device, <int32_t>n_threads, grid.shared_bytes, &n_each, &error
    ):
        raise_error(&error)
    cdef uint64_t n = <uint64_t>grid.blocks[0] * grid.blocks[1] * grid.blocks[2]
    cdef uint64_t most = <uint64_t>n_each * <uint64_t>info.n_processors if is_supported else 0
    if n <= most:
        return ""
    return (
        f"grid: got {n} blocks, expected at most {most}: those of a cooperative launch run at once"
    )


cdef list stage_all(
    Function kernel, launch_state *state, PyObject *const *args, const cuplug_frame *frame,
    parameter_value *values, void **parameters
):
    cdef Py_ssize_t k
    cdef Block block
    wanted = "arrays on the GPU (In, Out and InOut wait for it)"
    refuse_capture(kernel.name, frame.stream, wanted)
    blocks = []
    for k in range(kernel.n_parameters):
        if isinstance(<object>args[k], Staged):
            block = stage(
                <Staged>args[k], state, k, kernel.codes[k], frame.device.id, frame.stream
            )
            values[k].p = block.data
            parameters[k] = &values[k]
            blocks.append(block)
    check_targets(state, blocks)
    return blocks
