# SPDX-License-Identifier: Apache-2.0
"""Kernels that were compiled at run time, as Python callables."""

cimport cython
from libc.stdint cimport int32_t

from cuplug._source.kernels.function cimport Function

from operator import getitem, methodcaller

from cuplug._engine.base.public import public
from cuplug._source.compilers import kernel_types
from cuplug._source.kernels.launch import Launch

cdef enum:
    N_KEPT = 256  # launches that a kernel caches


@cython.final
cdef class Kernel(Function):
    """Kernel()\n--\n
    A compiled kernel: `kernel[grid, block](...)` launches it, as `<<<grid, block>>>` does.

    `kernel[grid, block, shared, stream]` adds bytes of dynamic shared memory and a stream. You can
    keep the result and call it many times: its grid has been checked.

    Arguments are arrays on a GPU, `cuplug.In`, `Out` and `InOut` around NumPy arrays, numbers,
    NumPy scalars and arrays as structs. For pointers, they are also addresses as ints, or None.

    Attributes
    ----------
    name : str
        The name expression by which it was compiled.
    symbol : str
        Its name in the machine code.
    types : tuple of int or None
        The numbers of kernel_types.py; None if the compiler reported none.
    module : Module
        The module that contains it.

    Examples
    --------
    >>> source = "__global__ void add(float *x, float a, int n)"
    >>> source += "{ int i = blockIdx.x * 256 + threadIdx.x; if (i < n) x[i] += a; }"
    >>> add = cuplug.compile(source, device="cuda")["add"]
    >>> x = cuplug.asarray(numpy.ones(1000, "float32"), device="cuda")
    >>> add[4, 256](x, 2.5, 1000)
    """

    def __cinit__(self, *arguments, **keywords):
        self.launches = {}

    def prepare(self, signature: str) -> Kernel:
        """Return the kernel with declared types, `kernel.prepare("float *, int64")`.

        Only kernels whose types the compiler did not report require it. The first launch compares
        the sizes with the compiled kernel's.

        Parameters
        ----------
        signature : str
            Types of C or <stdint.h>, or dtypes, separated by commas.

        Examples
        --------
        >>> ptx = ".version 7.0 .target sm_52 .address_size 64"
        >>> ptx += ".visible .entry fill(.param .u64 x) { ret; }"
        >>> cuplug.load_image(ptx)["fill"].prepare("float *")
        <kernel fill(float *)>
        """
        if not isinstance(signature, str):
            seen = type(signature).__name__
            raise TypeError(f"{self.name}: prepare: got {seen}, expected a str")
        types = kernel_types.parse_signature(signature)
        if self.types is not None and types != self.types:
            raise ValueError(
                f"{self.name}: prepare: got {signature!r}, expected the compiled types: "
                f"{', '.join([kernel_types.describe(code) for code in self.types])}"
            )
        cdef Kernel declared = Kernel(self.image, self.name, self.symbol, types, self.device)
        declared.is_declared = self.types is None
        declared.module, declared.declaration = self.module, signature
        return declared

    def __reduce__(self):
        if self.module is None:
            raise TypeError(f"{self.name}: it is of no module, as which it could be pickled")
        if self.declaration is None:
            return getitem, (self.module, self.name)
        return methodcaller("prepare", self.declaration), (self.module[self.name],)

    def configure(
        self, grid: int | tuple[int, ...], block: int | tuple[int, ...], shared: int = 0,
        stream=None, *, cooperative=False, cluster: int | tuple[int, ...] | None = None,
        programmatic=False,
    ) -> Launch:
        """Return the launch `kernel[grid, block, shared, stream]` with further options.

        Parameters
        ----------
        grid, block : int or tuple of int
        shared : int
            Bytes of dynamic shared memory of a block.
        stream : as in calls of operators, optional
        cooperative : bool
            If True, all blocks run at once, so that `grid.sync()` of cooperative groups may be
            used.
        cluster : int or tuple of int, optional
            The blocks of a cluster, which share their shared memory. Compute capability 9.0 or
            later.
        programmatic : bool
            If True, it may start while the previous kernel on the stream still runs (a programmatic
            dependent launch). It waits for that kernel's memory with
            `cudaGridDependencySynchronize()`. Compute capability 9.0 or later.

        Examples
        --------
        >>> source = "__global__ void fill(float *x) { x[blockIdx.x] = 1; }"
        >>> fill = cuplug.compile(source, device="cuda")["fill"]
        >>> x = cuplug.empty(8, "float32", device="cuda")
        >>> fill.configure(8, 1, cooperative=True)(x)
        """
        return Launch(self, (grid, block, shared, stream), cluster, cooperative, programmatic)

    def tune(
        self, threads: int | Callable[[int], Any], *arguments,
        blocks: Sequence[int] = (64, 128, 256, 512, 1024), shared: int = 0, device=None,
    ) -> Launch:
        """Return a launch with the block size that is fastest for these arguments.

        It is measured once, by launching the kernel about 50 times for each size, and cached on
        disk for this code, GPU and number of threads. Each launch changes the arrays that the
        kernel changes.

        Parameters
        ----------
        threads : int or callable
            The total number of threads, in one dimension; or a function of the block size that
            returns the grid.
        *arguments
            The arguments of the launch.
        blocks : sequence of int
            Sizes to try; sizes that the kernel or the GPU does not allow are skipped.
        shared : int
            The bytes of dynamic shared memory of a block.
        device : str, int or Device, optional
            The GPU of the arguments; the default is the GPU of the module.

        Examples
        --------
        >>> source = "__global__ void add(float *x)"
        >>> source += "{ x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }"
        >>> add = cuplug.compile(source, device="cuda")["add"]
        >>> x = cuplug.asarray(numpy.zeros(4096, "float32"), device="cuda")
        >>> launch = add.tune(4096, x, blocks=(64, 256))
        >>> launch(x)
        """
        from cuplug._source.kernels.tuning import tune

        cdef int32_t number = self.number(device)
        return tune(self, self.image.code, number, threads, arguments, blocks, shared)

    def __call__(self, *arguments, **keywords):
        """Reject a call without a grid."""
        raise TypeError(
            f"{self.name}: got a call without a grid, expected {self.name}[grid, block](...)"
        )

    def __getitem__(self, configuration: tuple[Any, ...]) -> Launch:
        if type(configuration) is not tuple or not 2 <= len(configuration) <= 4:
            raise TypeError(
                f"{self.name}: got {configuration!r} in brackets, expected kernel[grid, block] or "
                "kernel[grid, block, shared bytes, stream]"
            )
        if len(configuration) == 4:
            return Launch(self, configuration)
        try:
            launch = self.launches.get(configuration)
        except TypeError:  # lists are not hashable
            return Launch(self, configuration)
        if launch is None:
            launch = Launch(self, configuration)
            if len(self.launches) >= N_KEPT:
                self.launches.clear()
            self.launches[configuration] = launch
        return launch


public(Kernel)
