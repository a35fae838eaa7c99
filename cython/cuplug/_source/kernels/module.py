# SPDX-License-Identifier: Apache-2.0
"""Modules: compiled code, whose kernels and variables are found by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn

import numpy

from cuplug._engine.base.public import PublicCall, public
from cuplug._engine.cuda.placement import gpu_number
from cuplug._source.compilers import jit
from cuplug._source.kernels import symbols
from cuplug._source.kernels.function import Image
from cuplug._source.kernels.kernel import Kernel
from cuplug.errors import NotFoundError

if TYPE_CHECKING:
    from cuplug._source.kernels.module_globals import Global


@public
class Module:
    """Compiled CUDA code: `module["scale<4>"]` is a kernel.

    `cuplug.compile` and `cuplug.load_image` create it. It is pickled as its source.

    Attributes
    ----------
    name : str
        The name of the source.
    image : bytes
        The machine code. PTX if requested, or if the GPU is newer than NVRTC.
    log : str
        The compiler's warnings, if it ran in this process.

    Examples
    --------
    >>> module = cuplug.compile("__global__ void fill(float *x) { *x = 1; }", device="cuda")
    >>> fill = module["fill"]
    """

    def __init__(self, *parts: Any, **keywords: Any) -> None:
        if len(parts) != 6 or not isinstance(parts[1], jit.Binary):
            raise TypeError("cuplug.Module: make one with cuplug.compile or cuplug.load_image")
        self._take(*parts)

    def _take(
        self,
        name: str,
        binary: jit.Binary,
        kernels: Iterable[str],
        device: int,
        made: PublicCall,
        ptx: Callable[[], str],
    ) -> None:
        self.name = name
        self.image = binary.image
        self.log = binary.log
        self._binary = binary
        self._names = dict.fromkeys(kernels)
        self._device = device
        self._made = made
        self._make_ptx = ptx
        self._loaded = Image(binary.image, name)
        self._kernels: dict[str, Kernel] = {}

    if not TYPE_CHECKING:  # the compiler finds only such names

        def __getattr__(self, name: str) -> NoReturn:
            elsewhere = 'a kernel is module["f"], a variable module.global_("x")'
            raise AttributeError(f"'Module' object has no attribute {name!r}: {elsewhere}")

    def __reduce__(self) -> tuple[Any, ...]:
        return self._made.__reduce__()

    @cached_property
    def ptx(self) -> str:
        """The code as PTX, NVIDIA's portable assembly; compiled again for the same architecture.

        Raises
        ------
        ValueError
            If the module was loaded from machine code, which contains no PTX.

        Examples
        --------
        >>> source = "__global__ void fill(float *x) { *x = 1; }"
        >>> ".entry" in cuplug.compile(source, device="cuda").ptx
        True
        """
        return self._make_ptx()

    def __getitem__(self, name: str) -> Kernel:
        kernel = self._kernels.get(name)
        if kernel is None:
            # If two threads create one, the first is used.
            kernel = self._kernels.setdefault(name, self._make(name))
        return kernel

    def _make(self, name: str) -> Kernel:
        if not isinstance(name, str):
            raise TypeError(
                f"{self.name}: got {type(name).__name__}, expected the name of a kernel"
            )
        symbol, types = self._binary.lowered.get(name), self._binary.types.get(name)
        if symbol is None:
            self._check_symbol(name)
        elif types is None and name not in self:
            raise NotFoundError(f"{self.name}: {name} is no kernel")
        kernel = Kernel(self._loaded, name, symbol or name, types, self._device)
        kernel.module = self
        return kernel

    def _check_symbol(self, name: str) -> None:
        """Raise unless the code has a kernel that the compiler did not report."""
        found = symbols.kernels_in(self.image)
        if name in found:
            return
        if symbols.tells_all(self.image) or not name.isidentifier():
            seen = symbols.describe(dict.fromkeys([*self, *found]), name)
            named = "" if name.isidentifier() else ", name it in names="
            raise NotFoundError(f"{self.name}: no kernel {name}{named}: {seen}")
        self._loaded.find_kernel(name, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def _repr_html_(self) -> str:
        from html import escape

        kernels = "".join(f"<li><code>{escape(name)}</code></li>" for name in self)
        return f"<b>{escape(self.name)}</b>: a module with {len(self)} kernels<ul>{kernels}</ul>"

    def __repr__(self) -> str:
        return f"<module {self.name}: {', '.join(self) or 'no kernels'}>"

    def global_(
        self,
        name: str,
        dtype: Any = "uint8",
        shape: int | tuple[int, ...] | None = None,
        device: Any = None,
    ) -> Global:
        """Return the memory of a `__device__` or `__constant__` variable.

        Parameters
        ----------
        name : str
            As in the source, or `&` before an expression in `names`.
        dtype : str or numpy.dtype
            The dtype of its bytes.
        shape : int or tuple of int, optional
            The default is the whole variable, in one dimension.
        device : str, int or Device, optional

        Raises
        ------
        NotFoundError
            If no such variable exists, or the compiler removed it as unused: add it to `names`.
        TypeError
            If the dtype contains Python objects or is byte-swapped.
        ValueError
            If the dtype and shape have another number of bytes.

        Examples
        --------
        >>> source = "__constant__ int table[3]; __global__ void first(int *x) { *x = table[0]; }"
        >>> module = cuplug.compile(source, device="cuda")
        >>> table = cuplug.asarray(module.global_("table", "int32"))
        >>> table.shape
        (3,)
        """
        if not isinstance(name, str):
            raise TypeError(f"global_: name: got {type(name).__name__}, expected a str")
        number = self._device if device is None else gpu_number("global_", device)
        symbol = self._binary.lowered.get(f"&{name.removeprefix('&')}", name)
        pointer, n_bytes = self._loaded.find_global(symbol, name, number)
        chosen = numpy.dtype(dtype)
        if chosen.hasobject or not chosen.isnative or not chosen.itemsize:
            raise TypeError(f"{name}: got dtype {chosen}, expected one of native byte order")
        given = (n_bytes // chosen.itemsize,) if shape is None else shape
        sizes = tuple(map(index, given if isinstance(given, Iterable) else (given,)))
        if math.prod(sizes) * chosen.itemsize != n_bytes or min(sizes, default=0) < 0:
            raise ValueError(
                f"{name}: got dtype {chosen} and shape {sizes}, expected {n_bytes} bytes in all"
            )
        from cuplug._source.kernels.module_globals import Global

        return Global(name, pointer, number, chosen, sizes)
