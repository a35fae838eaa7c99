# SPDX-License-Identifier: Apache-2.0
"""relu on small host arrays: the cost of a call before there is work for threads."""

from __future__ import annotations

from functools import partial

import numpy as np
from measurement import BATCH_NS, SETTLED_S, Comparison, Contender, Target, statement
from module import Run, run_module

SIZES = (16, 256, 4096, 16384, 65536, 262144, 1048576)


def cuplug_relu(x: np.ndarray, z: np.ndarray) -> Contender:
    """cuplug's stock relu."""
    import cuplug

    return statement("call(x, out=z)", lambda: z, call=cuplug.find("relu"), x=x, z=z)


def numpy_relu(x: np.ndarray, z: np.ndarray) -> Contender:
    """NumPy's maximum with zero."""
    return statement("call(x, 0, out=z)", lambda: z, call=np.maximum, x=x, z=z)


def torch_relu(x: np.ndarray, z: np.ndarray) -> Contender:
    """PyTorch's clamp to zero, the tensors made before."""
    import torch

    names = {"x": torch.from_numpy(x), "z": torch.from_numpy(z)}
    return statement("call(x, 0, out=z)", lambda: z, call=torch.clamp_min, **names)


def compare(n: int) -> Comparison:
    """Return the comparison on n floats."""
    x = np.random.default_rng(6).standard_normal(n, np.float32)
    wanted = [Target("cuplug", "no slower than NumPy and torch", ("numpy", "torch"))]
    title, expected = f"relu, array given, {n:,} floats, CPU", np.maximum(x, 0)
    comparison = Comparison(title, "us", "numpy", wanted, expected, 2 * x.nbytes)
    comparison.pause_s = SETTLED_S
    comparison.batch_ns = 10 * BATCH_NS  # sleeping threads are woken up within each batch
    comparison.settings["elements"] = n
    for name, prepare in (("cuplug", cuplug_relu), ("numpy", numpy_relu), ("torch", torch_relu)):
        comparison.add(name, lambda prepare=prepare: prepare(x, np.full_like(x, np.nan)))
    return comparison


def measure(run: Run) -> None:
    """Time of relu on small host arrays: the cost of a call before there is work for threads."""
    run.measure_all(partial(compare, n) for n in SIZES)


if __name__ == "__main__":
    run_module(measure)
