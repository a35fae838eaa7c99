# SPDX-License-Identifier: Apache-2.0
"""The limits of a large cluster: measured costs of Dask's scheduler, and 1000 simulated workers.

Measured: the cost of each task of a call on blocks, transferred bytes, and scheduler memory for
each task and each worker. The workers are in one process, so that this machine can have many. Two
clusters of different sizes show what grows with the number of workers. The simulation has one
scheduler, which serves events in their order, and workers of one thread that hold two tasks each,
the running and the next one, as in Dask. No task begins before the scheduler has the whole graph,
and each task also takes the worker's time. The result is the share of the time that the workers
compute, from sending the graph to the end of the last task.
"""

from __future__ import annotations

import heapq
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import NamedTuple

import click
import dask
import dask.array as da
import numpy as np
from cuplug.dask import relu
from distributed import Client, Scheduler, wait

LATENCY_S = 0.0005  # of a message between two machines
HELD = 2  # tasks of a worker
TASKS_EACH = 20
IDLE_S = 5.0
TASK_S = (0.01, 0.1, 1.0, 10.0)
WORKERS = (10, 100, 1000)


WORKERS_OF_ONE_PROCESS = """
import asyncio, sys
from distributed import Worker
async def work():
    file, folder, n = sys.argv[1:]
    options = {"nthreads": 1, "dashboard": False, "local_directory": folder}
    workers = [Worker(scheduler_file=file, **options) for _ in range(int(n))]
    await asyncio.gather(*workers)
    await asyncio.gather(*(worker.finished() for worker in workers))
asyncio.run(work())
"""


class Costs(NamedTuple):
    """Dask's time for each task, in seconds."""

    graph_s: float  # from the client's call until the scheduler has it
    scheduler_s: float  # CPU time, after that
    worker_s: float  # CPU time


