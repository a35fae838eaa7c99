# SPDX-License-Identifier: Apache-2.0
"""relu from C on all threads: the core's thread pool compared with OpenMP, and on one thread."""

from __future__ import annotations

import os
import subprocess
from functools import partial

import native
from measurement import SETTLED_S, Comparison, Contender, Target
from module import Run, run_module

SIZES = (1 << 16, 1 << 18, 1 << 20, 1 << 24)
N_CALLS = {size: max(200, (1 << 26) // size) for size in SIZES}


def contender(way: str, n: int, n_threads: int) -> Contender:
    """Return a contender that a C program times."""
    path = str(native.program("team.c", "-O3", "-fopenmp"))
    environment = os.environ | {"OMP_NUM_THREADS": str(n_threads)}

    def time_ns(number: int) -> float:
        command = [path, way, str(n), str(number)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise RuntimeError((done.stderr.strip() or "it failed").splitlines()[0])
        return int(done.stdout)

    return Contender(time_ns)


def compare(n: int, n_threads: int) -> Comparison:
    """Return the comparison on n floats."""
    wanted = [Target("cuplug", "<= OpenMP", ("OpenMP",))]
    title = f"relu, {n:,} floats, from C, {n_threads} threads"
    comparison = Comparison(title, "us", "OpenMP", wanted, None, 8 * n, number=N_CALLS[n])
    comparison.pause_s = SETTLED_S
    comparison.settings["elements"] = n
    comparison.add("cuplug", lambda: contender("cuplug", n, n_threads))
    comparison.add("OpenMP", lambda: contender("openmp", n, n_threads))
    comparison.add("cuplug, one thread", lambda: contender("cuplug", n, 1))
    return comparison


def measure(run: Run) -> None:
    """Loops of a C program on all threads, compared with OpenMP."""
    n_threads = len(os.sched_getaffinity(0))
    run.measure_all(partial(compare, n, n_threads) for n in SIZES)


if __name__ == "__main__":
    run_module(measure)
