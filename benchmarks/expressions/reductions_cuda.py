# SPDX-License-Identifier: Apache-2.0
"""Reductions and scans on device arrays, against PyTorch, CuPy and a device copy of their bytes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from driver import DeviceTimer, Driver
from measurement import Comparison, Contender, Target
from module import GIB, Run, at_once, run_module

MI = 1 << 20
COPY = "device copy"
MARGIN = 8  # elements, so that views may start after the first
BEST = "(b > a) | ((b != b) & (a == a))"
DTYPES = ("float32", "float16", "float64", "int8", "bool")
SHARES = {"sum": 1.0, "cumsum": 0.9}  # fraction of a device copy's speed; 0.95 for the others


@dataclass(frozen=True)
class View:
    """An array in device memory, for all libraries: elements of a buffer from `first` on."""

    buffer: int
    x: np.ndarray

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        first = self.x.ctypes.data - self.x.base.ctypes.data
        shape, kind = self.x.shape, self.x.dtype.str
        return {"shape": shape, "typestr": kind, "data": (self.buffer + first, False), "version": 3}


@dataclass(frozen=True)
class Library:
    """A library's conversions of arrays, and its functions of (x, axis)."""

    put: Callable[[View], Any]
    get: Callable[[Any], np.ndarray]
    functions: dict[str, Callable[..., Any]]


@cache
def cuplug_library() -> Library:
    """cuplug's operators from expressions, and its own array's functions."""
    import cuplug
    import cuplug.array_api as xp

    wide = cuplug.reduction("sum(x: T) -> int64", reduce="a + b", identity="0")
    total = cuplug.reduction("sum(x: T) -> T", reduce="a + b", identity="0")
    scan = cuplug.scan("cumsum(x: T) -> T", reduce="a + b")
    both = "low = min(a.low, b.low); high = max(a.high, b.high)"
    minmax = cuplug.reduction("minmax(x: T) -> (low: T, high: T)", reduce=both)
    norm = cuplug.reduction("norm(x: T) -> T", map="x * x", reduce="a + b", post="sqrt(a)")
    functions: dict[str, Callable[..., Any]] = {
        "sum": lambda x, axis: (total if x.dtype.kind == "f" else wide)(x, axis=axis),
        "max": cuplug.reduction("max(x: T) -> T", reduce="max(a, b)"),
        "mean": cuplug.reduction("mean(x: T) -> T", reduce="a + b", post="a / n"),
        "argmax": cuplug.reduction("argmax(x: T) -> int64", choose=BEST, post="i"),
        "minmax": lambda x, axis: minmax(x, axis=axis)[1],
        "norm": norm,
        "var": lambda x, axis: xp.var(x, axis=axis),
        "cumsum": lambda x, axis: scan(x, axis=-1 if axis is None else axis),
    }
    return Library(partial(cuplug.asarray, device="cuda"), lambda x: x.numpy(), functions)


