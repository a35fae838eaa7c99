# SPDX-License-Identifier: Apache-2.0
"""Copies between NumPy arrays and the device, and relu through it, from 1 KiB to 1 GiB."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np
import transfers
from driver import Driver
from measurement import Comparison, Contender, Target, statement
from module import GIB, Run, run_module

KIB, MIB = 1 << 10, 1 << 20
SIZES = (KIB, 4 * KIB, 64 * KIB, MIB, 4 * MIB, 32 * MIB, 256 * MIB, GIB)
RELU_US = {4 * KIB: 40.0, 64 * KIB: 45.0, MIB: 160.0, 4 * MIB: 300.0}


def cupy_to_host(x: np.ndarray) -> Contender:
    """CuPy's copy to a new array in pageable memory."""
    import cupy

    array = cupy.asarray(x)
    return statement("get()", array.get, get=array.get)


Prepare = Callable[[np.ndarray], Contender]
WAYS: dict[str, dict[str, Prepare]] = {
    "to device": {
        "cuplug": transfers.cuplug_to_device,
        "torch": lambda x: transfers.torch_to_device(x, pinned=False),
        "cupy": transfers.cupy_to_device,
        "torch, pinned": lambda x: transfers.torch_to_device(x, pinned=True),
    },
    "to host": {
        "cuplug": transfers.cuplug_to_host,
        "torch": lambda x: transfers.torch_to_host(x, pinned=False),
        "cupy": cupy_to_host,
        "torch, pinned": lambda x: transfers.torch_to_host(x, pinned=True),
    },
    "relu": {
        "cuplug": transfers.cuplug_relu,
        "torch": transfers.torch_relu,
        "cupy": transfers.cupy_relu,
        "cuplug, pinned": transfers.cuplug_pinned,
        "torch, pinned": transfers.torch_pinned,
    },
}


def size_text(n_bytes: int) -> str:
    """Return "64 KiB" for 65536."""
    for unit, size in (("GiB", GIB), ("MiB", MIB)):
        if n_bytes >= size:
            return f"{n_bytes // size} {unit}"
    return f"{n_bytes // KIB} KiB"


def compare(way: str, x: np.ndarray, driver: Driver) -> Comparison:
    """Return the comparison of one way for one array."""
    wanted = [Target("cuplug", "no slower than torch and cupy", ("torch", "cupy"))]
    if way == "relu" and x.nbytes in RELU_US:
        limit = RELU_US[x.nbytes]
        wanted.append(Target("cuplug", f"<= {limit:.0f} us", extra=limit))
    if way == "relu":
        wanted.append(Target("cuplug, pinned", "<= 1.1 x torch, pinned", ("torch, pinned",), 1.1))
    n_ways, expected = (2, np.maximum(x, 0)) if way == "relu" else (1, x)
    title = f"{way}, {size_text(x.nbytes)}"
    comparison = Comparison(title, "us", "cupy", wanted, expected, n_ways * x.nbytes)
    comparison.synchronize = driver.synchronize
    comparison.settings["bytes"] = x.nbytes
    for name, prepare in WAYS[way].items():
        comparison.add(name, lambda prepare=prepare: prepare(x))
    return comparison


def measure(run: Run) -> None:
    """Copies between NumPy arrays and the device, and relu through it, from 1 KiB to 1 GiB."""
    driver = Driver()
    run.min_rounds = 3
    sizes = [size for size in SIZES if not run.quick or size <= 4 * MIB]
    run.require_memory(GIB + 8 * max(sizes))
    values = np.random.default_rng(8).standard_normal(max(sizes) // 4, np.float32)
    pairs = itertools.product(sizes, WAYS)
    run.measure_all(partial(compare, way, values[: size // 4], driver) for size, way in pairs)


if __name__ == "__main__":
    run_module(measure)
