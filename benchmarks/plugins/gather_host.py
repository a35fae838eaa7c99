# SPDX-License-Identifier: Apache-2.0
"""gather from NumPy to NumPy: 128 Mi floats, 1 Mi random indices."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from driver import Driver
from measurement import SETTLED_S, Comparison, Contender, Target, statement
from module import GIB, Run, run_module

MI = 1 << 20
N_INDEX_ARRAYS = 4


def over_indices(call: Callable[[np.ndarray], np.ndarray], indices: list[np.ndarray]) -> Contender:
    """Return a contender that takes the next index array each time."""
    turns = itertools.cycle(indices)
    return statement("call(next(turns))", lambda: call(indices[0]), call=call, turns=turns)


def cuplug_gather(source: np.ndarray, device: str | None) -> Callable[[np.ndarray], np.ndarray]:
    """cuplug's stock gather, on the host or staged through the GPU."""
    if device:
        Driver()
    import cuplug

    gather = cuplug.find("gather")

    def call(index: np.ndarray) -> np.ndarray:
        return gather(source, index, device=device)

    call(np.zeros(1, np.int32))
    seen = str(cuplug.last_call().device)
    if not seen.startswith(device or "cpu"):
        raise ArithmeticError(f"it ran on {seen}")
    return call


def torch_cpu(source: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """PyTorch on the CPU, on the memory of the NumPy arrays."""
    import torch

    x = torch.from_numpy(source)
    return lambda index: torch.index_select(x, 0, torch.from_numpy(index)).numpy()


def torch_round_trip(source: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """PyTorch through the GPU, everything copied in each call."""
    Driver()
    import torch

    x = torch.from_numpy(source)
    return lambda index: x.cuda().index_select(0, torch.from_numpy(index).cuda()).cpu().numpy()


def cupy_round_trip(source: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """CuPy through the GPU, everything copied in each call."""
    Driver()
    import cupy

    return lambda index: cupy.asnumpy(cupy.asarray(source).take(cupy.asarray(index)))


def measure(run: Run) -> None:
    """gather from NumPy to NumPy: 128 Mi floats, 1 Mi random indices."""
    n_source, n_index = (16 * MI, MI // 8) if run.quick else (128 * MI, MI)
    run.require_memory(GIB + 3 * 4 * n_source)
    random = np.random.default_rng(1)
    source = random.random(n_source, np.float32)
    indices = [random.integers(0, n_source, n_index, np.int32) for _ in range(N_INDEX_ARRAYS)]
    ours, take = "cuplug, host", "np.take"
    wanted = [Target(ours, "<= 1.5 ms", extra=1.5)]
    if run.quick:
        wanted = []
    peers = ("numpy x[idx]", take, "torch CPU")
    wanted += [Target(ours, "below NumPy and torch CPU", peers)]
    sizes = f"{n_source // MI} Mi floats, {n_index // 1024} Ki random int32 indices"
    title = f"gather, NumPy to NumPy, {sizes}"
    comparison = Comparison(title, "ms", take, wanted, number=N_INDEX_ARRAYS)
    comparison.pause_s = SETTLED_S
    comparison.expected = source[indices[0]]
    comparison.settings["index arrays"] = f"{N_INDEX_ARRAYS} in turn"
    prepares = {
        ours: lambda: cuplug_gather(source, None),
        "cuplug, device='cuda'": lambda: cuplug_gather(source, "cuda"),
        "numpy x[idx]": lambda: source.__getitem__,
        take: lambda: lambda index: np.take(source, index),
        "torch CPU": lambda: torch_cpu(source),
        "torch round trip": lambda: torch_round_trip(source),
        "cupy round trip": lambda: cupy_round_trip(source),
    }
    for name, prepare in prepares.items():
        comparison.add(name, lambda prepare=prepare: over_indices(prepare(), indices))
    run.measure(comparison, 0)


if __name__ == "__main__":
    run_module(measure)
