# SPDX-License-Identifier: Apache-2.0
"""Calls of an operator that does nothing, from many threads of Python and of C."""

from __future__ import annotations

import os
import threading
import time
import timeit

import native
import numpy as np
from calls import arrays, cuplug_operator, names
from discovery import in_c
from measurement import Comparison, Contender, Target
from module import Run, run_module

COUNTS = (1, 2, 4, 8, 16)
N_CALLS = 100_000


def label(who: str, n_threads: int) -> str:
    """Return "C, 4 threads"."""
    return f"{who}, {n_threads} thread{'s' if n_threads > 1 else ''}"


def timed_together(timers: list[timeit.Timer], number: int) -> int:
    """Run each timer in its own thread, all at once; return the nanoseconds until the end."""
    barrier = threading.Barrier(len(timers) + 1)

    def caller(timer: timeit.Timer) -> None:
        barrier.wait()
        timer.timeit(number)
        barrier.wait()

    threads = [threading.Thread(target=caller, args=(timer,)) for timer in timers]
    for thread in threads:
        thread.start()
    start_ns = time.perf_counter_ns()
    barrier.wait()
    barrier.wait()
    elapsed_ns = time.perf_counter_ns() - start_ns
    for thread in threads:
        thread.join()
    return elapsed_ns


def from_python(who: str, n_threads: int) -> Contender:
    """Python threads under the GIL: cuplug, or np.add for comparison."""
    call, text = np.add, "call(a, b, out=c)"
    if who.startswith("cuplug"):
        name = "brief3" if "NONBLOCKING" in who else "noop3"
        call, text = cuplug_operator(name, 3), f"call({names(3)})"
    timers = [timeit.Timer(text, globals={"call": call} | arrays(3)) for _ in range(n_threads)]

    def time_ns(number: int) -> float:
        each = max(number // n_threads, 1)
        return timed_together(timers, each) / (each * n_threads) * number

    return Contender(time_ns)


def from_c(who: str, n_threads: int) -> Contender:
    """Threads of a C program: cuplug_invoke, or strtod, which shares nothing, for comparison."""
    native.plugin("noop")
    arguments = (native.PLUGINS, who.split()[0], str(n_threads), "NUMBER")
    program = in_c(*arguments, program="call_threads.c", repeat_in_c=True)

    def time_ns(number: int) -> float:
        each = 10 * max(number // n_threads, 1)
        return program.time_ns(each) / (each * n_threads) * number

    return Contender(time_ns)


def measure(run: Run) -> None:
    """Calls of an operator that does nothing, from many threads of Python and of C."""
    counts = [k for k in COUNTS if k <= len(os.sched_getaffinity(0))]
    one, most = (label("cuplug from C", k) for k in (counts[0], counts[-1]))
    alone, shared = (label("strtod from C", k) for k in (counts[0], counts[-1]))
    text = "scales like strtod: its time per call over that of one thread, + 10 %"
    target = Target(most, text, (one,), 1.1, control=(shared, alone))
    wanted = [target] if len(counts) > 1 else []
    title = "calls from many threads, all calls together"
    comparison = Comparison(title, "us", one, wanted, number=N_CALLS)
    comparison.settings["microseconds"] = "elapsed time over the calls of all threads"
    makers = {
        "cuplug from C": from_c,
        "strtod from C": from_c,
        "cuplug from Python": from_python,
        "cuplug, CUPLUG_NONBLOCKING, from Python": from_python,
        "np.add from Python": from_python,
    }
    for who, make in makers.items():
        for k in counts:
            comparison.add(label(who, k), lambda who=who, make=make, k=k: make(who, k))
    run.measure(comparison, 0)


if __name__ == "__main__":
    run_module(measure)
