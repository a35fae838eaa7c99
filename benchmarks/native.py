# SPDX-License-Identifier: Apache-2.0
"""Compiles the plugins, libraries and programs that benchmarks need, in build/benchmarks/."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cuplug import flags
from machine import find_nvcc
from measurement import Skip

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build" / "benchmarks"
PLUGINS = BUILD / "plugins"
HEADER = Path(flags.include_directory()) / "cuplug" / "plugin.h"


def nvcc() -> str:
    """Return nvcc; raise Skip when there is none."""
    found = find_nvcc()
    if found is None:
        raise Skip("no nvcc")
    return found


def compile_file(source: Path, output: Path, options: Sequence[str], *libraries: str) -> Path:
    """Compile one C or CUDA file unless the output is newer than all sources."""
    sources = [HEADER, *HERE.rglob("*.c"), *HERE.rglob("*.cu*")]
    newest = max(path.stat().st_mtime for path in sources)
    if output.exists() and output.stat().st_mtime > newest:
        return output
    output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = output.with_suffix(f".{os.getpid()}")
    cc = [os.environ.get("CC") or "cc"]
    compiler = [nvcc(), "-arch=native"] if source.suffix == ".cu" else cc
    command = [*compiler, "-O2", *options, str(source), *libraries, "-o", str(unfinished)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{source.name} does not compile: {done.stderr.strip()}")
    unfinished.rename(output)
    return output


def plugin(name: str) -> Path:
    """Compile plugins/<name>/ as an author would; return lib<name>.so."""
    source = next((HERE / "plugins" / name).glob(f"{name}.c*"))
    options = shlex.split(flags.plugin_flags(nvcc=source.suffix == ".cu"))
    return compile_file(source, PLUGINS / f"lib{name}.so", options)


def library(name: str, *includes: str) -> Path:
    """Compile a C or CUDA file of this directory as a shared library, plain C linkage."""
    source = HERE / name
    pic = ["-Xcompiler", "-fPIC"] if source.suffix == ".cu" else ["-fPIC"]
    options = ["-shared", *pic, *(f"-I{path}" for path in includes)]
    return compile_file(source, BUILD / f"lib{source.stem}.so", options)


def program(name: str, uses_core: bool = True) -> Path:
    """Compile a C file of this directory to a program, linked with the core if it uses that."""
    source, libraries = HERE / name, shlex.split(flags.host_flags()) if uses_core else []
    include = f"-I{flags.include_directory()}"
    return compile_file(source, BUILD / source.stem, [include], *libraries, "-ldl", "-pthread")
