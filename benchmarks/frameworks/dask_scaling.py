# SPDX-License-Identifier: Apache-2.0
"""Scaling of Dask over the GPUs of a machine: one worker for each, with arrays that stay there.

    python benchmarks/frameworks/dask_scaling.py --workers 1,2,4

Each number of workers processes the same blocks. A block is created on a GPU, passes through a
sequence of operators there, and is reduced to one number.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click
import cuplug
import dask.array as da
import numpy as np
from cuplug.dask import leaky_relu

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))

from dask_gpus import start


def on_gpu(number: np.ndarray, n_elements: int) -> Any:
    """Create a block on the GPU that this worker sees; without a GPU, in host memory."""
    try:
        return cuplug.empty(n_elements, "float32", "cuda")
    except cuplug.CudaError:
        return np.full(n_elements, number, "float32")


def finished(block: Any) -> np.ndarray:
    """Wait for the work on a block."""
    if not isinstance(block, np.ndarray):
        cuplug.synchronize()
    return np.zeros(1)


def graph(n_blocks: int, n_elements: int, n_calls: int) -> da.Array:
    """Return one number for each block."""
    x = da.arange(n_blocks, chunks=1).map_blocks(
        on_gpu, n_elements, chunks=((n_elements,) * n_blocks,), dtype="float32", meta=np.empty(0)
    )
    for _ in range(n_calls):
        x = leaky_relu(x, 0.5)
    return x.map_blocks(finished, chunks=((1,) * n_blocks,), dtype=float, meta=np.empty(0))


def seconds(n_workers: int, n_blocks: int, n_elements: int, n_calls: int) -> float:
    """Return the shortest time of three runs, after an uncounted one."""
    times = []
    with start(n_workers, n_threads=2) as client, client.cluster:
        for _ in range(4):
            begin = time.perf_counter()
            graph(n_blocks, n_elements, n_calls).compute()
            times.append(time.perf_counter() - begin)
    return min(times[1:])


@click.command()
@click.option("--workers", default="1,2,4", help="Numbers of workers, one GPU each.")
@click.option("--blocks", default=128, help="How many blocks there are.")
@click.option("--elements", default=1 << 28, help="Of a block, 4 bytes each.")
@click.option("--calls", default=100, help="Of an operator, one after the other, on a block.")
def main(workers: str, blocks: int, elements: int, calls: int) -> None:
    """Print the time for each number of workers, and the speedup over the first."""
    print("| workers | seconds | times as fast | bytes per second |")
    print("|---|---|---|---|")
    first = 0.0
    for n in map(int, workers.split(",")):
        taken = seconds(n, blocks, elements, calls)
        first = first or taken
        rate = 8 * elements * blocks * calls / taken
        print(f"| {n} | {taken:.3f} | {first / taken:.2f} | {rate / 1e9:,.0f} GB |", flush=True)


if __name__ == "__main__":
    main()
