# SPDX-License-Identifier: Apache-2.0
"""Compiles the plugins, libraries and programs of the benchmarks, in build/benchmarks/."""

from __future__ import annotations

import importlib
import os
import shlex
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cuplug
from cuplug._engine.base import flags
from cuplug._integration.author import bind
from machine import find_nvcc
from measurement import Skip

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build" / "benchmarks"
PLUGINS = BUILD / "plugins"
HEADER = Path(flags.get_include()) / "cuplug" / "plugin.h"


def nvcc() -> str:
    """Return nvcc; raise Skip if it is missing."""
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
    unfinished = output.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    cc = shlex.split(os.environ.get("CC", "")) or ["cc"]
    compiler = [nvcc(), "-arch=native"] if source.suffix == ".cu" else cc
    command = [*compiler, "-O2", *options, str(source), *libraries, "-o", str(unfinished)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{source.name} does not compile: {done.stderr.strip()}")
    unfinished.rename(output)
    return output


def find(name: str) -> Path:
    """Return a file in one of the rooms."""
    return next(HERE.glob(f"*/{name}"))


def plugin(name: str) -> Path:
    """Compile fixtures/<name>/ as an author would; return lib<name>.so."""
    source = next((HERE / "fixtures" / name).glob(f"{name}.c*"))
    options = flags.plugin_flags(nvcc=source.suffix == ".cu")
    return compile_file(source, PLUGINS / f"lib{name}.so", options)


def shared_library(name: str, *includes: str) -> Path:
    """Compile a C or CUDA file of a room as a shared library, plain C linkage."""
    source = find(name)
    pic = ["-Xcompiler", "-fPIC"] if source.suffix == ".cu" else ["-fPIC"]
    options = ["-shared", *pic, *(f"-I{path}" for path in includes)]
    return compile_file(source, BUILD / f"lib{source.stem}.so", options)


def program(name: str, *options: str, uses_core: bool = True) -> Path:
    """Compile a C file of a room to a program, linked with the core if necessary."""
    source, libraries = find(name), flags.host_flags() if uses_core else []
    include = f"-I{flags.get_include()}"
    output, given = BUILD / source.stem, [include, *options]
    return compile_file(source, output, given, *libraries, "-ldl", "-pthread")


def cython_module(source: Path, *pxd: Path) -> Path:
    """Compile a Cython file to a module in build/benchmarks/, which has its pxd files."""
    BUILD.mkdir(parents=True, exist_ok=True)
    output = BUILD / (source.stem + sysconfig.get_config_var("EXT_SUFFIX"))
    newest = max(path.stat().st_mtime for path in (source, *pxd))
    if output.exists() and output.stat().st_mtime > newest:
        return output
    output.unlink(missing_ok=True)
    written = BUILD / f"{source.stem}.c"
    package = Path(cuplug.__file__).parents[1]
    translate = [sys.executable, "-m", "cython", "-3", f"-I{BUILD}", f"-I{package}"]
    command = [*translate, str(source), "-o", str(written)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{source.name}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")
    includes = [sysconfig.get_path("include"), flags.get_include()]
    options = ["-shared", "-fPIC", "-fopenmp", *(f"-I{path}" for path in includes)]
    return compile_file(written, output, options, *flags.host_flags())


def nanobind_module() -> Any:
    """Return the module of noop_nanobind.cpp, compiled together with nanobind."""
    import nanobind

    directory = Path(nanobind.include_dir()).parent
    includes = [nanobind.include_dir(), directory / "ext" / "robin_map" / "include"]
    options = ["-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", "-DNDEBUG", "-w"]
    options += ["-fno-strict-aliasing", "-DNB_COMPACT_ASSERTIONS"]
    options += [f"-I{path}" for path in (*includes, sysconfig.get_path("include"))]
    output = BUILD / ("noop_nanobind" + sysconfig.get_config_var("EXT_SUFFIX"))
    combined = str(Path(nanobind.source_dir()) / "nb_combined.cpp")
    compile_file(find("noop_nanobind.cpp"), output, options, combined, "-lstdc++")
    sys.path.append(str(BUILD))
    return importlib.import_module("noop_nanobind")


def typed_calls() -> Any:
    """Return the module typed_calls, compiled with the typed functions of noop."""
    written = bind.write_module(str(plugin("noop")), str(BUILD))
    cython_module(find("typed_calls.pyx"), Path(written.pxd))
    sys.path.append(str(BUILD))
    return importlib.import_module("typed_calls")
