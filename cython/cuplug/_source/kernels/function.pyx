# SPDX-License-Identifier: Apache-2.0
"""Kernels that were compiled at run time: their code and their resources on a GPU."""

cimport cython
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport INT32_MAX, int32_t, uint32_t, uint64_t

from cuplug._engine.base.core cimport cuplug_error
from cuplug._engine.base.runtime cimport (
    cuplug_find_global,
    cuplug_find_kernel,
    cuplug_image,
    cuplug_kernel,
    cuplug_kernel_function,
    cuplug_kernel_info,
    cuplug_kernel_parameters,
    cuplug_list_kernels,
    cuplug_load_image,
    cuplug_max_active_blocks,
    cuplug_query_kernel,
    cuplug_suggest_block,
)
from cuplug._source.kernels.parameters cimport UNKNOWN
from cuplug._engine.cuda.placement cimport parse_gpu
from cuplug._engine.base.status cimport raise_error

from collections import namedtuple

from cuplug._engine.base.public import public

cdef enum:
    MOST_KERNELS = 4096  # names in a list

KernelAttributes: tuple[int, ...] = public(
    namedtuple(
        "KernelAttributes",
        "max_threads registers shared_bytes local_bytes constant_bytes max_dynamic_shared_bytes",
    )
)
KernelAttributes.__doc__ = """The resources of a kernel on a GPU.

Attributes
----------
max_threads : int
    The maximum number of threads of a block.
registers, local_bytes : int
    Registers and local memory of a thread.
shared_bytes, max_dynamic_shared_bytes : int
    The shared memory that a block declares, and that a launch may add.
constant_bytes : int
    Constant memory.

Examples
--------
>>> module = cuplug.compile("__global__ void fill(float *x) { *x = 1; }", device="cuda")
>>> module["fill"].attributes("cuda").max_threads
1024
"""


@cython.final
cdef class Image:
    """Machine code, which the driver loads at the first use. It stays until the process exits."""

    def __init__(self, code: bytes, name: str):
        self.code = code
        self.name = name.encode()

    cdef cuplug_image *load(self) except NULL:
        with self.lock:
            if self.image == NULL:
                load_image(self.code, self.name, &self.image)
        return self.image

    def list_kernels(self) -> list[str]:
        """Return the symbols of the kernels that the driver lists."""
        cdef cuplug_error error
        cdef const char *names[MOST_KERNELS]
        cdef uint32_t n = MOST_KERNELS
        if cuplug_list_kernels(self.load(), names, &n, &error):
            raise_error(&error)
        return sorted([(<const char *>names[k]).decode() for k in range(min(n, MOST_KERNELS))])

    def find_kernel(self, symbol: str, name: str):
        """Raise unless the driver finds a kernel with that symbol."""
        cdef cuplug_error error
        cdef cuplug_kernel *kernel = NULL
        cdef bytes symbol_bytes = symbol.encode(), name_bytes = name.encode()
        if cuplug_find_kernel(self.load(), symbol_bytes, name_bytes, &kernel, &error):
            raise_error(&error)

    def find_global(self, symbol: str, name: str, int32_t device) -> tuple[int, int]:
        """Return the address and the size in bytes of a variable on a GPU."""
        cdef cuplug_error error
        cdef void *pointer = NULL
        cdef uint64_t n_bytes = 0
        cdef bytes symbol_bytes = symbol.encode(), name_bytes = name.encode()
        cdef const char *symbol_text = symbol_bytes
        cdef const char *name_text = name_bytes
        cdef cuplug_image *image = self.load()
        cdef int status
        with nogil:
            status = cuplug_find_global(
                image, symbol_text, name_text, device, &pointer, &n_bytes, &error
            )
        if status:
            raise_error(&error)
        return <size_t>pointer, n_bytes


cdef int load_image(bytes code, bytes name, cuplug_image **image) except -1:
    cdef cuplug_error error
    cdef const char *start = code
    cdef const char *text = name
    cdef uint64_t n_bytes = len(code)
    cdef int status
    with nogil:
        status = cuplug_load_image(start, n_bytes, text, image, &error)
    return raise_error(&error) if status else 0


