# SPDX-License-Identifier: Apache-2.0
"""Reductions and scans on device arrays, against PyTorch, CuPy and a device copy of their bytes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from driver import DeviceTimer, Driver
from kernels import COPY, MI, Case, Library, copy_target, prepare
from measurement import Comparison
from module import GIB, Run, run_module

AXES: tuple[int | None, ...] = (None, 0, 1)
NAMES = ("sum", "max", "mean", "argmax", "minmax", "cumsum")
BEST = "(b > a) | ((b != b) & (a == a))"


def named(functions: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Return functions by name and axis."""
    return {
        f"{name} {axis}": partial(function, axis=axis)
        for name, function in functions.items()
        for axis in AXES
    }


def cuplug_library() -> Library:
    """cuplug's operators from expressions on its own arrays."""
    import cuplug

    wide = cuplug.reduction("sum(x: T) -> int64", reduce="a + b", identity="0")
    total = cuplug.reduction("sum(x: T) -> T", reduce="a + b", identity="0")
    scan = cuplug.scan("cumsum(x: T) -> T", reduce="a + b")
    both = "low = min(a.low, b.low); high = max(a.high, b.high)"
    minmax = cuplug.reduction("minmax(x: T) -> (low: T, high: T)", reduce=both)
    functions: dict[str, Callable[..., Any]] = {
        "sum": lambda x, axis: (total if x.dtype.kind == "f" else wide)(x, axis=axis),
        "max": cuplug.reduction("max(x: T) -> T", reduce="max(a, b)"),
        "mean": cuplug.reduction("mean(x: T) -> T", reduce="a + b", post="a / n"),
        "argmax": cuplug.reduction("argmax(x: T) -> int64", choose=BEST, post="i"),
        "minmax": lambda x, axis: minmax(x, axis=axis)[1],
        "cumsum": lambda x, axis: scan(x, axis=-1 if axis is None else axis),
    }
    return Library(partial(cuplug.asarray, device="cuda"), lambda x: x.numpy(), named(functions))


def torch_library() -> Library:
    """PyTorch on its default stream."""
    import torch

    def over(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, axis: function(x) if axis is None else function(x, dim=axis)

    functions: dict[str, Callable[..., Any]] = {
        "sum": over(torch.sum),
        "max": lambda x, axis: torch.amax(x, () if axis is None else axis),
        "mean": over(torch.mean),
        "argmax": over(torch.argmax),
        "minmax": lambda x, axis: torch.aminmax(x, dim=axis)[1],
        "cumsum": lambda x, axis: torch.cumsum(x, -1 if axis is None else axis, dtype=x.dtype),
    }
    return Library(
        lambda x: torch.from_numpy(x).cuda(), lambda x: x.cpu().numpy(), named(functions)
    )


def cupy_library() -> Library:
    """CuPy on its default stream."""
    import cupy

    functions: dict[str, Callable[..., Any]] = {
        "sum": cupy.sum,
        "max": cupy.max,
        "mean": cupy.mean,
        "argmax": cupy.argmax,
        "cumsum": lambda x, axis: cupy.cumsum(x, -1 if axis is None else axis, dtype=x.dtype),
    }
    return Library(cupy.asarray, cupy.asnumpy, named(functions))


LIBRARIES = {"cuplug": cuplug_library, "torch": torch_library, "cupy": cupy_library}
EXPECTED: dict[str, Callable[..., np.ndarray]] = {
    "minmax": np.max,
    "cumsum": lambda x, axis: np.cumsum(x, -1 if axis is None else axis, dtype=x.dtype),
}


def shapes(n: int) -> Iterator[tuple[tuple[int, ...], int | None]]:
    """Yield shapes of n elements with the axes that are reduced."""
    yield (n,), None
    side = 1 << (n.bit_length() - 1) // 2
    for shape in ((n // side, side), (n // 4, 4), (4, n // 4)):
        yield shape, 0
        yield shape, 1


def kinds(name: str, is_quick: bool) -> tuple[str, ...]:
    """Return the dtypes that a function is measured with."""
    if name != "sum" or is_quick:
        return ("float32",)
    return ("float32", "float16", "float64", "int8", "bool")


def cases(n: int, is_quick: bool) -> Iterator[tuple[Case, np.ndarray]]:
    """Yield the cases with what they give."""
    ones = np.random.default_rng(7).random(n, np.float32) < 1 / (1 << 12)  # sums are exact
    for name in NAMES:
        for dtype, (shape, axis) in itertools.product(kinds(name, is_quick), shapes(n)):
            x = ones.astype(dtype).reshape(shape)
            expected = np.asarray(EXPECTED.get(name, getattr(np, name, None))(x, axis=axis))
            n_bytes = x.nbytes + expected.nbytes
            target = copy_target(1.0 if name == "sum" else 0.9 if name == "cumsum" else 0.95)
            where = "all" if axis is None else f"axis {axis}"
            title = f"{name} of {shape} {dtype}, {where}"
            yield Case(f"{name} {axis}", title, COPY, x, [[]], n_bytes, (target,)), expected


def compare(timer: DeviceTimer, case: Case, expected: np.ndarray) -> Comparison:
    """Return the comparison of a case."""
    comparison = Comparison(case.title, "us", COPY, case.targets, n_bytes=case.n_bytes)
    comparison.expected = expected
    assert case.n_bytes
    copy = itertools.repeat(timer.driver.copier(case.n_bytes // 2))
    comparison.add(COPY, lambda: timer.contender(copy))
    for name, library in LIBRARIES.items():
        comparison.add(name, lambda library=library: prepare(timer, case, library()))
    return comparison


def measure(run: Run) -> None:
    """Reductions and scans on device arrays, against PyTorch, CuPy and a device copy."""
    n = MI if run.quick else 64 * MI
    run.require_memory(GIB + 6 * 8 * n)
    timer = DeviceTimer(Driver())
    n_cases = sum(len(kinds(name, run.quick)) for name in NAMES) * 7
    for k, (case, expected) in enumerate(cases(n, run.quick)):
        run.measure(compare(timer, case, expected), n_cases - 1 - k)


if __name__ == "__main__":
    run_module(measure)
