# SPDX-License-Identifier: Apache-2.0
"""Modules of kernels: compiled from source at run time, or compiled elsewhere and loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from cuplug._engine.base.public import PublicCall, public
from cuplug._engine.base.validate import as_str_tuple, check_text
from cuplug._engine.cuda.placement import gpu_number
from cuplug._source.compilers import cache, jit
from cuplug._source.compilers.program import architecture_of
from cuplug._source.compilers.stack import on_large_stack
from cuplug._source.kernels import symbols
from cuplug._source.kernels.module import Module

_modules: dict[tuple[str, bytes, int], Module] = {}


@public
def compile(
    source: str | Mapping[str, str] | Sequence[str],
    options: Sequence[str] = (),
    names: Sequence[str] = (),
    *,
    name: str = "<string>",
    headers: Mapping[str, str] | None = None,
    device: Any = None,
    architecture: str | int | None = None,
    compiler: str = "nvrtc",
    link: Sequence[str | bytes | os.PathLike[str]] = (),
) -> Module:
    """Compile CUDA C++ at run time.

    Code that was compiled before comes from memory or from the cache on disk. The same source with
    the same options, names and headers gives the same module, and therefore the same variables.

    Parameters
    ----------
    source : str, or mapping or sequence of str
        The code. It may be several sources, by name or without names. Each is compiled separately,
        and they are linked and optimized as a whole (LTO), so one may declare `extern` what another
        defines. Kernels that are not templates and not in a namespace are found by name.
    options : sequence of str
        Options for the compiler: "-DN=4", "-I/usr/include/mine", "--use_fast_math". `-lineinfo` is
        always added.
    names : sequence of str
        Other kernels, "scale<4>", "mine::add", and variables, "&mine::table".
    name : str
        The name of the source, for messages and profilers.
    headers : mapping of str to str
        Headers, by the names under which the source includes them.
    device : str, int or Device, optional
        The GPU to compile for, and to run kernels without arrays on; the default is cuda:0.
    architecture : str or int, optional
        Such as 90, "90" or "90a", instead of the device's. No GPU is then required before a launch.
        "compute_90" returns PTX, which the driver compiles for the GPU.
    compiler : str
        "nvrtc", or "nvcc" of the CUDA toolkit, which takes longer, for sources that include the C++
        standard library or contain host functions.
    link : sequence of bytes, str or path
        Compiled code to link with: LTO IR, PTX, cubins and fatbins of relocatable code, objects of
        nvcc and libraries of these.

    Returns
    -------
    Module

    Raises
    ------
    CompileError
        If the source is rejected, with its lines, or if no compiler exists.
    CudaError
        If no GPU exists and `architecture` is omitted.

    Examples
    --------
    >>> module = cuplug.compile("__global__ void fill(float *x) { *x = 1; }", device="cuda")
    >>> x = cuplug.empty(1, "float32", device="cuda")
    >>> module["fill"][1, 1](x)
    """
    number = gpu_number("compile", 0 if device is None else device)
    names, options = (
        as_str_tuple("compile", "names", names),
        as_str_tuple("compile", "options", options),
    )
    if not isinstance(headers, Mapping | None):
        raise TypeError(f"compile: headers: got {type(headers).__name__}, expected a mapping")
    if isinstance(architecture, int):
        architecture = str(architecture)
    sources, parts = _sources_of(source, check_text("compile", "name", name)), _parts_of(link)
    chosen = architecture_of(number) if architecture is None else architecture
    headers = dict(headers or {})
    asked = names, options, chosen, name, headers, compiler
    binary, make_ptx = _compile(sources, parts, *asked)
    key = binary.key, binary.image, number
    if key in _modules:
        return _modules[key]
    made = PublicCall(
        compile,
        source if isinstance(source, str) else sources,
        options,
        names,
        name=name,
        headers=headers,
        device=None if device is None else number,
        architecture=architecture,
        compiler=compiler,
        link=list(parts.values()),
    )
    module = Module(name, binary, binary.types, number, made, make_ptx)
    return _modules.setdefault(key, module)


def _compile(
    sources: dict[str, str], parts: dict[str, bytes], *asked: Any
) -> tuple[jit.Binary, Callable[[], str]]:
    """Return the code, and a function that creates its PTX."""
    if len(sources) == 1 and not parts:
        ((name, source),) = sources.items()
        asked = *asked[:3], name, *asked[4:]
        binary = on_large_stack(jit.compile_to_binary, source, *asked)
        return binary, partial(on_large_stack, jit.compile_to_ptx, source, *asked)
    from cuplug._source.compilers import linking

    binary = on_large_stack(linking.compile_to_binary, sources, parts, *asked)
    return binary, partial(on_large_stack, linking.compile_to_ptx, sources, parts, *asked)


def _sources_of(source: object, name: str) -> dict[str, str]:
    """Return the texts by name."""
    if isinstance(source, Mapping):
        named = dict(source)
    elif isinstance(source, Sequence) and not isinstance(source, (str, bytes)):
        named = {f"<source {k}>": text for k, text in enumerate(source)}
    else:
        named = {name: source}
    if not named:
        raise ValueError("compile: source: got none, expected one or several")
    for title, text in named.items():
        check_text("compile", "source: a name", title)
        check_text("compile", "source" if title == name else f"source[{title!r}]", text)
    return named


def _parts_of(link: object) -> dict[str, bytes]:
    """Return compiled code by its name in messages."""
    if isinstance(link, (str, bytes)) or not isinstance(link, Sequence):
        seen = type(link).__name__
        raise TypeError(f"compile: link: got {seen}, expected a sequence of bytes or paths")
    read = [_read("compile: link", each) for each in link]
    titles = [title for _, title in read]
    for code, title in read:
        if not code:
            raise ValueError(f"compile: link: {title}: got no bytes, expected compiled code")
    return {
        title if titles.count(title) == 1 else f"{title} {k}": code
        for k, (code, title) in enumerate(read)
    }


@public
def load_image(
    image: str | bytes | os.PathLike[str],
    names: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    device: Any = None,
) -> Module:
    """Load kernels that were compiled elsewhere: PTX, a cubin or a fatbin.

    The same bytes give the same module, and therefore the same variables. At the first use, the
    driver loads them, and compiles PTX for the GPU.

    Parameters
    ----------
    image : bytes, str or path
        The contents of the file, or its path; a str is PTX, or a path if it is not PTX.
    names : mapping of str to str, optional
        Names to use -> symbols: {"scale": "_Z5scalePfi"}. Symbols are also names. A fatbin is
        compressed, so its symbols are not listed.
    name : str, optional
        A name for messages; the default is the file's name.
    device : str, int or Device, optional
        The GPU for kernels without arrays; the default is cuda:0.

    Returns
    -------
    Module
        The types of its kernels are unknown: `module["scale"].prepare("float *, int")` declares
        them.

    Raises
    ------
    ValueError
        If it is not PTX, a cubin or a fatbin.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> ptx = ".version 7.0 .target sm_52 .address_size 64"
    >>> ptx += ".visible .entry fill(.param .u64 x) { ret; }"
    >>> cuplug.load_image(ptx)["fill"]
    <kernel fill>
    """
    number = gpu_number("load_image", 0 if device is None else device)
    if not isinstance(names, Mapping | None):
        raise TypeError(f"load_image: names: got {type(names).__name__}, expected a mapping")
    code, title = _read("load_image: image", image)
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


def _read(where: str, image: object) -> tuple[bytes, str]:
    """Return the code, and its name in messages."""
    name = "<image>"
    if isinstance(image, (bytes, bytearray, memoryview)):
        code = bytes(image)
    elif isinstance(image, str) and ".version" in image:
        code = image.encode()
    elif isinstance(image, (str, os.PathLike)):
        name = os.path.basename(image)
        try:
            with open(image, "rb") as file:
                code = file.read()
        except OSError as error:
            raise type(error)(error.errno, f"{where}: {error.strerror}", error.filename) from None
    else:
        seen = type(image).__name__
        raise TypeError(f"{where}: got {seen}, expected bytes, PTX as text, or a path")
    return code, name
