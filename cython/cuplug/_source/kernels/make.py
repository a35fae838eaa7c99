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

    What was compiled before is taken from memory or from the cache on disk. The same source with
    the same options, names and headers gives the same module, and so the same variables.

    Parameters
    ----------
    source : str, or mapping or sequence of str
        Kernels that are no templates and lie in no namespace are found in it. Several sources, by
        their names or without, are compiled each for itself, and linked: what one declares
        `extern`, another has. They are optimised as a whole (LTO).
    options : sequence of str
        The compiler's: "-DN=4", "-I/usr/include/mine", "--use_fast_math". `-lineinfo` is always
        given.
    names : sequence of str
        Other kernels, "scale<4>", "mine::add", and variables, "&mine::table".
    name : str
        Of the source, for messages and profilers.
    headers : mapping of str to str
        Texts by the names under which the source includes them.
    device : str, int or Device, optional
        The GPU to compile for, and where kernels without arrays run; cuda:0 without.
    architecture : str or int, optional
        90, "90", "90a" instead of that of the device: then nothing needs a GPU before a launch.
        "compute_90" for PTX, which the driver compiles for the GPU.
    compiler : str
        "nvrtc", or "nvcc" of the CUDA toolkit, which takes longer: for sources that include the C++
        standard library or have functions of the host, too.
    link : sequence of bytes, str or path
        What was compiled elsewhere and belongs to it: LTO IR, PTX, cubins and fatbins of
        relocatable code, objects of nvcc and libraries of these.

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
    """Return the code, and what makes PTX of it."""
    if len(sources) == 1 and not parts:
        ((name, source),) = sources.items()
        asked = *asked[:3], name, *asked[4:]
        binary = on_large_stack(jit.compile_to_binary, source, *asked)
        return binary, partial(on_large_stack, jit.compile_to_ptx, source, *asked)
    from cuplug._source.compilers import linking

    binary = on_large_stack(linking.compile_to_binary, sources, parts, *asked)
    return binary, partial(on_large_stack, linking.compile_to_ptx, sources, parts, *asked)


def _sources_of(source: object, name: str) -> dict[str, str]:
    """Return the texts by their names."""
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
    """Return compiled code by what it is called in messages."""
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
    device : str, int or Device, optional
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
    """Return the code, and what it is called in messages."""
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
