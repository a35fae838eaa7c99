# SPDX-License-Identifier: Apache-2.0
"""Host operators next to as many computing processes as cores: the maximum of 9 of 10 calls."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from host_threads import Worker, label, worker
from measurement import SETTLED_S, Comparison, Contender, Skip, Target
from module import GIB, Run, run_module

N = 131072
TITLES = {
    "relu": "relu of 131,072 floats",
    "gather": "gather, 64 Ki of 131,072 floats",
    "sum": "sum of 1 Mi floats",
}


@contextmanager
def computing(n: int) -> Iterator[None]:
    """Start n processes that compute continuously."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(n)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def contender(worker: Worker, operator: str, library: str) -> Contender:
    """Return the contender of one library with the threads of one worker."""
    if importlib.util.find_spec(library) is None:
        raise Skip("not installed")
    return Contender(lambda number: worker.time_ns(operator, library, number, "tail"))


def compare(operator: str, workers: dict[int, Worker]) -> Comparison:
    """Return the comparison of one operator."""
    one, most = label("cuplug", 1), label("cuplug", max(workers))
    wanted = [Target(most, "<= 1.3 x one thread", (one,), 1.3)]
    title = f"{TITLES[operator]}, beside as many computing processes as cores"
    comparison = Comparison(title, "us", one, wanted, number=300, pause_s=SETTLED_S)
    comparison.settings["time"] = "of each call, the 90th percentile of 300"
    for library in ("cuplug", "torch", "numpy"):
        for k, process in workers.items():
            if library != "numpy" or k == 1:
                comparison.add(
                    label(library, k), lambda p=process, x=library: contender(p, operator, x)
                )
    return comparison


def measure(run: Run) -> None:
    """Host operators next to as many computing processes as cores."""
    cores = len(os.sched_getaffinity(0))
    run.require_memory(GIB)
    with ExitStack() as stack:
        workers = {k: stack.enter_context(worker(k, N)) for k in (1, cores)}
        stack.enter_context(computing(cores))
        run.measure_all(partial(compare, operator, workers) for operator in TITLES)


if __name__ == "__main__":
    run_module(measure)
