# SPDX-License-Identifier: Apache-2.0
"""Linking of several sources and compiled code to one image, which is optimized as a whole."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache as once

from cuplug._engine.base import environment
from cuplug._source.compilers import cache, jit, nvrtc, shipped
from cuplug._source.compilers.program import link_program
from cuplug.errors import CompileError

_FAST = ("-ftz=1", "-prec-div=0", "-prec-sqrt=0", "-fma=1")
# Compiler options that also apply to linking -> the linker's options.
_OPTIONS = {"ftz": "ftz", "prec-div": "prec-div", "prec-sqrt": "prec-sqrt", "fmad": "fma"}
_VALUES = {"true": "1", "false": "0"}


def compile_to_binary(
    sources: Mapping[str, str],
    parts: Mapping[str, bytes],
    names: Sequence[str],
    options: Sequence[str],
    architecture: str,
    name: str,
    headers: Mapping[str, str] | None,
    compiler: str,
) -> jit.Binary:
    """Compile sources separately, and link them, unless that was done before.

    Parameters
    ----------
    sources : mapping of str to str
        Texts by their names.
    parts : mapping of str to bytes
        LTO IR, PTX, cubins, fatbins, objects and libraries by their names.
    names, options, architecture, name, headers, compiler
        As for `jit.compile_to_binary`. A name may be in any of the sources.

    Raises
    ------
    CompileError
        A source has an error, no source defines a name, or linking fails.
    """
    programs = [
        jit.check(text, names, options, architecture, title, headers, compiler)._replace(
            names=(), is_part=True
        )
        for title, text in sources.items()
    ]
    given = [part for item in parts.items() for part in item]
    requests = [jit.request_of(program) for program in programs]
    request = shipped.request("linked", name, *requests, *names, "", *given)

    def make() -> jit.Binary:
        keys = [jit.key_of(program) for program in programs]
        of_parts, are_whole = zip(*keys, strict=True) if keys else ((), ())
        key = cache.key("linked", _identity(find()), name, *of_parts, *names, "", *given)
        return jit.kept(key, all(are_whole), lambda: link(key, of_parts))

    def link(key: str, keys: Sequence[str]) -> jit.Binary:
        compiled = [
            jit.compile_source(k, program, _mentioned(names, program.source))
            for program, k in zip(programs, keys, strict=True)
        ]
        return _link(
            key,
            name,
            names,
            dict(zip(sources, compiled, strict=True)),
            parts,
            _linker_options(options, architecture),
        )

    return jit.shipped_or(request if all(requests) else "", make)


def compile_to_ptx(
    sources: Mapping[str, str],
    parts: Mapping[str, bytes],
    names: Sequence[str],
    options: Sequence[str],
    architecture: str,
    name: str,
    headers: Mapping[str, str] | None,
    compiler: str,
) -> str:
    """Return the PTX of what `compile_to_binary` has linked; all of it must be LTO IR or source."""
    virtual = f"compute_{jit.number_of(architecture)}"
    binary = compile_to_binary(sources, parts, names, options, virtual, name, headers, compiler)
    return binary.image.decode().rstrip("\0")


@once
def find() -> str:
    """Return the path or name of the nvJitLink that belongs to this process's NVRTC."""
    compiler = nvrtc.find().path
    version = re.search(r"\.so\.(\d+)", os.path.basename(compiler))
    file = f"libnvJitLink.so.{version[1] if version else nvrtc.MAJORS[-1]}"
    homes = [environment.variable(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    folders = [os.path.dirname(path) for path in (compiler, os.path.realpath(compiler))]
    folders += [os.path.join(entry, "nvidia/nvjitlink/lib") for entry in sys.path]
    folders += [f"{home}/{below}" for home in homes if home for below in ("lib64", "lib")]
    paths = [os.path.join(folder, file) for folder in folders]
    return next((path for path in paths if os.path.exists(path)), file)


def _identity(path: str) -> str:
    if not os.path.exists(path):  # the dynamic linker finds it
        return path
    status = os.stat(path)
    return f"{os.path.realpath(path)} {status.st_size} {status.st_mtime_ns}"


def _mentioned(names: Sequence[str], source: str) -> list[str]:
    """Return the names whose last word occurs in a source, which may therefore define them."""
    words = set(re.findall(r"[A-Za-z_]\w*", source))
    last = [re.findall(r"[A-Za-z_]\w*", each.partition("<")[0])[-1:] for each in names]
    return [each for each, word in zip(names, last, strict=True) if words.issuperset(word)]


def _link(
    key: str,
    name: str,
    names: Sequence[str],
    compiled: Mapping[str, jit.Binary],
    parts: Mapping[str, bytes],
    options: Sequence[str],
) -> jit.Binary:
    lowered: dict[str, str] = {}
    types: dict[str, tuple[int, ...]] = {}
    for binary in compiled.values():
        lowered |= binary.lowered
        types |= binary.types
    for each in names:
        if each not in lowered:
            raise CompileError(f"{name}: names: got {each}, expected a name in one of the sources")
    codes = {title: binary.image for title, binary in compiled.items()} | dict(parts)
    image = link_program(find(), name, codes, options, "-ptx" in options)
    log = "\n".join(binary.log for binary in compiled.values() if binary.log)
    return jit.Binary(key, image, lowered, types, log)


def _linker_options(options: Sequence[str], architecture: str) -> list[str]:
    """Return the linker options for compiler options."""
    own = [f"-arch=sm_{jit.number_of(architecture)}", "-lto", "-lineinfo"]
    if architecture.startswith("compute_"):
        own.append("-ptx")
    for option in options:
        word, _, value = option.lstrip("-").partition("=")
        if word == "use_fast_math":
            own += _FAST
        elif word == "maxrregcount":
            own.append(f"-maxrregcount={value}")
        elif word in _OPTIONS:
            own.append(f"-{_OPTIONS[word]}={_VALUES.get(value, value)}")
    return own
