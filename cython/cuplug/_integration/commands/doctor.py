# SPDX-License-Identifier: Apache-2.0
"""The state of this machine for cuplug: `cuplug doctor`."""

from __future__ import annotations

import difflib
import importlib.util
import os
import platform
import re
import shlex
import stat
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import cuplug
from cuplug._engine.adoption.description import description_path_of
from cuplug._engine.base import environment, flags
from cuplug._integration.author import doc_pages
from cuplug._integration.commands import machine as machines
from cuplug._integration.commands.machine import NOTE, OK, PROBLEM, Finding, Machine
from cuplug._source.compilers import cache, host_compiler, nvrtc, processes
from cuplug.errors import CompileError

# Rows of the tables in docs/environment.md: name, default and meaning.
VARIABLE = re.compile(r"^\| `([A-Z_]+)` \| (.+?) \| (.+) \|$", re.M)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
# Origins that the user set: if a directory is missing there, it is reported.
NAMED_ORIGINS = ("LD_LIBRARY_CUPLUG_PATH", "package")


@dataclass
class Variable:
    """A variable of the environment, and its value in effect."""

    name: str
    value: str
    source: str  # "environment", "default", "ignored" or "unknown"
    default: str
    meaning: str

    def as_dict(self) -> dict[str, Any]:
        """Return the variable for JSON."""
        return asdict(self)


def variables() -> list[Variable]:
    """Return the variables that cuplug reads, then others whose names look similar."""
    (page,) = (x for x in doc_pages.read_pages() if x.name == "environment")
    found = []
    for name, default, text in VARIABLE.findall(page.text):
        default, meaning = (LINK.sub(r"\1", x).replace("`", "") for x in (default, text))
        value = os.environ.get(name, "")
        source = "default" if not value else "ignored" if environment.privileged else "environment"
        found.append(
            Variable(name, value if source == "environment" else default, source, default, meaning)
        )
    known = [x.name for x in found]
    for name in sorted(x for x in os.environ if x.startswith("CUPLUG_") and x not in known):
        near = difflib.get_close_matches(name, known, 1, cutoff=0.8)
        advice = f"did you mean {near[0]}?" if near else "see `cuplug help environment`"
        found.append(Variable(name, os.environ[name], "unknown", "", advice))
    return found


def examine_package(machine: Machine) -> Iterator[Finding]:
    """Report this version of cuplug."""
    yield Finding(OK, f"cuplug {cuplug.__version__} in {flags.PACKAGE}")
    if not os.path.exists(os.path.join(flags.get_include(), "cuplug", "plugin.h")):
        yield Finding(PROBLEM, f"no headers in {flags.get_include()}", "install the package again")


def examine_compilers(machine: Machine) -> Iterator[Finding]:
    """Report what compiles operators from source: a C compiler for the CPU, NVRTC for GPUs."""
    try:
        yield Finding(OK, f"C compiler {shlex.join(host_compiler.find_compiler())}")
    except CompileError as error:
        advice = "for operators from source on the CPU, install one: sudo apt install gcc"
        yield Finding(NOTE, str(error).partition(";")[0], advice)
    try:
        yield Finding(OK, f"NVRTC {nvrtc.find().path}")
    except CompileError as error:
        advice = "for kernels from source on a GPU, install it: pip install nvidia-cuda-nvrtc"
        yield Finding(NOTE, str(error).partition(":")[0], advice)


def examine_temporary_files(machine: Machine) -> Iterator[Finding]:
    """Report the folders for temporary files and for compiled code."""
    advice = "set TMPDIR to a folder that exists and that only you can write"
    wanted = os.environ.get("TMPDIR", "")
    try:
        with processes.working_directory() as directory:
            used = os.path.dirname(directory)
        yield Finding(OK, f"compilers work in {used}")
        if wanted and used != wanted:
            yield Finding(NOTE, f"TMPDIR={wanted} is not used", advice)
    except CompileError as error:
        problem, *reasons = str(error).removeprefix("compile: ").split("\n")
        text = f"{problem.partition(';')[0]}: operators from source cannot be compiled"
        yield Finding(NOTE, "\n".join([text, *map(str.strip, reasons)]), advice)
    yield from _examine_cache()


def _examine_cache() -> Iterator[Finding]:
    folder = cache.directory()
    if not cache.limit():
        yield Finding(NOTE, "compiled code is not kept (CUPLUG_CACHE_BYTES=0)")
    elif cache.make_directory() and os.access(folder, os.W_OK):
        yield Finding(OK, f"compiled code is kept in {folder}")
    else:
        advice = "set CUPLUG_CACHE_DIR to a folder that only you can write"
        yield Finding(NOTE, f"compiled code is not kept: {folder} cannot be written", advice)


