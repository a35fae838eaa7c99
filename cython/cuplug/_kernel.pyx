# SPDX-License-Identifier: Apache-2.0
"""Kernels that were compiled at run time, as Python callables."""

cimport cython
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int32_t, uint32_t, uint64_t

from cuplug._host cimport CUPLUG_CUDA, cuplug_error, cuplug_frame, cuplug_query_stream
from cuplug._host_jit cimport (
    cuplug_find_kernel,
    cuplug_grid,
    cuplug_image,
    cuplug_kernel,
    cuplug_kernel_function,
    cuplug_kernel_info,
    cuplug_kernel_parameters,
    cuplug_launch_kernel,
    cuplug_max_active_blocks,
    cuplug_prepare_launch,
    cuplug_query_kernel,
    cuplug_suggest_block,
)
from cuplug._grid cimport parse_grid
from cuplug._image cimport Image
from cuplug._parameters cimport UNKNOWN, convert, launch_state, parameter_value
from cuplug._placement cimport note_use, parse_gpu
from cuplug._reading cimport reading, start_reading
from cuplug._staged cimport Block, Staged, stage, unstage
from cuplug._status cimport raise_error
from cuplug._streams cimport (
    add_current_stream,
    enter_stream,
    leave_stream,
    parse_stream,
    refuse_capture,
    wait_for_streams,
)

from collections import namedtuple

cdef enum:
    MAX_PARAMETERS = 256
    N_KEPT = 256  # launches of a kernel that are kept, by grid and block

Attributes = namedtuple(
    "Attributes",
    "max_threads registers shared_bytes local_bytes constant_bytes max_dynamic_shared_bytes",
)
Attributes.__doc__ = """What a kernel takes on a GPU.

Threads of a block at most; registers and bytes of local memory of a thread; bytes of shared memory
that a block declares, and that a launch may add; bytes of constant memory.
"""


