# SPDX-License-Identifier: Apache-2.0
"""Operators from expressions on device arrays, against PyTorch, CuPy and a device copy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from driver import DeviceTimer, Driver
from kernels import COPY, MI, SLOPE, Case, Library, copy_target, prepare
from measurement import Comparison
from module import GIB, Run, run_module

AXES = {"mean axis 0": 0, "mean axis 1": 1, "mean of all": None}
EXPECTED: dict[str, Callable[..., np.ndarray]] = {
    "leaky_relu": lambda x: np.maximum(x, np.float32(SLOPE) * x),
    "add": lambda x, row: x + row,
}
FUSED = "hard swish"


def hard_swish(space: Any, x: Any) -> Any:
    """Return a function in four steps, which round equally with and without fused products."""
    return x * space.clip(x * 0.25 + 0.5, 0.0, 1.0)


EXPECTED[FUSED] = partial(hard_swish, np)
EXPECTED |= {
    name: lambda x, axis=axis: np.asarray(x.mean(axis=axis, dtype="f8")).astype("f4")
    for name, axis in AXES.items()
}


def cuplug_library() -> Library:
    """cuplug's operators from expressions on its own arrays."""
    import cuplug

    leaky_relu = cuplug.elementwise("leaky_relu(x: T, slope: T) -> T", "x > 0 ? x : slope * x")
    mean = cuplug.reduction("mean(x: T) -> T", reduce="a + b", post="a / n")
    functions: dict[str, Callable[..., Any]] = {
        "leaky_relu": lambda x: leaky_relu(x, SLOPE),
        FUSED: cuplug.fuse(lambda x: hard_swish(cuplug.array_api, x)),
        "add": cuplug.elementwise("add(x: T, y: T) -> T", "x + y"),
    }
    functions |= {name: partial(mean, axis=axis) for name, axis in AXES.items()}
    return Library(partial(cuplug.asarray, device="cuda"), lambda x: x.numpy(), functions)


def torch_library() -> Library:
    """PyTorch on its default stream."""
    import torch

    functions: dict[str, Callable[..., Any]] = {
        "leaky_relu": lambda x: torch.nn.functional.leaky_relu(x, SLOPE),
        FUSED: torch.compile(lambda x: hard_swish(torch, x)),
        "add": torch.add,
    }
    functions |= {name: partial(torch.mean, dim=axis) for name, axis in AXES.items()}
    return Library(lambda x: torch.from_numpy(x).cuda(), lambda x: x.cpu().numpy(), functions)


def cupy_library() -> Library:
    """CuPy's own kernels from expressions on its default stream."""
    import cupy

    text = "y = x > 0 ? x : slope * x"
    leaky_relu = cupy.ElementwiseKernel("T x, T slope", "T y", text, "leaky_relu")
    functions: dict[str, Callable[..., Any]] = {
        "leaky_relu": lambda x: leaky_relu(x, np.float32(SLOPE)),
        FUSED: cupy.fuse(lambda x: hard_swish(cupy, x)),
        "add": cupy.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add"),
    }
    functions |= {name: partial(cupy.mean, axis=axis) for name, axis in AXES.items()}
    return Library(cupy.asarray, cupy.asnumpy, functions)


LIBRARIES = {"cuplug": cuplug_library, "torch": torch_library, "cupy": cupy_library}


def cases(side: int) -> Iterator[Case]:
    """Yield the expressions on side x side floats."""
    random, n = np.random.default_rng(6), side * side
    x = random.standard_normal((side, side), np.float32)
    title = f"leaky_relu from an expression, {n // MI} Mi floats"
    yield Case("leaky_relu", title, COPY, x, n_bytes=2 * x.nbytes, targets=(copy_target(0.97),))
    title = f"hard swish of a Python function, fused, {n // MI} Mi floats"
    yield Case(FUSED, title, COPY, x, n_bytes=2 * x.nbytes, targets=(copy_target(0.96),))
    row, n_bytes = x[0].copy(), 2 * x.nbytes
    title = f"({side}, {side}) + ({side},) from an expression"
    yield Case("add", title, COPY, x, [[row]], n_bytes, (copy_target(0.95),))
    # few enough that every order of float32 sums is exact
    x = (random.random((side, side), np.float32) < 1 / 64).astype(np.float32)
    for name in AXES:
        title = f"{name} of ({side}, {side}) floats from expressions"
        yield Case(name, title, COPY, x, n_bytes=x.nbytes, targets=(copy_target(1.0),))


def compare(timer: DeviceTimer, case: Case) -> Comparison:
    """Return the comparison of a case."""
    comparison = Comparison(case.title, "us", COPY, case.targets, n_bytes=case.n_bytes)
    comparison.expected = EXPECTED[case.function](case.x, *case.sets[0])
    assert case.n_bytes
    copy = itertools.repeat(timer.driver.copier(case.n_bytes // 2))
    comparison.add(COPY, lambda: timer.contender(copy))
    for name, library in LIBRARIES.items():
        comparison.add(name, lambda library=library: prepare(timer, case, library()))
    return comparison


def measure(run: Run) -> None:
    """Operators from expressions on device arrays, against PyTorch, CuPy and a device copy."""
    driver = Driver()
    side = 4096 if run.quick else 8192
    run.require_memory(GIB + 6 * 4 * side * side)
    timer = DeviceTimer(driver)
    run.measure_all(partial(compare, timer, case) for case in cases(side))


if __name__ == "__main__":
    run_module(measure)
