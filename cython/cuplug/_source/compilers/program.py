# SPDX-License-Identifier: Apache-2.0
"""NVRTC and nvJitLink, which are called without the GIL: texts -> machine code."""

from __future__ import annotations

import contextlib
import ctypes
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from cuplug._engine.base.libraries import open_library
from cuplug._engine.cuda.placement import Device
from cuplug.errors import CompileError

_OUT_OF_MEMORY = 1  # NVRTC_ERROR_OUT_OF_MEMORY
_ANY_INPUT = 10  # NVJITLINK_INPUT_ANY: the library detects the type of a part
_VIRTUAL = "compute_"  # before an architecture: PTX for it
# Omits NVRTC's declarations of textures and of the CUDA runtime, which take time in a small kernel.
# Code that uses them is rejected, and compiled again with them. An NVRTC without the option rejects
# it at once.
_MINIMAL = "--minimal"
_NVRTC = """Version GetNumSupportedArchs GetSupportedArchs CreateProgram DestroyProgram
    CompileProgram GetPTXSize GetPTX GetCUBINSize GetCUBIN GetLTOIRSize GetLTOIR GetProgramLogSize
    GetProgramLog AddNameExpression GetLoweredName GetErrorString"""
_LINKER = """Create Destroy AddData Complete GetLinkedCubinSize GetLinkedCubin GetLinkedPtxSize
    GetLinkedPtx GetErrorLogSize GetErrorLog"""


class _Nvrtc(NamedTuple):
    library: Any
    version: str
    architectures: list[int]  # 90 for 9.0, ascending


def architecture_of(device: int) -> str:
    """Return the architecture of a GPU in NVRTC's form: "90" for 9.0."""
    return str(Device(device).compute_capability)


def compile_program(
    path: str,
    text: str,
    name: str,
    architecture: str,
    options: Sequence[str],
    names: Sequence[str],
    headers: Mapping[str, str],
    try_minimal: bool,
    is_part: bool = False,
) -> tuple[bytes, list[str], bool, str]:
    """Compile CUDA C++.

    Parameters
    ----------
    path : str
        Of NVRTC.
    text, name, architecture : str
    options, names : sequence of str
    headers : mapping of str to str
    try_minimal : bool
        True to compile with --minimal first, which is faster for a text that has no headers.
    is_part : bool
        True if the image is a part for `link_program`.

    Returns
    -------
    tuple
        The image as bytes, the lowered names as a list, whether it is PTX, the log.
    """
    nvrtc = _open_nvrtc(path)
    target, is_ptx = _target(nvrtc, name, architecture)
    own = [target, "-lineinfo", *(("-dlto", "-rdc=true") if is_part else ()), *options]
    form = "LTOIR" if is_part else "PTX" if is_ptx else "CUBIN"

    def attempt(*more: str) -> tuple[bytes, list[str], bool, str]:
        given = _strings([*own, *more])
        program = ctypes.c_void_p()
        named = (_strings(headers.values()), _strings(headers))
        source = (text.encode(), name.encode(), len(headers), *named)
        code = nvrtc.library.nvrtcCreateProgram(ctypes.byref(program), *source)
        _check(nvrtc.library, code, name)
        try:
            image, lowered, log = _compile(nvrtc.library, program, name, given, names, form)
        finally:
            nvrtc.library.nvrtcDestroyProgram(ctypes.byref(program))
        return image, lowered, is_ptx, log

    if try_minimal:
        with contextlib.suppress(CompileError):
            return attempt(_MINIMAL)
    return attempt()


def link_program(
    path: str, name: str, parts: Mapping[str, bytes], options: Sequence[str], is_ptx: bool
) -> bytes:
    """Link compiled parts, which are optimized as a whole.

    Parameters
    ----------
    path : str
        Of nvJitLink.
    name : str
    parts : mapping of str to bytes
        LTO IR, PTX, cubins, fatbins, objects and libraries.
    options : sequence of str
        With the architecture, "-arch=sm_90".
    is_ptx : bool
        True if the image is PTX: "-ptx" is among the options.

    Returns
    -------
    bytes
        The image.
    """
    linker = _open(path, "nvJitLink", "nvJitLink", _LINKER)
    handle = ctypes.c_void_p()
    code = linker.nvJitLinkCreate(ctypes.byref(handle), len(options), _strings(options))
    try:
        for title, part in parts.items():
            size = ctypes.c_size_t(len(part))
            code = code or linker.nvJitLinkAddData(handle, _ANY_INPUT, part, size, title.encode())
        code = code or linker.nvJitLinkComplete(handle)
        if not code:
            form = "Ptx" if is_ptx else "Cubin"
            code, image = _take(linker, f"nvJitLinkGetLinked{form}", handle)
        if not code:
            return image
        log = _text_of(_take(linker, "nvJitLinkGetErrorLog", handle)[1]) if handle else ""
    finally:
        if handle:
            linker.nvJitLinkDestroy(ctypes.byref(handle))
    text = f"{name}: linking: error {code} of nvJitLink"
    raise CompileError(f"{text}\n{log}" if log else text, log)