def examine_search_path(machine: Machine) -> Iterator[Finding]:
    """Report requested directories that are not used."""
    if machine.path_error:
        yield Finding(PROBLEM, machine.path_error)
    for directory in machine.directories:
        if directory.state == "rejected":
            yield Finding(
                PROBLEM, f"{directory.path} is not used: {directory.reason}", "see `cuplug path`"
            )
        elif directory.state == "missing" and directory.origin in NAMED_ORIGINS:
            yield Finding(
                NOTE, f"{directory.path} does not exist", "make it, or take it off the path"
            )
    used = [directory.path for directory in machine.directories if directory.state == "ok"]
    yield Finding(OK, "searched: " + (", ".join(used) or "nothing"))


def examine_plugins(machine: Machine) -> Iterator[Finding]:
    """Count the plugins that are used, and name the others."""
    fine = [plugin for plugin in machine.plugins if plugin.state == "ok"]
    yield Finding(OK if fine else NOTE, f"{len(fine)} plugins can be used", "see `cuplug list`")
    for plugin in machine.plugins:
        if plugin.state == "rejected":
            yield Finding(
                PROBLEM,
                f"{plugin.path} is rejected: {plugin.reason}",
                f"cuplug check {plugin.path}" if plugin.kind == "plugin" else "see `cuplug list`",
            )
        elif plugin.state in ("shadowed", "changed"):
            yield Finding(NOTE, f"{plugin.path} is {plugin.state}: {plugin.reason}")


def examine_permissions(machine: Machine) -> Iterator[Finding]:
    """Report files that a group may write: its members can run code as you."""
    used = [directory.path for directory in machine.directories if directory.state == "ok"]
    fine = [plugin for plugin in machine.plugins if plugin.state == "ok"]
    used += [plugin.path for plugin in fine]
    used += [description_path_of(plugin.path) for plugin in fine if plugin.kind != "plugin"]
    shared = [path for path in used if _group_writable(path)]
    for path in shared:
        yield Finding(
            NOTE, f"{path} may be written by its group", f"chmod g-w {path}, if that is not wanted"
        )
    if not shared:
        yield Finding(OK, "only you and root may write what is used")


def _group_writable(path: str) -> bool:
    try:
        return bool(os.stat(path).st_mode & stat.S_IWGRP)
    except OSError:
        return False


def examine_environment(machine: Machine) -> Iterator[Finding]:
    """Report the variables in effect."""
    known = variables()
    in_force = [f"{x.name}={x.value}" for x in known if x.source == "environment"]
    yield Finding(OK, "\n".join(in_force) or "no variable that cuplug reads is set")
    for x in known:
        if x.source == "unknown":
            yield Finding(NOTE, f"{x.name} is set, and cuplug does not read it", x.meaning)
    if os.environ.get("CUPLUG_ALLOW_UNSAFE"):
        yield Finding(
            NOTE,
            "files that others may write are loaded (CUPLUG_ALLOW_UNSAFE)",
            "unset it once permissions are right",
        )
    if os.environ.get("SUDO_UID"):
        yield Finding(
            NOTE,
            "sudo drops variables that begin with LD_",
            'pass it on: sudo env LD_LIBRARY_CUPLUG_PATH="$LD_LIBRARY_CUPLUG_PATH" ...',
        )


def examine_python(machine: Machine) -> Iterator[Finding]:
    """Report missing Python packages for bfloat16 arrays and for typed-memoryview functions."""
    yield Finding(OK, f"Python {platform.python_version()}")
    if importlib.util.find_spec("ml_dtypes") is None:
        yield Finding(
            NOTE, "no ml_dtypes: NumPy has no bfloat16 without it", "pip install ml_dtypes"
        )
    if importlib.util.find_spec("Cython") is None:
        yield Finding(NOTE, "no Cython: what `cuplug bind` writes needs it", "pip install cython")
    header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
    if not os.path.exists(header):
        yield Finding(
            NOTE,
            f"no {header}: what `cuplug bind` writes needs it",
            "install Python's headers: sudo apt install python3-dev",
        )


EXAMINATIONS: list[tuple[str, Callable[[Machine], Iterator[Finding]]]] = [
    ("cuplug", examine_package),
    ("driver", machines.examine_driver),
    ("gpu", machines.examine_gpus),
    ("toolkit", machines.examine_toolkit),
    ("compilers", examine_compilers),
    ("temporary files", examine_temporary_files),
    ("search path", examine_search_path),
    ("plugins", examine_plugins),
    ("architectures", machines.examine_architectures),
    ("permissions", examine_permissions),
    ("environment", examine_environment),
    ("python", examine_python),
]


def examine() -> list[Finding]:
    """Examine the machine. Never raises: a failed examination becomes a finding."""
    machine = machines.look_around()
    findings: list[Finding] = []
    for topic, examination in EXAMINATIONS:
        try:
            found = list(examination(machine))
        except Exception as error:  # one failed examination must not hide the others
            found = [Finding(PROBLEM, f"this could not be examined: {error!r}")]
        for finding in found:
            finding.topic = topic
        findings += found
    return findings
