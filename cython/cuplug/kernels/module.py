# SPDX-License-Identifier: Apache-2.0
"""Modules of kernels compiled from source at run time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import index
from typing import Any

import numpy

from cuplug.base.public import public
from cuplug.compilers import jit
from cuplug.compilers.program import architecture_of
from cuplug.cuda.placement import gpu_number
from cuplug.errors import NotFoundError
from cuplug.kernels.function import Image
from cuplug.kernels.kernel import Kernel
from cuplug.kernels.variables import Global

_modules: dict[tuple[str, bytes, int], Module] = {}


@public
class Module:
    """Compiled CUDA source: `module["scale<4>"]` is a kernel. Made by `cuplug.compile`.

    Attributes
    ----------
    name : str
        Of the source.
    image : bytes
        The machine code, or PTX where the GPU is newer than NVRTC.
    log : str
        The compiler's warnings, when it ran in this process.
    """

    def __init__(self, name: str, binary: jit.Binary, device: int) -> None:
        self.name = name
        self.image = binary.image
        self.log = binary.log
        self._binary = binary
        self._device = device
        self._loaded = Image(binary.image, name)
        self._kernels: dict[str, Kernel] = {}

    def __getitem__(self, name: str) -> Kernel:
        kernel = self._kernels.get(name)
        if kernel is None:
            # Two threads may both make one: the first is kept.
            kernel = self._kernels.setdefault(name, self._make(name))
        return kernel

    def _make(self, name: str) -> Kernel:
        if not isinstance(name, str):
            raise TypeError(f"{self.name}: seen {type(name).__name__}, wanted the name of a kernel")
        symbol, types = self._binary.lowered.get(name), self._binary.types.get(name)
        if symbol is None and not name.isidentifier():
            raise NotFoundError(
                f"{self.name}: there is no kernel {name}; name it in names= of cuplug.compile; "
                f"seen: {', '.join(self) or 'none'}"
            )
        if symbol is not None and types is None:
            raise NotFoundError(f"{self.name}: {name} is no kernel")
        return Kernel(self._loaded, name, symbol or name, types, self._device)

    def __iter__(self) -> Iterator[str]:
        return iter(self._binary.types)

    def __len__(self) -> int:
        return len(self._binary.types)

    def __contains__(self, name: object) -> bool:
        return name in self._binary.types

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
            As in the source, or `&` before an expression that stands in `names=`.
        dtype : str or numpy.dtype
            How its bytes are to be read.
        shape : int or tuple of int, optional
            All of it, in one dimension, without.
        device : str, int or device, optional

        Raises
        ------
        NotFoundError
            There is none, or the compiler has left it out as nothing uses it: name it in `names=`.
        TypeError
            The dtype is of Python objects, or byte-swapped.
        ValueError
            The dtype and shape have another number of bytes.
        """
        if not isinstance(name, str):
            raise TypeError(f"global_: name: seen {type(name).__name__}, wanted a str")
        number = self._device if device is None else gpu_number("global_", device)
        symbol = self._binary.lowered.get(f"&{name.removeprefix('&')}", name)
        pointer, n_bytes = self._loaded.find_global(symbol, name, number)
        chosen = numpy.dtype(dtype)
        if chosen.hasobject or not chosen.isnative or not chosen.itemsize:
            raise TypeError(f"{name}: seen dtype {chosen}, wanted one of native byte order")
        given = (n_bytes // chosen.itemsize,) if shape is None else shape
        sizes = tuple(map(index, given if isinstance(given, Iterable) else (given,)))
        if math.prod(sizes) * chosen.itemsize != n_bytes or min(sizes, default=0) < 0:
            raise ValueError(
                f"{name}: seen dtype {chosen} and shape {sizes}, wanted {n_bytes} bytes in all"
            )
        return Global(name, pointer, number, chosen, sizes)


@public
def compile(
    source: str,
    options: Sequence[str] = (),
    names: Sequence[str] = (),
    *,
    name: str = "<string>",
    headers: Mapping[str, str] | None = None,
    device: Any = None,
    architecture: str | int | None = None,
) -> Module:
    """Compile CUDA C++ at run time.

    What was compiled before is taken from memory or from the cache on disk. The same source with
    the same options, names and headers gives the same module, and so the same variables.

    Parameters
    ----------
    source : str
        Kernels that are no templates and lie in no namespace are found in it.
    options : sequence of str
        NVRTC's: "-DN=4", "-I/usr/include/mine", "--use_fast_math". `-lineinfo` is always given.
    names : sequence of str
        Other kernels, "scale<4>", "mine::add", and variables, "&mine::table".
    name : str
        Of the source, for messages and profilers.
    headers : mapping of str to str
        Texts by the names under which the source includes them.
    device : str, int or device, optional
        The GPU to compile for, and where kernels without arrays run; cuda:0 without.
    architecture : str or int, optional
        90, "90", "90a" instead of that of the device: then nothing needs a GPU before a launch.

    Returns
    -------
    Module

    Raises
    ------
    CompileError
        The source is refused: the message shows the lines. Or there is no compiler.
    CudaError
        There is no GPU and no architecture was named.
    """
    number = gpu_number("compile", 0 if device is None else device)
    if not isinstance(headers, Mapping | None):
        raise TypeError(f"compile: headers: seen {type(headers).__name__}, wanted a mapping")
    if isinstance(architecture, int):
        architecture = str(architecture)
    binary = jit.compile_to_binary(
        source,
        names=names,
        options=options,
        architecture=architecture_of(number) if architecture is None else architecture,
        name=name,
        headers=headers,
    )
    key = binary.key, binary.image, number
    module = _modules.get(key)
    return module or _modules.setdefault(key, Module(name, binary, number))
