# SPDX-License-Identifier: Apache-2.0
"""Imports, and the first call of an operator, each in a fresh process."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import native
from driver import Driver
from measurement import Comparison, Contender, Skip, Target
from module import Run, run_module

TIMED_IMPORT = """
import time
start_ns = time.perf_counter_ns()
{statement}
print((time.perf_counter_ns() - start_ns) / 1e3)
"""
PEERS = ("cuda.core", "cupy", "torch", "tvm_ffi")


def fresh_process(*command: str) -> Contender:
    """Return a contender that prints its own microseconds, run in a new process each time."""
    environment = os.environ | {"LD_LIBRARY_CUPLUG_PATH": str(native.PLUGINS)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def time_ns(number: int) -> float:
        elapsed_us = 0.0
        for _ in range(number):
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, env=environment, timeout=120
            )
            if done.returncode:
                raise RuntimeError((done.stderr.strip() or "it failed").splitlines()[-1])
            elapsed_us += float(done.stdout)
        return elapsed_us * 1e3

    return Contender(time_ns)


def timed_import(name: str) -> Contender:
    """Import one package in a fresh interpreter."""
    if importlib.util.find_spec(name) is None:
        raise Skip("not installed")
    statement = "from cuplug import find" if name == "cuplug" else f"import {name}"
    return fresh_process(sys.executable, "-c", TIMED_IMPORT.format(statement=statement))


def imports() -> Comparison:
    """Return the comparison of imports, with files in the page cache and byte code written."""
    wanted = [Target("cuplug", "<= numpy + 30 ms", ("numpy",), extra=30.0)]
    comparison = Comparison("import, fresh process", "ms", "numpy", wanted, number=1)
    comparison.settings["cuplug"] = "with what a call needs, and NumPy; both load at first use"
    return add_imports(comparison, "numpy", "cuplug")


def peers_imports() -> Comparison:
    """Return the comparison of the peers' imports, which take seconds, with cuplug's."""
    comparison = Comparison("import of the peers, fresh process", "ms", "cuplug", [], number=1)
    return add_imports(comparison, "cuplug", *PEERS)


def add_imports(comparison: Comparison, *names: str) -> Comparison:
    for name in names:
        comparison.add(name, lambda name=name: timed_import(name))
    return comparison


def first_call(side: str, ours: dict[str, str], plugin: str, *floor: str) -> Comparison:
    """Return the comparison of first calls with dlopen, dlsym and the first call from C."""
    reference = "dlopen + first call from C"
    wanted = [Target(name, "< 1 ms over that from C", (reference,), extra=1e3) for name in ours]
    title = f"first call of an operator in a process, {side}"
    comparison = Comparison(title, "us", reference, wanted, number=1)
    comparison.settings["cuplug"] = "look-up by name, loading and the call, after the imports"

    def from_c() -> Contender:
        library = str(native.plugin(plugin))
        program = str(native.program("first_use_floor.c", uses_core=False))
        return fresh_process(program, library, *floor)

    comparison.add(reference, from_c)
    script = str(native.find("first_use_call.py"))
    for name, kind in ours.items():
        comparison.add(name, lambda kind=kind: fresh_process(sys.executable, script, kind))
    return comparison


def measure(run: Run) -> None:
    """Imports, and the first call of an operator, each in a fresh process."""
    try:
        Driver()
        gpu = True
    except Skip:
        gpu = False
    host = {"cuplug, NumPy arrays": "host"}
    run.measure(first_call("host", host, "noop", "noop_host"), 3 if gpu else 2)
    if gpu:
        run.min_rounds = 3  # importing PyTorch takes seconds, which are not timed
        ours = {"cuplug, own arrays": "own", "cuplug, torch tensors": "torch"}
        run.measure(first_call("GPU", ours, "add3", "add3_cuda", "cuda"), 2)
    run.min_rounds = 15  # they vary, and the first calls have used the time
    run.measure(imports(), 1)
    run.min_rounds = 3
    run.measure(peers_imports(), 0)


if __name__ == "__main__":
    run_module(measure)