def measure(n_tasks: int, n_workers: int, task_s: float = 0.0) -> tuple[Costs, dict[str, float]]:
    """Run tasks that take no time, and some that sleep; return figures for each task."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = Path(folder) / "scheduler.json"
        module = "distributed.cli.dask_scheduler"
        _start(stack, "-m", module, "--port", 0, "--no-dashboard", "--scheduler-file", file)
        client = stack.enter_context(Client(scheduler_file=str(file), timeout=60))
        n_files = client.run_on_scheduler(_n_open_files)
        _start(stack, "-c", WORKERS_OF_ONE_PROCESS, file, folder, n_workers)
        client.wait_for_workers(n_workers)
        wait(client.persist(relu(da.zeros(10 * n_workers, chunks=1))))
        n_files = client.run_on_scheduler(_n_open_files) - n_files
        x = da.zeros(n_tasks, chunks=1)
        (graph,) = dask.optimize(relu(x))
        n = len(graph.dask)
        graph_s, of_graph_s, of_graph_bytes = _costs_of_graph(client, graph)
        before = _cpu_times(client)
        start = time.perf_counter()
        wait(client.persist(graph))
        wall_s = time.perf_counter() - start
        used = [after - x for x, after in zip(before, _cpu_times(client), strict=True)]
        figures = {
            "n_tasks": n,
            "wall_s": wall_s / n,
            "worker_files": n_files / n_workers,
            "scheduler_bytes": of_graph_bytes / n,
            "idle": _idle_share(client),
            "busy": _busy_share(client, n_workers, task_s),
            "graph_bytes": len(pickle.dumps(graph.dask)),
            "task_bytes": len(pickle.dumps(next(iter(dict(graph.dask).values())))),
        }
        return Costs(graph_s / n, (used[0] - of_graph_s) / n, sum(used[1:]) / n), figures


def _idle_share(client: Client) -> float:
    """Return the share of a core that a scheduler takes while workers only report."""
    used_s, start = client.run_on_scheduler(time.process_time), time.perf_counter()
    time.sleep(IDLE_S)
    used_s = client.run_on_scheduler(time.process_time) - used_s
    return used_s / (time.perf_counter() - start)


def _busy_share(client: Client, n_workers: int, task_s: float) -> float:
    """Return the share of the time that workers sleep in tasks of that length."""
    if not task_s:
        return 0.0
    x = da.zeros(TASKS_EACH * n_workers, chunks=1)
    start = time.perf_counter()
    wait(client.persist(x.map_blocks(_slept, task_s, dtype=x.dtype, meta=x._meta)))
    return TASKS_EACH * task_s / (time.perf_counter() - start)


def _slept(x: np.ndarray, task_s: float) -> np.ndarray:
    time.sleep(task_s)
    return relu(x)


def _costs_of_graph(client: Client, graph: da.Array) -> tuple[float, float, int]:
    """Send tasks that no worker may run.

    Returns the time until the scheduler has them, and its CPU time and memory.
    """
    memory = client.run_on_scheduler(_resident_bytes)
    used_s, start = client.run_on_scheduler(time.process_time), time.perf_counter()
    kept = client.persist(graph, resources={"none has it": 1})
    while client.run_on_scheduler(_n_tasks) < len(graph.dask):
        time.sleep(0.001)
    taken_s = time.perf_counter() - start
    taken = taken_s, client.run_on_scheduler(time.process_time) - used_s
    memory = client.run_on_scheduler(_resident_bytes) - memory
    del kept
    while client.run_on_scheduler(_n_tasks):
        time.sleep(0.001)
    return *taken, memory


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _n_open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def _n_tasks(dask_scheduler: Scheduler) -> int:
    return len(dask_scheduler.tasks)


def _cpu_times(client: Client) -> list[float]:
    """Return the CPU time of the scheduler, and of the process of the workers."""
    workers = client.run(time.process_time)
    return [client.run_on_scheduler(time.process_time), max(workers.values())]


def _start(stack: ExitStack, *options: object) -> None:
    process = subprocess.Popen([sys.executable, *map(str, options)], stderr=subprocess.DEVNULL)
    stack.callback(process.wait)
    stack.callback(process.terminate)


def busy_share(n_workers: int, task_s: float, costs: Costs, in_one_process: bool = False) -> float:
    """Return the share of the workers' time that is spent in tasks.

    Workers of one process, like the measured ones, do their own work one after the other.
    """
    order = count()
    left = n_workers * TASKS_EACH
    free_s = [0.0] * n_workers  # when a worker has done all that it holds
    scheduler_free_s = begin_s = left * costs.graph_s
    process_free_s = end_s = 0.0
    events = [(begin_s, next(order), k) for _ in range(HELD) for k in range(n_workers)]
    while events:  # a message to the scheduler: this worker can take one more
        now_s, _, k = heapq.heappop(events)
        if not left:
            continue
        left -= 1
        scheduler_free_s = max(scheduler_free_s, now_s) + costs.scheduler_s
        begin_s = max(scheduler_free_s + LATENCY_S, free_s[k], process_free_s)
        if in_one_process:
            process_free_s = begin_s + costs.worker_s
        free_s[k] = begin_s + costs.worker_s + task_s
        end_s = max(end_s, free_s[k])
        heapq.heappush(events, (free_s[k] + LATENCY_S, next(order), k))
    return TASKS_EACH * task_s / end_s


@click.command()
@click.option("--tasks", default=10_000, help="How many tasks are measured.")
@click.option("--workers", default="2,40", help="How many workers each cluster has.")
@click.option("--seconds", default=0.1, help="The length of tasks that are simulated and run.")
def main(tasks: int, workers: str, seconds: float) -> None:
    """Print the measurements, and the table of the simulation."""
    for n in map(int, workers.split(",")):
        costs, seen = measure(tasks, n, seconds)
        print(
            f"{seen['n_tasks']:,.0f} tasks on {n} workers, each a call on a block of one element:"
        )
        print(f"graph: {costs.graph_s * 1e6:.0f} us for each until the scheduler has it")
        print(f"scheduler: {costs.scheduler_s * 1e6:.0f} us of CPU time for each")
        print(f"scheduler: {seen['scheduler_bytes']:,.0f} bytes of memory per task")
        print(f"scheduler: {seen['worker_files']:.1f} open files per worker")
        print(f"scheduler: {seen['idle']:.1%} of a core while no task runs")
        print(f"workers: {costs.worker_s * 1e6:.0f} us of CPU time for each")
        print(f"wall time: {seen['wall_s'] * 1e6:.0f} us per task")
        print(f"client to scheduler: {seen['graph_bytes']:,} bytes for the graph")
        print(f"scheduler to worker: {seen['task_bytes']:,} bytes per task")
        share = busy_share(n, seconds, costs, in_one_process=True)
        print(f"tasks of {seconds:g} s: simulated {share:.0%}, measured {seen['busy']:.0%}\n")
    print(f"| workers | {' | '.join(f'{task_s:g} s' for task_s in TASK_S)} |")
    print(f"|---|{'---|' * len(TASK_S)}")
    for n in WORKERS:
        shares = [busy_share(n, task_s, costs) for task_s in TASK_S]
        print(f"| {n:,} | {' | '.join(f'{share:.0%}' for share in shares)} |")


if __name__ == "__main__":
    main()
