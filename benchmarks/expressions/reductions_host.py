# SPDX-License-Identifier: Apache-2.0
"""Reductions and scans on the CPU, against NumPy and PyTorch, over each axis of several shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from measurement import SETTLED_S, Comparison, Contender, Target, statement
from module import GIB, Run, at_once, run_module

MI = 1 << 20
SHAPES = [(MI,), (1024, 1024), (4, MI), (MI, 4)]
DTYPES = ["float16", "float32", "float64", "int8", "int32", "bool"]
NAMES = {"sum": DTYPES, "max": ["float32", "int8"], "mean": ["float32"], "any": ["float32", "bool"]}
NAMES |= {"var": ["float32"], "argmax": ["float32", "int8"], "cumsum": ["float32", "int32"]}
BEST = "!(b <= a) & (a == a)"


@cache
def cuplug_functions() -> dict[str, Callable[..., Any]]:
    """cuplug's operators from expressions, with the results that NumPy gives."""
    import cuplug
    from cuplug import array_api

    def var(x: np.ndarray, axis: int | None) -> np.ndarray:
        return array_api.var(cuplug.asarray(x, device="cpu", copy=False), axis=axis).numpy()

    wide = cuplug.reduction("sum(x: T) -> int64", reduce="a + b", identity="0")
    total = cuplug.reduction("sum(x: T) -> T", reduce="a + b", identity="0")
    scan = cuplug.scan("cumsum(x: T) -> T", reduce="a + b")
    return {
        "sum": lambda x, axis: (total if x.dtype.kind == "f" else wide)(x, axis=axis),
        "max": cuplug.reduction("max(x: T) -> T", reduce="max(a, b)"),
        "mean": cuplug.reduction("mean(x: T) -> T", reduce="a + b", post="a / n"),
        "any": cuplug.reduction("any(x: T) -> bool", map="x != 0", reduce="a || b", identity="0"),
        "var": var,
        "argmax": cuplug.reduction("argmax(x: T) -> int64", choose=BEST, post="i"),
        "cumsum": lambda x, axis: scan(x, axis=axis),
    }


def numpy_call(name: str) -> Callable[..., Any]:
    """NumPy's function."""
    if name == "cumsum":
        return lambda x, axis: np.cumsum(x, axis, dtype=x.dtype)
    return getattr(np, name)


def torch_call(name: str) -> Callable[..., Any]:
    """PyTorch's function on the memory of the NumPy array."""
    import torch

    if name == "max":
        return lambda x, axis: torch.from_numpy(x).amax(() if axis is None else axis).numpy()
    function = getattr(torch, name)
    more = {"correction": 0} if name == "var" else {}

    def call(x: np.ndarray, axis: int | None) -> np.ndarray:
        given = {} if axis is None and name != "var" else {"dim": axis}
        if name == "cumsum":
            given["dtype"] = torch.from_numpy(x[:0]).dtype
        return function(torch.from_numpy(x), **given, **more).numpy()

    return call


def values(shape: tuple[int, ...], dtype: str, name: str) -> np.ndarray:
    """Return few enough numbers that every order of sums is exact; for `any`, all are 0."""
    if name == "any":
        return np.zeros(shape, dtype)
    random = np.random.default_rng(3)
    if name in ("max", "argmax"):
        return (random.random(shape) * 100).astype(dtype)
    return (random.random(shape, np.float32) < 1 / 1024).astype(dtype)


def compile_case(name: str, dtype: str, shape: tuple[int, ...], axis: int | None) -> None:
    """Compile cuplug's code for a case."""
    cuplug_functions()[name](np.zeros(shape, dtype), axis=axis)


def compare(name: str, dtype: str, shape: tuple[int, ...], axis: int | None) -> Comparison:
    """Return the comparison of one function on one shape."""
    x = values(shape, dtype, name)
    where = "all" if axis is None else f"axis {axis}"
    best = Target("cuplug", "<= the best peer", ("numpy", "torch"))
    expected = None if name == "var" else np.asarray(numpy_call(name)(x, axis=axis))
    comparison = Comparison(
        f"{name} of {shape} {dtype}, {where}, CPU", "us", "numpy", [best], expected, x.nbytes
    )
    comparison.pause_s = SETTLED_S

    def contender(call: Callable[..., Any]) -> Contender:
        result: Callable[[], np.ndarray] = lambda: np.asarray(call(x, axis=axis))  # noqa: E731
        return statement("call(x, axis=axis)", result, call=call, x=x, axis=axis)

    comparison.add("cuplug", lambda: contender(cuplug_functions()[name]))
    comparison.add("numpy", lambda: contender(numpy_call(name)))
    comparison.add("torch", lambda: contender(torch_call(name)))
    return comparison


def cases(is_quick: bool) -> Iterator[tuple[str, str, tuple[int, ...], int | None]]:
    """Yield the measured cases: all functions over all axes; with `is_quick`, a few."""
    for name, dtypes in NAMES.items():
        for dtype in dtypes[:1] if is_quick else dtypes:
            for shape in SHAPES[1:2] if is_quick else SHAPES:
                axes = [None] if len(shape) == 1 else [0, 1]
                for axis in [0] if name == "cumsum" and axes == [None] else axes:
                    yield name, dtype, shape, axis


def measure(run: Run) -> None:
    """Reductions and scans on the CPU, against NumPy and PyTorch, over each axis."""
    run.require_memory(GIB)
    every = list(cases(run.quick))
    at_once([partial(compile_case, *every[0])])  # creates all operators
    at_once(partial(compile_case, *case) for case in every)
    run.measure_all(partial(compare, *case) for case in every)


if __name__ == "__main__":
    run_module(measure)