@cache
def torch_library() -> Library:
    """PyTorch on its default stream."""
    import torch

    def over(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, axis: function(x) if axis is None else function(x, dim=axis)

    norm = torch.linalg.vector_norm
    functions: dict[str, Callable[..., Any]] = {
        "sum": over(torch.sum),
        "max": lambda x, axis: torch.amax(x, () if axis is None else axis),
        "mean": over(torch.mean),
        "argmax": over(torch.argmax),
        "minmax": lambda x, axis: torch.aminmax(x, dim=axis)[1],
        "norm": over(norm),
        "var": lambda x, axis: torch.var(x, dim=axis, correction=0),
        "cumsum": lambda x, axis: torch.cumsum(x, -1 if axis is None else axis, dtype=x.dtype),
    }
    return Library(partial(torch.as_tensor, device="cuda"), lambda x: x.cpu().numpy(), functions)


@cache
def cupy_library() -> Library:
    """CuPy on its default stream."""
    import cupy

    functions: dict[str, Callable[..., Any]] = {
        "sum": cupy.sum,
        "max": cupy.max,
        "mean": cupy.mean,
        "argmax": cupy.argmax,
        "norm": lambda x, axis: cupy.linalg.norm(x, axis=axis),
        "var": cupy.var,
        "cumsum": lambda x, axis: cupy.cumsum(x, -1 if axis is None else axis, dtype=x.dtype),
    }
    return Library(cupy.asarray, cupy.asnumpy, functions)


LIBRARIES = {"cuplug": cuplug_library, "torch": torch_library, "cupy": cupy_library}
EXPECTED: dict[str, Callable[..., np.ndarray]] = {
    "sum": lambda x, axis: exact_sum(x, axis),
    "minmax": np.max,
    "norm": lambda x, axis: np.sqrt(np.sum(x, axis=axis)),  # of 0 and 1
    "var": lambda x, axis: (p := np.mean(x, axis=axis, dtype="f8")) - p * p,
    "cumsum": lambda x, axis: np.cumsum(x, -1 if axis is None else axis, dtype=x.dtype),
}


def exact_sum(x: np.ndarray, axis: int | None) -> np.ndarray:
    """Sum in 64 bits, and round once."""
    is_float = x.dtype.kind == "f"
    result = np.asarray(np.sum(x, axis=axis, dtype="f8" if is_float else "i8"))
    return result.astype(x.dtype) if is_float else result


@dataclass(frozen=True)
class Case:
    """A function of an array along an axis."""

    function: str
    x: np.ndarray
    axis: int | None
    note: str = ""

    @property
    def title(self) -> str:
        """The function, the shape and special properties."""
        where = "all" if self.axis is None else f"axis {self.axis}"
        shape = " x ".join(f"{n // MI} Mi" if n % MI == 0 else f"{n:,}" for n in self.x.shape)
        return f"{self.function} of {shape} {self.x.dtype}, {where}{self.note}"

    def expected(self) -> np.ndarray:
        """The expected result of every library, rounded if they round differently."""
        function = EXPECTED.get(self.function, getattr(np, self.function, None))
        return self.rounded(np.asarray(function(self.x, axis=self.axis)))

    @property
    def out_bytes(self) -> int:
        """The bytes of an element of the result."""
        is_wide = self.function == "argmax" or self.x.dtype.kind in "bi"
        return 8 if is_wide else self.x.dtype.itemsize

    def rounded(self, result: np.ndarray) -> np.ndarray:
        """Return a result in the form in which it is compared."""
        return np.round(result.astype("f8"), 4) if self.function in ("norm", "var") else result


def shapes(n: int) -> list[tuple[tuple[int, ...], int | None]]:
    """Return shapes of n elements with the axes that are reduced."""
    side = 1 << (n.bit_length() - 1) // 2
    return [((n,), None), ((n // side, side), 0), ((n // side, side), 1)]


def cases(n: int, buffers: dict[str, np.ndarray], is_quick: bool) -> Iterator[Case]:
    """Yield all cases."""
    x = buffers["float32"]
    narrow = [((n // 4, 4), 0), ((n // 4, 4), 1), ((4, n // 4), 0), ((4, n // 4), 1)]
    for shape, axis in (*shapes(n), *narrow):
        yield Case("sum", x[:n].reshape(shape), axis)
    yield Case("sum", x[1 : n + 1], None, ", misaligned")
    side = (1 << (n.bit_length() - 1) // 2) - 1
    rows = n // side - 2
    for axis in (0, 1):
        yield Case("sum", x[: rows * side].reshape(rows, side), axis, ", odd rows")
    for dtype in () if is_quick else DTYPES[1:]:
        for shape, axis in shapes(n):
            yield Case("sum", buffers[dtype][:n].reshape(shape), axis)
    for name in ("max", "mean", "norm", "var", "argmax", "minmax", "cumsum"):
        for shape, axis in shapes(n):
            yield Case(name, x[:n].reshape(shape), axis)
    yield Case("cumsum", x[:n].reshape(n // 4, 4), 0)


def prepare(timer: DeviceTimer, case: Case, view: View, library: Library) -> Contender:
    """Return a library's contender."""
    x = library.put(view)
    call = partial(library.functions[case.function], x, axis=case.axis)
    return timer.contender(
        itertools.repeat(call), result=lambda: case.rounded(np.asarray(library.get(call())))
    )


def compile_case(case: Case, view: View) -> None:
    """Compile each library's code for a case."""
    for make in (cuplug_library, cupy_library):
        library = make()
        library.functions[case.function](library.put(view), axis=case.axis)


def compare(
    timer: DeviceTimer, case: Case, view: View, copier: Callable[[int], Callable[[], None]]
) -> Comparison:
    """Return the comparison of a case."""
    expected, share = case.expected(), SHARES.get(case.function, 0.95)
    n_bytes = case.x.nbytes + expected.size * case.out_bytes
    wanted = [
        Target("cuplug", f">= {share} of a device copy", (COPY,), 1 / share),
        Target("cuplug", "<= the best peer", ("torch", "cupy")),
    ]
    comparison = Comparison(case.title, "us", COPY, wanted, expected, n_bytes)
    copy = itertools.repeat(copier(n_bytes // 2))
    comparison.add(COPY, lambda: timer.contender(copy))
    for name, library in LIBRARIES.items():
        comparison.add(name, lambda library=library: prepare(timer, case, view, library()))
    return comparison


def measure(run: Run) -> None:
    """Reductions and scans on device arrays, against PyTorch, CuPy and a device copy."""
    n = MI if run.quick else 64 * MI
    run.require_memory(GIB + 20 * n)
    driver = Driver()
    timer, copier = DeviceTimer(driver), cache(driver.copier)
    ones = np.random.default_rng(7).random(n + MARGIN, np.float32) < 1 / (1 << 12)
    buffers = {dtype: ones.astype(dtype) for dtype in DTYPES}  # sums are exact
    pointers = {dtype: driver.upload(x) for dtype, x in buffers.items()}

    def view_of(case: Case) -> View:
        return View(pointers[case.x.dtype.name], case.x)

    def prepare(case: Case) -> Comparison:
        return compare(timer, case, view_of(case), copier)

    every = list(cases(n, buffers, run.quick))
    at_once([partial(compile_case, every[0], view_of(every[0]))])  # creates all operators
    at_once(partial(compile_case, case, view_of(case)) for case in every)
    run.measure_all(partial(prepare, case) for case in every)


if __name__ == "__main__":
    run_module(measure)