@cython.final
cdef class Kernel:
    """A compiled kernel: `kernel[grid, block](...)` launches it, as `<<<grid, block>>>` does.

    `kernel[grid, block, shared, stream]` adds bytes of dynamic shared memory and a stream. What
    the brackets return may be kept and called many times: its grid has been checked.

    Arguments are arrays on a GPU, `cuplug.In`, `Out` and `InOut` around NumPy arrays, numbers,
    NumPy scalars and arrays as structs; addresses as ints, or None, for pointers.

    Attributes
    ----------
    name : str
        The name expression by which it was compiled.
    symbol : str
        Its name in the machine code.
    types : tuple of int or None
        The numbers of kernel_types.py; None where the compiler was not asked.
    """

    cdef Image image
    cdef cuplug_kernel *kernel
    cdef uint64_t *codes
    cdef Py_ssize_t n_parameters  # -1: not known
    cdef bint is_declared  # by the user, not found by the compiler
    cdef int32_t device
    cdef dict launches
    cdef readonly str name
    cdef readonly str symbol
    cdef readonly object types
    cdef bytes text  # the name's UTF-8
    cdef cython.pymutex lock
    cdef object __weakref__

    def __init__(self, Image image, str name, str symbol, types, int32_t device):
        self.image = image
        self.name = name
        self.text = name.encode()
        self.symbol = symbol
        self.types = types
        self.device = device
        self.launches = {}
        self.n_parameters = -1
        if types is not None:
            self.take_codes(types)

    def __dealloc__(self):
        PyMem_RawFree(self.codes)

    cdef int take_codes(self, types) except -1:
        if len(types) > MAX_PARAMETERS:
            raise ValueError(f"{self.name}: seen {len(types)} parameters, wanted at most 256")
        self.codes = <uint64_t *>PyMem_RawCalloc(len(types) + 1, sizeof(uint64_t))
        if self.codes == NULL:
            raise MemoryError()
        for k, code in enumerate(types):
            self.codes[k] = code
        self.n_parameters = len(types)
        return 0

    cdef cuplug_kernel *load(self, int32_t device) except NULL:
        with self.lock:
            if self.kernel == NULL:
                self.kernel = self.find(device)
        return self.kernel

    cdef cuplug_kernel *find(self, int32_t device) except NULL:
        """Compare with the sizes that the driver knows; without types take those."""
        cdef uint64_t[MAX_PARAMETERS] sizes
        cdef cuplug_error error
        cdef cuplug_kernel *kernel = NULL
        cdef cuplug_image *image = self.image.load()
        cdef bytes symbol_bytes = self.symbol.encode()
        cdef const char *symbol = symbol_bytes
        cdef const char *name = self.text
        cdef int32_t n = -1 if self.is_declared else self.n_parameters
        cdef int status
        with nogil:
            status = cuplug_find_kernel(image, symbol, name, &kernel, &error)
            if not status:
                status = cuplug_kernel_parameters(kernel, device, sizes, &n, &error)
        if status:
            raise_error(&error)
        wanted = [sizes[k] for k in range(n)]
        if self.n_parameters < 0 and n >= 0:
            self.take_codes([UNKNOWN | size << 16 for size in wanted])
        seen = [self.codes[k] >> 16 & 0xFFFFFF for k in range(self.n_parameters)]
        if n >= 0 and seen != wanted:
            raise ValueError(
                f"{self.name}: seen types of {seen} bytes, wanted {wanted}, the sizes of the "
                "compiled kernel's parameters"
            )
        return kernel

    @property
    def signature(self):
        """The kernel as C declares it; None where its types are not known."""
        from cuplug import kernel_types

        if self.types is None:
            return None
        return f"{self.name}({', '.join([kernel_types.describe(code) for code in self.types])})"

    def __repr__(self):
        return f"<kernel {self.signature or self.name}>"

    def prepare(self, str signature):
        """Return the kernel with declared types, `kernel.prepare("float *, int64")`.

        Only kernels that the compiler was not asked about need it. Sizes are compared with the
        compiled kernel's at the first launch.

        Parameters
        ----------
        signature : str
            C types, those of <stdint.h> or dtypes, separated by commas.
        """
        from cuplug import kernel_types

        types = kernel_types.parse_signature(signature)
        if self.types is not None and types != self.types:
            raise ValueError(
                f"{self.name}: prepare: seen {signature!r}, wanted the compiled types: "
                f"{', '.join([kernel_types.describe(code) for code in self.types])}"
            )
        cdef Kernel declared = Kernel(self.image, self.name, self.symbol, types, self.device)
        declared.is_declared = self.types is None
        return declared

    def __getitem__(self, configuration):
        if type(configuration) is not tuple or not 2 <= len(configuration) <= 4:
            raise TypeError(
                f"{self.name}: seen {configuration!r} in brackets, wanted kernel[grid, block] or "
                "kernel[grid, block, shared bytes, stream]"
            )
        if len(configuration) == 4:
            return make_launch(self, configuration)
        launch = self.launches.get(configuration)
        if launch is None:
            launch = make_launch(self, configuration)
            if len(self.launches) >= N_KEPT:
                self.launches = {}
            self.launches[configuration] = launch
        return launch

    def attributes(self, device=None):
        """Return what the kernel takes on a GPU, as a record."""
        cdef cuplug_error error
        cdef cuplug_kernel_info info
        cdef int32_t number = self.number(device)
        if cuplug_query_kernel(self.load(number), number, &info, &error):
            raise_error(&error)
        return Attributes(
            info.max_threads, info.n_registers, info.shared_bytes, info.local_bytes,
            info.constant_bytes, info.max_dynamic_shared_bytes
        )

    def max_active_blocks(self, int32_t n_threads, uint64_t shared=0, device=None):
        """Return how many blocks of so many threads one multiprocessor holds at once."""
        cdef cuplug_error error
        cdef int32_t n = 0
        cdef int32_t number = self.number(device)
        if cuplug_max_active_blocks(self.load(number), number, n_threads, shared, &n, &error):
            raise_error(&error)
        return n

    def suggest_block(self, uint64_t shared=0, device=None):
        """Return the threads of a block for the highest occupancy, and the blocks to fill a GPU."""
        cdef cuplug_error error
        cdef int32_t n_threads = 0, n_blocks = 0
        cdef int32_t number = self.number(device)
        if cuplug_suggest_block(self.load(number), number, shared, &n_threads, &n_blocks, &error):
            raise_error(&error)
        return n_threads, n_blocks

    def function(self, device=None):
        """Return the CUfunction on a GPU as an int, for other libraries; it is kept for ever."""
        cdef cuplug_error error
        cdef void *function = NULL
        cdef int32_t number = self.number(device)
        if cuplug_kernel_function(self.load(number), number, &function, &error):
            raise_error(&error)
        return <size_t>function

    cdef int32_t number(self, device) except -1:
        return self.device if device is None else parse_gpu(self.name, device).id


@cython.final
cdef class Launch:
    """A kernel with its grid, block, shared memory and stream: call it with the arguments."""

    cdef Kernel kernel
    cdef cuplug_grid grid
    cdef void *stream
    cdef object stream_owner
    cdef uint64_t checked  # bit d: the grid was checked on GPU d

    def __call__(self, *args):
        cdef launch_state state
        start_reading(&state.r)
        state.name = <PyObject *>self.kernel.name
        state.name_text = self.kernel.text
        state.device = -1
        try:
            return run(self, &state, args)
        finally:
            Py_XDECREF(state.r.kept)

    def __repr__(self):
        grid = tuple([self.grid.blocks[k] for k in range(3)])
        block = tuple([self.grid.threads[k] for k in range(3)])
        return f"<launch of {self.kernel.name}, grid {grid}, block {block}>"


