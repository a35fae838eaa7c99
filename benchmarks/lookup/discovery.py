# SPDX-License-Identifier: Apache-2.0
"""Listing 1,000 plugins and finding one of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

import native
from measurement import Comparison, Contender, Target, statement
from module import Run, run_module

N_PLUGINS = 1000
PLACEHOLDER = "p0000"


def copies(n: int) -> Path:
    """Return a directory with n plugins: copies of one file that differ in their table's name."""
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
    """Return a contender that runs a C program on a directory and takes the time it prints."""
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


def in_python(directory: Path) -> Contender:
    """Return a contender that lists through cuplug.plugins()."""
    os.environ["LD_LIBRARY_CUPLUG_PATH"] = str(directory)
    import cuplug

    n_listed = len([p for p in cuplug.plugins() if p.path.startswith(str(directory))])
    if n_listed != N_PLUGINS:
        raise ArithmeticError(f"{n_listed} of {N_PLUGINS} plugins are listed")
    return statement("plugins()", plugins=cuplug.plugins)


def measure(run: Run) -> None:
    """Listing 1,000 plugins and finding one of them."""
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


if __name__ == "__main__":
    run_module(measure)
