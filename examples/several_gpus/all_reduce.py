# SPDX-License-Identifier: Apache-2.0
"""Sum arrays over the GPUs of this machine, one process for each.

cuplug build examples/several_gpus/all_reduce.cu -- -lnccl
python examples/several_gpus/all_reduce.py liball_reduce.so
"""

import multiprocessing
import sys

import cuplug
import numpy as np


def work(path: str, unique: str, rank: int, size: int) -> float:
    """Return the largest error of a sum of 1 Mi numbers; `rank` is the number of the GPU."""
    plugin = cuplug.load(path)
    x = np.random.default_rng(rank).integers(0, 100, 1 << 20).astype(np.float32)
    wanted = sum(np.random.default_rng(k).integers(0, 100, 1 << 20) for k in range(size))
    with plugin.communicator(unique, rank, size, device=f"cuda:{rank}") as c:
        total = plugin.all_reduce(c, cuplug.asarray(x, device=f"cuda:{rank}"))
        return float(abs(total.numpy() - wanted).max())


if __name__ == "__main__":
    size = len(cuplug.devices())
    unique = cuplug.load(sys.argv[1]).nccl_id().tobytes().hex()
    calls = [(sys.argv[1], unique, rank, size) for rank in range(size)]
    with multiprocessing.get_context("spawn").Pool(size) as pool:
        print(f"{size} GPUs, errors {pool.starmap(work, calls)}")
