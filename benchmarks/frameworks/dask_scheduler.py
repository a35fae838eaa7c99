# SPDX-License-Identifier: Apache-2.0
"""What limits a large cluster: Dask's scheduler is measured here, a thousand workers are simulated.

Measured: the scheduler's CPU time for each task of a call on blocks, and bytes that cross. The
simulation has one scheduler, which serves events in their order, and workers that hold two tasks
each, the one that runs and the next, as Dask's do. It tells which share of the time they compute.
"""

from __future__ import annotations

import heapq
import pickle
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import click
import dask
import dask.array as da
from cuplug.dask import relu
from distributed import Client, wait

LATENCY_S = 0.0005  # of a message between two machines
HELD = 2  # tasks of a worker
TASK_S = (0.01, 0.1, 1.0, 10.0)
WORKERS = (10, 100, 1000)


def measure(n_tasks: int) -> dict[str, float]:
    """Run tasks that take no time on two workers; return figures for each task."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = Path(folder) / "scheduler.json"
        _start(stack, "scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
        for _ in range(2):
            _start(stack, "worker", "--nthreads", "1", "--no-dashboard", "--scheduler-file", file)
        client = stack.enter_context(Client(scheduler_file=str(file), timeout=60))
        client.wait_for_workers(2)
        wait(client.persist(relu(da.zeros(100, chunks=1))))
        x = da.zeros(n_tasks, chunks=1)
        (graph,) = dask.optimize(relu(x))
        before = client.run_on_scheduler(time.process_time)
        start = time.perf_counter()
        wait(client.persist(graph))
        wall_s = time.perf_counter() - start
        used_s = client.run_on_scheduler(time.process_time) - before
        tasks = dict(graph.dask)
        return {
            "n_tasks": len(tasks),
            "scheduler_s": used_s / len(tasks),
            "wall_s": wall_s / len(tasks),
            "graph_bytes": len(pickle.dumps(graph.dask)),
            "task_bytes": len(pickle.dumps(next(iter(tasks.values())))),
        }


def _start(stack: ExitStack, command: str, *options: object) -> None:
    module = f"distributed.cli.dask_{command}"
    process = subprocess.Popen(
        [sys.executable, "-m", module, *map(str, options)], stderr=subprocess.DEVNULL
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)


def busy_share(n_workers: int, task_s: float, scheduler_s: float, tasks_each: int = 20) -> float:
    """Return the share of the workers' time that is spent in tasks, from the first to the last."""
    order = count()
    left = n_workers * tasks_each
    free_s = [0.0] * n_workers  # when a worker has done all that it holds
    scheduler_free_s = end_s = 0.0
    events = [(0.0, next(order), k) for _ in range(HELD) for k in range(n_workers)]
    while events:  # a message to the scheduler: this worker can take one more
        now_s, _, k = heapq.heappop(events)
        if not left:
            continue
        left -= 1
        scheduler_free_s = max(scheduler_free_s, now_s) + scheduler_s
        begin_s = max(scheduler_free_s + LATENCY_S, free_s[k])
        free_s[k] = begin_s + task_s
        end_s = max(end_s, free_s[k])
        heapq.heappush(events, (free_s[k] + LATENCY_S, next(order), k))
    return tasks_each * task_s / end_s


@click.command()
@click.option("--tasks", default=10_000, help="How many tasks are measured.")
def main(tasks: int) -> None:
    """Print what was measured, and the table of the simulation."""
    seen = measure(tasks)
    print(f"{seen['n_tasks']:,.0f} tasks, each a call on a block of one element:")
    print(f"scheduler: {seen['scheduler_s'] * 1e6:.0f} us of CPU time for each")
    print(f"all: {seen['wall_s'] * 1e6:.0f} us for each, two workers")
    print(f"client to scheduler: {seen['graph_bytes']:,} bytes for all")
    print(f"scheduler to worker: {seen['task_bytes']:,} bytes for each\n")
    print(f"| workers | {' | '.join(f'{task_s:g} s' for task_s in TASK_S)} |")
    print(f"|---|{'---|' * len(TASK_S)}")
    for n in WORKERS:
        shares = [busy_share(n, task_s, seen["scheduler_s"]) for task_s in TASK_S]
        print(f"| {n:,} | {' | '.join(f'{share:.0%}' for share in shares)} |")


if __name__ == "__main__":
    main()