@cache
def _open(path: str, name: str, prefix: str, functions: str) -> ctypes.CDLL:
    """Open a library that must have all these functions."""
    try:
        library = ctypes.CDLL(path, handle=open_library(path))
    except OSError as error:
        raise CompileError(f"{name} cannot be loaded: {error}") from None
    for function in functions.split():
        if not hasattr(library, prefix + function):
            raise CompileError(f"{path} has no {prefix}{function}: it is too old or damaged")
    return library


@cache
def _open_nvrtc(path: str) -> _Nvrtc:
    library = _open(path, "NVRTC", "nvrtc", _NVRTC)
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    major, minor, n = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    library.nvrtcGetNumSupportedArchs(ctypes.byref(n))
    architectures = (ctypes.c_int * n.value)()
    library.nvrtcGetSupportedArchs(architectures)
    return _Nvrtc(library, f"{major.value}.{minor.value}", list(architectures))


def _target(nvrtc: _Nvrtc, name: str, architecture: str) -> tuple[str, bool]:
    """Return the option for an architecture, and whether it makes PTX.

    Machine code if NVRTC knows it; PTX for the driver if the GPU is newer, or for "compute_90".
    """
    known, asked = nvrtc.architectures, architecture.removeprefix(_VIRTUAL)
    digits = re.match("[0-9]+", asked)
    wanted = int(digits[0]) if digits else 0
    if wanted > known[-1]:
        return f"--gpu-architecture={_VIRTUAL}{known[-1]}", True
    if wanted not in known:
        raise CompileError(
            f"{name}: architecture: got {architecture}, expected one that NVRTC {nvrtc.version} "
            f"compiles for: {known[0]} to {known[-1]}"
        )
    is_ptx = architecture != asked
    return f"--gpu-architecture={_VIRTUAL if is_ptx else 'sm_'}{asked}", is_ptx


def _compile(
    library: Any,
    program: ctypes.c_void_p,
    name: str,
    options: ctypes.Array[ctypes.c_char_p],
    names: Sequence[str],
    form: str,
) -> tuple[bytes, list[str], str]:
    """Return the image, lowered names and log. For rejected code, the message has the log."""
    expressions, symbol, lowered = [each.encode() for each in names], ctypes.c_char_p(), []
    for each in expressions:
        _check(library, library.nvrtcAddNameExpression(program, each), name)
    refusal = library.nvrtcCompileProgram(program, len(options), options)
    code, data = _take(library, "nvrtcGetProgramLog", program)
    log = _text_of(data)
    if refusal and not code and log:
        error = library.nvrtcGetErrorString(refusal).decode()
        raise CompileError(f"{name}: {error}\n{log}", log)
    _check(library, refusal or code, name)
    for each in expressions:
        code = library.nvrtcGetLoweredName(program, each, ctypes.byref(symbol))
        _check(library, code, name)
        lowered.append((symbol.value or b"").decode())
    code, image = _take(library, f"nvrtcGet{form}", program)
    _check(library, code, name)
    return image, lowered, log.strip("\n ")


def _take(library: Any, function: str, *handle: ctypes.c_void_p) -> tuple[int, bytes]:
    """Return the error code, and the bytes that a pair of functions gives."""
    size = ctypes.c_size_t()
    code = library[f"{function}Size"](*handle, ctypes.byref(size))
    buffer = (ctypes.c_char * size.value)()
    return code or library[function](*handle, buffer), bytes(buffer)


def _text_of(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("utf-8", "replace")


def _check(library: Any, code: int, name: str) -> None:
    if code == _OUT_OF_MEMORY:
        raise MemoryError(f"{name}: NVRTC ran out of memory")
    if code:
        raise CompileError(f"{name}: NVRTC: {library.nvrtcGetErrorString(code).decode()}")


def _strings(texts: Iterable[str]) -> ctypes.Array[ctypes.c_char_p]:
    encoded = [text.encode() for text in texts]
    return (ctypes.c_char_p * len(encoded))(*encoded)
