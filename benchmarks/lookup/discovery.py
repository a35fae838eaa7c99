# SPDX-License-Identifier: Apache-2.0
"""Listing plugins, finding one, the command, and plugins of many operators and of rows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import native
import numpy as np
from cuplug._engine.base import flags
from measurement import Comparison, Contender, Target, statement
from module import Run, run_module

N_PLUGINS = 1000
N_FILES = 20_000
N_SHOWN = 10_000
PLACEHOLDER = "p0000"
N_OPERATORS = 4000
N_ROWS = 1000


def copies(n: int) -> Path:
    """Return a directory with n plugins: copies of one file whose tables have different names."""
    original = native.plugin("small").read_bytes()
    directory = native.BUILD / f"discovery-{n}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for k in range(n):
        name = f"p{k:04d}"
        copy = original.replace(PLACEHOLDER.encode(), name.encode())
        (directory / f"lib{name}.so").write_bytes(copy)
    return directory


def in_c(
    directory: Path, *arguments: str, program: str = "discovery.c", repeat_in_c: bool = False
) -> Contender:
    """Return a contender that runs a C program on a directory and uses the printed time."""
    path = str(native.program(program))
    environment = os.environ | {"LD_LIBRARY_CUPLUG_PATH": str(directory)}

    def run(number: int) -> int:
        values = [str(number) if value == "NUMBER" else value for value in arguments]
        command = [path, *values]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            raise RuntimeError((done.stderr.strip() or "it failed").splitlines()[0])
        return int(done.stdout)

    if repeat_in_c:
        return Contender(run)
    return Contender(lambda number: sum(run(1) for _ in range(number)))


def links(n: int) -> Path:
    """Return a directory with n names of one file, whose plugin has another name."""
    directory = native.BUILD / f"discovery-links-{n}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    plugin = native.plugin("small")
    for k in range(n):
        os.link(plugin, directory / f"liblink{k}.so")
    return directory


def python(*arguments: str, path: str = "") -> Contender:
    """Return a contender that runs Python, from its start to its end."""
    environment = os.environ | {"LD_LIBRARY_CUPLUG_PATH": path}

    def run() -> None:
        command = [sys.executable, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)

    return statement("run()", run=run)


def in_python(directory: Path) -> Contender:
    """Return a contender that lists through cuplug.plugins()."""
    os.environ["LD_LIBRARY_CUPLUG_PATH"] = str(directory)
    import cuplug

    n_listed = len([p for p in cuplug.plugins() if p.path.startswith(str(directory))])
    if n_listed != N_PLUGINS:
        raise ArithmeticError(f"{n_listed} of {N_PLUGINS} plugins are listed")
    return statement("plugins()", plugins=cuplug.plugins)


def written(name: str, signatures: Sequence[str]) -> Path:
    """Return a directory with a plugin whose overloads share one entry, which does nothing."""
    directory = native.BUILD / f"discovery-{name}"
    directory.mkdir(parents=True, exist_ok=True)
    source = directory / f"{name}.c"
    row = 'CUPLUG_HOST_OPERATOR(nothing, "{}", "" CUPLUG_NONBLOCKING);'
    head = "#include <cuplug/plugin.h>\nCUPLUG_ENTRY int nothing(const cuplug_call *call) {\n"
    body = f'  (void)call;\n  return CUPLUG_OK;\n}}\nCUPLUG_PLUGIN({name}, "1.0.0");\n'
    source.write_text(head + body + "\n".join([row.format(text) for text in signatures]) + "\n")
    native.compile_file(source, directory / f"lib{name}.so", flags.plugin_flags())
    return directory


def call(directory: Path, name: str, size: int) -> Contender:
    """Return a contender that calls an operator with one array, from Python."""
    os.environ["LD_LIBRARY_CUPLUG_PATH"] = str(directory)
    import cuplug

    return statement("call(x)", call=cuplug.find(name), x=np.ones(size, np.float32))


def measure_large(run: Run) -> None:
    """Time the cost of a plugin's table, by its size."""
    many = written("many", [f"op{k}(x: float32[n])" for k in range(N_OPERATORS)])
    found = f"cuplug_find, C, first in a process, of {N_OPERATORS:,} operators"
    wanted = [Target(found, "< 10 ms", extra=10.0)]
    comparison = Comparison("A plugin of many operators", "ms", found, wanted, number=1)
    comparison.add(found, partial(in_c, many, "find", f"many.op{N_OPERATORS - 1}"))
    run.measure(comparison, 0)
    rows = written("rows", [f"rows(x: float32[{k + 1}])" for k in range(N_ROWS)])
    one = written("one", [f"one(x: float32[{N_ROWS}])"])
    last = f"the last of {N_ROWS:,} rows"
    wanted = [Target(last, "< 0.3 us", extra=0.3), Target(last, "as one row", ("one row",), 1.1)]
    comparison = Comparison("A warm call with a NumPy array, by its row", "us", "one row", wanted)
    comparison.add("one row", partial(call, one, "one.one", N_ROWS))
    comparison.add(last, partial(call, rows, "rows.rows", N_ROWS))
    run.measure(comparison, 0)


def measure_many_files(run: Run) -> None:
    """Time the cost of a folder, by its size, and the command."""
    title = f"{N_FILES:,} files in a folder, page cache warm"
    wanted = [Target("cuplug_list, C", "<= 250 ms", extra=250.0)]
    comparison = Comparison(title, "ms", "cuplug_list, C", wanted, number=1)
    rounds = ("list", "NUMBER", "0")
    comparison.add("cuplug_list, C", partial(in_c, links(N_FILES), *rounds, repeat_in_c=True))
    run.measure(comparison, 0)
    listed, flagged = f"cuplug list, of {N_SHOWN:,} plugins", "cuplug --cflags"
    wanted = [Target(listed, "< 1,500 ms", extra=1500.0), Target(flagged, "< 50 ms", extra=50.0)]
    comparison = Comparison("The command cuplug", "ms", "python -c pass", wanted, number=1)
    command, many = ("-m", "cuplug"), str(copies(N_SHOWN))
    comparison.add(listed, lambda: python(*command, "list", path=many))
    comparison.add(flagged, lambda: python(*command, "--cflags"))
    comparison.add("python -c pass", lambda: python("-c", "pass"))
    run.measure(comparison, 0)


def measure(run: Run) -> None:
    """Listing plugins and finding one of them, with many files and large tables."""
    many, few = copies(N_PLUGINS), copies(10)
    listed, found = "cuplug_list, C", "cuplug_find, C, first in a process, among 1,000"
    wanted = [
        Target(listed, "< 10 ms", extra=10.0),
        Target(found, "no scan: <= 0.1 x the listing", (listed,), 0.1),
    ]
    title = f"{N_PLUGINS:,} plugins, page cache warm"
    comparison = Comparison(title, "ms", listed, wanted, number=10)
    rounds = ("list", "NUMBER", str(N_PLUGINS))
    comparison.add(listed, partial(in_c, many, *rounds, repeat_in_c=True))
    comparison.add("cuplug.plugins(), Python", partial(in_python, many))
    comparison.add(found, partial(in_c, many, "find", "p0500"))
    few_found = "cuplug_find, C, first in a process, among 10"
    comparison.add(few_found, partial(in_c, few, "find", "p0005"))
    run.measure(comparison, 0)
    measure_large(run)
    measure_many_files(run)


if __name__ == "__main__":
    run_module(measure)
