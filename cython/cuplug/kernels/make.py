# SPDX-License-Identifier: Apache-2.0
"""Modules of kernels: compiled from source at run time, or compiled elsewhere and loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cuplug.base.checks import check_text, texts_of
from cuplug.base.public import PublicCall, public
from cuplug.compilers import cache, jit
from cuplug.compilers.program import architecture_of
from cuplug.cuda.placement import gpu_number
from cuplug.kernels import symbols
from cuplug.kernels.module import Module

_modules: dict[tuple[str, bytes, int], Module] = {}


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
        "compute_90" for PTX, which the driver compiles for the GPU.

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
    names, options = texts_of("compile", "names", names), texts_of("compile", "options", options)
    if not isinstance(headers, Mapping | None):
        raise TypeError(f"compile: headers: seen {type(headers).__name__}, wanted a mapping")
    if isinstance(architecture, int):
        architecture = str(architecture)
    chosen = architecture_of(number) if architecture is None else architecture
    binary = jit.compile_to_binary(
        source, names=names, options=options, architecture=chosen, name=name, headers=headers
    )
    key = binary.key, binary.image, number
    if key in _modules:
        return _modules[key]
    headers = dict(headers or {})
    made = PublicCall(
        compile,
        source,
        options,
        names,
        name=name,
        headers=headers,
        device=None if device is None else number,
        architecture=architecture,
    )
    ptx = partial(jit.compile_to_ptx, source, names, options, chosen, name, headers)
    return _modules.setdefault(key, Module(name, binary, binary.types, number, made, ptx))


@public
def load_image(
    image: str | bytes | os.PathLike[str],
    names: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    device: Any = None,
) -> Module:
    """Load kernels that were compiled elsewhere: PTX, a cubin or a fatbin.

    The same bytes give the same module, and so the same variables. The driver takes them at the
    first use: it compiles PTX for the GPU.

    Parameters
    ----------
    image : bytes, str or path
        What the file has, or its path; a str is PTX, or a path where it is none.
    names : mapping of str to str, optional
        Names that are to be used -> symbols: {"scale": "_Z5scalePfi"}. Symbols are names, too;
        those of a fatbin, which is compressed, are not listed.
    name : str, optional
        For messages; that of the file without.
    device : str, int or device, optional
        Where kernels without arrays run; cuda:0 without.

    Returns
    -------
    Module
        Of its kernels no types are known: `module["scale"].prepare("float *, int")` declares them.

    Raises
    ------
    ValueError
        It is something else.
    OSError
        The file cannot be read.
    """
    number = gpu_number("load_image", 0 if device is None else device)
    if not isinstance(names, Mapping | None):
        raise TypeError(f"load_image: names: seen {type(names).__name__}, wanted a mapping")
    code, title = _read(image)
    title = title if name is None else check_text("load_image", "name", name)
    symbols.check_format("load_image", title, code)
    lowered = dict(names or {})
    key = cache.key("image", title, code, *lowered, *lowered.values()), code, number
    if key in _modules:
        return _modules[key]
    made = PublicCall(
        load_image, code, lowered, name=title, device=None if device is None else number
    )
    binary = jit.Binary(key[0], code, lowered, {})
    known = dict.fromkeys([*lowered, *symbols.kernels_in(code)])
    module = Module(title, binary, known, number, made, partial(symbols.ptx_in, title, code))
    return _modules.setdefault(key, module)


def _read(image: object) -> tuple[bytes, str]:
    """Return the code, and what it is called in messages."""
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image), "<image>"
    if isinstance(image, str) and ".version" in image:
        return image.encode(), "<image>"
    if not isinstance(image, (str, os.PathLike)):
        seen = type(image).__name__
        raise TypeError(f"load_image: image: seen {seen}, wanted bytes, PTX as text, or a path")
    with open(image, "rb") as file:
        return file.read(), os.path.basename(image)
