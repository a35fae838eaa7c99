# SPDX-License-Identifier: Apache-2.0
"""Host operators by number of threads: relu, leaky_relu and gather, to arrays given."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from functools import partial

import native
from measurement import SETTLED_S, Comparison, Contender, Skip, Target
from module import GIB, Run, run_module

MI = 1 << 20
COUNTS = (1, 2, 4, 8, 16)
EXPRESSION = "cuplug, expression"  # leaky_relu from one


class Worker:
    """A process whose libraries use a given number of threads."""

    def __init__(self, n_threads: int, n: int) -> None:
        command = [sys.executable, str(native.find("host_threads_worker.py")), str(n)]
        pipe = subprocess.PIPE
        environment = os.environ | {"OMP_NUM_THREADS": str(n_threads)}
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, env=environment, text=True, bufsize=1
        )

    def time_ns(self, operator: str, library: str, number: int, tail: str = "") -> int:
        """Have calls timed; with `tail`, by the 90th percentile.

        Raises errors that the worker reports.
        """
        self.process.stdin.write(f"{operator} {library} {number} {tail}\n")
        line = self.process.stdout.readline().strip()
        if not line:
            raise RuntimeError("the process ended")
        if line.startswith("error"):
            raise RuntimeError(line.removeprefix("error "))
        return int(line)


@contextmanager
def worker(n_threads: int, n: int):
    """A worker that is ended at exit."""
    started = Worker(n_threads, n)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.communicate()


def contender(worker: Worker, operator: str, library: str) -> Contender:
    """Return the contender of one library with the threads of one worker."""
    module, _, way = library.partition(", ")
    if importlib.util.find_spec(module) is None:
        raise Skip("not installed")
    return Contender(partial(worker.time_ns, operator, way or module))


def label(library: str, n_threads: int) -> str:
    """Return "cuplug, 4 threads"."""
    return f"{library}, {n_threads} thread{'s' if n_threads > 1 else ''}"


def compare(operator: str, workers: dict[int, Worker], n: int) -> Comparison:
    """Return the comparison of one operator."""
    numpy, most = label("numpy", 1), max(workers)
    ours = ("cuplug", EXPRESSION) if operator == "leaky_relu" else ("cuplug",)
    wanted = [
        Target(label(name, k), f"<= torch with {k}", (label("torch", k),))
        for name in ours
        for k in (1, most)
    ]
    wanted += [Target(label("cuplug", 1), "no slower than NumPy", (numpy,))]
    if operator == "gather":
        title, n_bytes = f"gather, {n // 64 // 1024} Ki of {n // MI} Mi floats", None
    else:
        title, n_bytes = f"{operator}, {n // MI} Mi floats", 8 * n
    comparison = Comparison(f"{title}, by threads", "ms", numpy, wanted, None, n_bytes)
    comparison.number, comparison.pause_s = 1 if n_bytes else 4, SETTLED_S
    comparison.settings["threads"] = "OMP_NUM_THREADS; output array given"
    comparison.add(numpy, partial(contender, workers[1], operator, "numpy"))
    for library in (*ours, "torch"):
        for k, process in workers.items():
            comparison.add(label(library, k), partial(contender, process, operator, library))
    return comparison


def measure(run: Run) -> None:
    """Host operators by number of threads: relu, leaky_relu and gather, to arrays given."""
    n = 4 * MI if run.quick else 64 * MI
    cores = len(os.sched_getaffinity(0))
    counts = [k for k in COUNTS if k <= cores]
    run.require_memory(GIB + len(counts) * (GIB + 6 * 4 * n))
    with ExitStack() as stack:
        workers = {k: stack.enter_context(worker(k, n)) for k in counts}
        operators = ("relu", "leaky_relu", "gather")
        run.measure_all(partial(compare, operator, workers, n) for operator in operators)


if __name__ == "__main__":
    run_module(measure)