cdef class Function:
    """A compiled kernel, without its launches."""

    def __cinit__(self, *given, **keywords):
        cdef Image image
        cdef str name, symbol
        if len(given) != 5 or not isinstance(given[0], Image):
            raise TypeError("cuplug.Kernel: get one from a module, which cuplug.compile makes")
        image, name, symbol, types, device = given
        self.image = image
        self.name = name
        self.text = name.encode()
        self.symbol = symbol
        self.types = types
        self.device = device
        self.n_parameters = -1
        if types is not None:
            self.take_codes(types)

    def __dealloc__(self):
        PyMem_RawFree(self.codes)

    cdef int take_codes(self, types) except -1:
        if len(types) > MAX_PARAMETERS:
            raise ValueError(f"{self.name}: got {len(types)} parameters, expected at most 256")
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
                cuplug_store_kernel(&self.kernel, self.find(device))
        return self.kernel

    cdef cuplug_kernel *find(self, int32_t device) except NULL:
        """Check the types against the sizes that the driver reports.

        Without types, use these sizes.
        """
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
                f"{self.name}: got types of {seen} bytes, expected {wanted}, the sizes of the "
                "compiled kernel's parameters"
            )
        return kernel

    @property
    def signature(self) -> str | None:
        """The kernel's declaration in C; None if its types are unknown.

        Examples
        --------
        >>> source = "__global__ void fill(float *x) { x[blockIdx.x] = 1; }"
        >>> fill = cuplug.compile(source, device="cuda")["fill"]
        >>> fill.signature
        'fill(float *)'
        """
        from cuplug._source.compilers import kernel_types

        if self.types is None:
            return None
        return f"{self.name}({', '.join([kernel_types.describe(code) for code in self.types])})"

    def __repr__(self):
        return f"<kernel {self.signature or self.name}>"

    def attributes(self, device=None) -> KernelAttributes:
        """Return the kernel's resources on a GPU, as a record.

        Examples
        --------
        >>> source = "__global__ void fill(float *x) { x[blockIdx.x] = 1; }"
        >>> fill = cuplug.compile(source, device="cuda")["fill"]
        >>> fill.attributes().max_threads
        1024
        """
        cdef cuplug_error error
        cdef cuplug_kernel_info info
        cdef int32_t number = self.number(device)
        if cuplug_query_kernel(self.load(number), number, &info, &error):
            raise_error(&error)
        return KernelAttributes(
            info.max_threads, info.n_registers, info.shared_bytes, info.local_bytes,
            info.constant_bytes, info.max_dynamic_shared_bytes
        )

    def max_active_blocks(self, n_threads: int, shared: int = 0, device=None) -> int:
        """Return the number of blocks of this size that one multiprocessor runs at once.

        Examples
        --------
        >>> source = "__global__ void fill(float *x) { x[blockIdx.x] = 1; }"
        >>> fill = cuplug.compile(source, device="cuda")["fill"]
        >>> fill.max_active_blocks(256) > 0
        True
        """
        cdef cuplug_error error
        cdef int32_t n = 0
        cdef uint32_t threads = size_of(self.name, "n_threads", n_threads)
        cdef uint32_t n_bytes = size_of(self.name, "shared", shared)
        cdef int32_t number = self.number(device)
        if threads > INT32_MAX:
            raise ValueError(
                f"{self.name}: n_threads: got {n_threads}, expected at most {INT32_MAX}"
            )
        if cuplug_max_active_blocks(
            self.load(number), number, <int32_t>threads, n_bytes, &n, &error
        ):
            raise_error(&error)
        return n

    def suggest_block(self, shared: int = 0, device=None) -> tuple[int, int]:
        """Return the threads of a block for the highest occupancy, and the blocks to fill a GPU.

        Examples
        --------
        >>> source = "__global__ void fill(float *x) { x[blockIdx.x] = 1; }"
        >>> fill = cuplug.compile(source, device="cuda")["fill"]
        >>> n_threads, n_blocks = fill.suggest_block()
        >>> n_threads <= 1024
        True
        """
        cdef cuplug_error error
        cdef int32_t n_threads = 0, n_blocks = 0
        cdef uint32_t n_bytes = size_of(self.name, "shared", shared)
        cdef int32_t number = self.number(device)
        if cuplug_suggest_block(self.load(number), number, n_bytes, &n_threads, &n_blocks, &error):
            raise_error(&error)
        return n_threads, n_blocks

    def function(self, device=None) -> int:
        """Return the CUfunction on a GPU as an int; it is valid until the process exits.

        Examples
        --------
        >>> source = "__global__ void fill(float *x) { x[blockIdx.x] = 1; }"
        >>> fill = cuplug.compile(source, device="cuda")["fill"]
        >>> fill.function() > 0
        True
        """
        cdef cuplug_error error
        cdef void *function = NULL
        cdef int32_t number = self.number(device)
        if cuplug_kernel_function(self.load(number), number, &function, &error):
            raise_error(&error)
        return <size_t>function

    cdef int32_t number(self, device) except -1:
        return self.device if device is None else parse_gpu(self.name, device).id


cdef uint32_t size_of(str name, str what, object given) except? 0xFFFFFFFF:
    try:
        size = given.__index__()
    except AttributeError:
        raise TypeError(
            f"{name}: {what}: got {type(given).__name__}, expected an int"
        ) from None
    if not 0 <= size < 1 << 32:
        raise ValueError(f"{name}: {what}: got {size}, expected 0 to {(1 << 32) - 1}")
    return size