cdef Launch make_launch(Kernel kernel, tuple configuration):
    cdef Launch launch = Launch.__new__(Launch)
    launch.kernel = kernel
    parse_grid(kernel.name, configuration, &launch.grid)
    if len(configuration) > 3:
        launch.stream = parse_stream(kernel.name, configuration[3])
        launch.stream_owner = configuration[3]
    return launch


cdef object run(Launch launch, launch_state *state, tuple args):
    """Convert the arguments, find device and stream, launch."""
    cdef parameter_value[MAX_PARAMETERS] values
    cdef void *parameters[MAX_PARAMETERS]
    cdef Kernel kernel = launch.kernel
    cdef cuplug_kernel *loaded
    cdef Py_ssize_t k, n = PyTuple_GET_SIZE(args)
    cdef cuplug_frame frame
    cdef cuplug_error error
    cdef list blocks = None
    cdef bint is_staged = False
    cdef int status
    if kernel.n_parameters < 0:
        kernel.load(kernel.device)
    if n != kernel.n_parameters:
        refuse_number(kernel, n)
    for k in range(n):
        if isinstance(<object>PyTuple_GET_ITEM(args, k), Staged):
            is_staged = True
        else:
            convert(
                state, k, kernel.codes[k], <PyObject *>PyTuple_GET_ITEM(args, k), &values[k],
                &parameters[k]
            )
    choose_stream(launch, state, &frame)
    loaded = kernel.kernel if kernel.kernel != NULL else kernel.load(frame.device.id)
    if not launch.checked >> (frame.device.id & 63) & 1:
        check_grid(launch, loaded, frame.device.id)
    if is_staged:
        blocks = stage_all(kernel, state, args, frame.stream, values, parameters)
    with nogil:
        status = cuplug_launch_kernel(
            loaded, frame.device.id, &launch.grid, frame.stream, parameters, &error
        )
    if status:
        raise_error(&error)
    note_use(frame.device.id)
    if state.r.n_streams:
        leave_stream(&state.r, &frame)
    if is_staged:
        for block in blocks:
            unstage(block, state.name_text)
    return None


cdef int refuse_number(Kernel kernel, Py_ssize_t n) except -1:
    if kernel.n_parameters < 0:
        raise TypeError(
            f"{kernel.name}: its parameters are not known: name it in names= of cuplug.compile, or "
            "declare them with kernel.prepare"
        )
    raise TypeError(
        f"{kernel.name}: seen {n} arguments, wanted {kernel.n_parameters}"
        + (f": {kernel.signature}" if kernel.signature else "")
    )


cdef int choose_stream(Launch launch, launch_state *state, cuplug_frame *frame) except -1:
    """Sets the frame's device and stream, ordered with the streams of other libraries."""
    cdef reading *r = &state.r
    frame.home.type = frame.device.type = CUPLUG_CUDA
    frame.home.id = frame.device.id = state.device if state.device >= 0 else launch.kernel.device
    frame.stream = launch.stream
    if launch.stream != NULL:
        check_stream(launch, frame)
        if r.device_kind != NULL:
            add_current_stream(r, r.device_kind, frame.device.id)
        return wait_for_streams(r, frame.device.id, frame.stream)
    return enter_stream(r, frame) if r.device_kind != NULL else 0


cdef int check_stream(Launch launch, const cuplug_frame *frame) except -1:
    cdef cuplug_error error
    cdef int32_t device = -1, is_captured = 0
    if cuplug_query_stream(launch.stream, &device, &is_captured, &error):
        raise_error(&error)
    if device >= 0 and device != frame.device.id:
        raise ValueError(
            f"{launch.kernel.name}: stream: seen one of cuda:{device}, wanted one of "
            f"cuda:{frame.device.id}, where the arrays are"
        )
    return 0


cdef int check_grid(Launch launch, cuplug_kernel *kernel, int32_t device) except -1:
    cdef cuplug_error error
    if cuplug_prepare_launch(kernel, device, &launch.grid, &error):
        raise_error(&error)
    launch.checked |= <uint64_t>1 << (device & 63)
    return 0


cdef list stage_all(
    Kernel kernel, launch_state *state, tuple args, void *stream, parameter_value *values,
    void **parameters
):
    cdef int32_t device = state.device if state.device >= 0 else kernel.device
    cdef Py_ssize_t k
    cdef Block block
    refuse_capture(kernel.name, stream, "wanted arrays on the GPU: In, Out and InOut wait for it")
    blocks = []
    for k in range(len(args)):
        if isinstance(args[k], Staged):
            block = stage(args[k], state, k, kernel.codes[k], device, stream)
            values[k].p = block.data
            parameters[k] = &values[k]
            blocks.append(block)
    return blocks
