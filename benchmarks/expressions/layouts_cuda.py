# SPDX-License-Identifier: Apache-2.0
"""Element-wise operators and rows on device arrays of every layout, against a device copy."""

from __future__ import annotations

import functools
import importlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from driver import DeviceTimer, Driver
from kernels import COPY, copy_target
from measurement import Comparison, Contender, Target
from module import GIB, Run, at_once, run_module

FEW = 512  # rows and columns of arrays for compilation before the measurement
SECTOR = 32  # bytes of a memory sector
HALF, ROOT_HALF = 0.5, 0.7071067811865476
Function = Callable[..., Any]
Views = Callable[..., tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """A computation on views of device arrays, and the bytes that memory must move.

    If `exact`, all libraries return the same bits. Without `cupy` or `torch`, the library cannot
    compute it in one pass.
    """

    title: str
    arrays: list[np.ndarray]
    views: Views
    numpy: Function
    cuplug: Function
    torch: Function
    cupy: Function
    n_bytes: int
    share: float
    exact: bool = True
    beats_peers: bool = False
    copied: str = ""  # bytes moved, if they differ from the arrays'

    def function(self, name: str) -> Function:
        return {"cuplug": self.cuplug, "torch": self.torch, "cupy": self.cupy}[name]


def same(*arrays: Any) -> tuple[Any, ...]:
    return arrays


@functools.cache
def expression(signature: str, text: str) -> Function:
    """Return cuplug's operator from an expression."""
    import cuplug

    return cuplug.elementwise(signature, text)


def made(signature: str, text: str) -> Function:
    return lambda *arrays: expression(signature, text)(*arrays)


def stock(name: str) -> Function:
    return lambda *arrays: getattr(importlib.import_module("cuplug.ops"), name)(*arrays)


def in_torch(function: Function) -> Function:
    return lambda *arrays: function(importlib.import_module("torch"), *arrays)


@functools.cache
def compiled(function: Function) -> Function:
    import torch

    return torch.compile(lambda x: function(torch, x))


def in_inductor(function: Function) -> Function:
    return lambda *arrays: compiled(function)(*arrays)


def in_cupy(function: Function) -> Function:
    return lambda *arrays: function(importlib.import_module("cupy"), *arrays)


@functools.cache
def cupy_kernel(inputs: str, outputs: str, text: str) -> Function:
    import cupy

    return cupy.ElementwiseKernel(inputs, outputs, text, "measured")


def kernel(inputs: str, outputs: str, text: str) -> Function:
    return lambda *arrays: cupy_kernel(inputs, outputs, text)(*arrays)


def copies(title: str, x: np.ndarray, views: Views) -> Case:
    """Return the case of a copy in C order."""
    copy = made("copy(x: T) -> T", "x")
    return Case(
        title,
        [x],
        views,
        np.ascontiguousarray,
        copy,
        lambda x: x.contiguous(),
        in_cupy(lambda cp, x: cp.ascontiguousarray(x)),
        2 * x.nbytes,
        0.92,
    )


def relus(title: str, x: np.ndarray, views: Views, share: float) -> Case:
    """Return the case of the stock relu."""
    return Case(
        title,
        [x],
        views,
        lambda x: np.maximum(x, 0),
        stock("relu"),
        in_torch(lambda torch, x: torch.relu(x)),
        in_cupy(lambda cp, x: cp.maximum(x, 0)),
        2 * views(x)[0].nbytes,
        share,
    )


def sums(
    title: str, x: np.ndarray, y: np.ndarray, views: Views, n_bytes: int, share: float
) -> Case:
    """Return the case of a sum of two arrays."""
    add = made("add(x: T, y: T) -> T", "x + y")
    arrays = [x] if y is x else [x, y]
    return Case(title, arrays, views, np.add, add, lambda x, y: x + y, lambda x, y: x + y,
                n_bytes, share)  # fmt: skip


def transposed_cases(x: np.ndarray, cube: np.ndarray) -> Iterator[Case]:
    """Yield cases whose arrays are accessed along different axes."""
    yield copies("copy of x.T", x, lambda x: (x.T,))
    yield copies("copy of x transposed (0, 2, 1)", cube, lambda x: (swapped(x, 1, 2),))
    yield copies("copy of x transposed (2, 1, 0)", cube, lambda x: (swapped(x, 0, 2),))
    yield copies("copy of x.T, float16", x.astype("f2"), lambda x: (x.T,))
    yield sums("x + x.T", x, x, lambda x: (x, x.T), 3 * x.nbytes, 0.92)
    yield relus("relu of x.T", x, lambda x: (x.T,), 0.95)


def swapped(x: Any, a: int, b: int) -> Any:
    """Return an array of three dimensions with two of them exchanged."""
    order = [0, 1, 2]
    order[a], order[b] = b, a
    if hasattr(x, "__array_namespace__") and not isinstance(x, np.ndarray):
        return x.__array_namespace__().permute_dims(x, order)
    return x.permute(*order) if hasattr(x, "permute") else x.transpose(*order)


def row_cases(x: np.ndarray) -> Iterator[Case]:
    """Yield cases with misaligned arrays, misaligned rows, or broadcast arrays."""
    side, n_bytes, odd = x.shape[1], 2 * x.nbytes, x.shape[1] - 91
    flat = x.reshape(-1)
    yield relus("relu of x[1:]", flat, lambda x: (x[1:],), 0.98)
    yield relus("relu of x[1:], float16", flat.astype("f2"), lambda x: (x[1:],), 0.98)
    yield relus("relu of x[1:], int8", flat.astype("i1"), lambda x: (x[1:],), 0.98)
    yield relus(f"relu of x[:, :{odd}]", x, lambda x: (x[:, :odd],), 0.95)
    rows = flat[: flat.size // odd * odd].reshape(-1, odd)
    row, column = x[0].copy(), x[:, :1].copy()
    title = f"x + row, rows of {odd}"
    yield sums(title, rows, row[:odd].copy(), same, 2 * rows.nbytes, 0.98)
    yield sums(f"x + row, rows of {side}", x, row, same, n_bytes, 0.95)
    yield sums("x + column", x, column, same, n_bytes, 0.95)


def computing_cases(x: np.ndarray) -> Iterator[Case]:
    """Yield cases in which computing takes as long as memory, and a cast."""
    flat = x.reshape(-1)
    text = "tanh(x) * exp(-x * x) + sin(x)"

    def curve(np: Any, x: Any) -> Any:
        return np.tanh(x) * np.exp(-x * x) + np.sin(x)

    yield Case(text, [flat], same, functools.partial(curve, np), made("curve(x: T) -> T", text),
               in_inductor(curve), kernel("T x", "T y", f"y = {text}"), 2 * flat.nbytes, 0.96,
               exact=False)  # fmt: skip
    halves = flat.astype("f2")
    text = "x * (T)0.5 * (1 + erf(x * (T)0.7071067811865476))"
    yield Case("gelu, float16", [halves], same, lambda x: x, made("gelu(x: T) -> T", text),
               in_torch(lambda torch, x: torch.nn.functional.gelu(x)),
               kernel("float16 x", "float16 y",
                      "const float v = x; y = v * 0.5f * (1 + erff(v * 0.70710678f))"),
               2 * halves.nbytes, 0.90, exact=False)  # fmt: skip
    yield Case("float32 -> float16", [flat], same, lambda x: x.astype("f2"),
               made("cast(x: float32[...]) -> float16[...]", "x"), lambda x: x.half(),
               lambda x: x.astype("e"), 6 * flat.size, 0.95)  # fmt: skip


def gather_cases(n: int) -> Iterator[Case]:
    """Yield random rows whose sizes are not multiples of a sector.

    Memory moves the sectors that contain the rows, the indices and the output.
    """
    random = np.random.default_rng(3)
    for width, dtype, name in ((3, "f2", "halves"), (4, "f4", "floats"), (7, "f8", "doubles")):
        row_bytes = width * np.dtype(dtype).itemsize
        rows = np.resize(random.standard_normal(1 << 16), (n // row_bytes, width)).astype(dtype)
        index = random.integers(0, len(rows), len(rows) // 4)
        first = index * row_bytes
        n_sectors = ((first + row_bytes - 1) // SECTOR - first // SECTOR + 1).sum()
        n_bytes = int(n_sectors) * SECTOR + len(index) * (row_bytes + 8)
        yield Case(f"gather of rows of {width} {name}", [rows, index], same,
                   lambda x, index: x[index], stock("gather"),
                   in_torch(lambda torch, x, index: torch.index_select(x, 0, index)),
                   in_cupy(lambda cp, x, index: cp.take(x, index, axis=0)), n_bytes, 0.9,
                   beats_peers=True, copied=f" of the {SECTOR}-byte sectors touched")  # fmt: skip


@functools.lru_cache(maxsize=6)
def put(name: str, number: int) -> Any:
    """Return one of the device arrays as a library's array."""
    import cuplug

    x = UNDER_WAY[number]
    if name == "cuplug":
        return cuplug.asarray(x, device="cuda")
    if name == "torch":
        return importlib.import_module("torch").from_numpy(x).cuda()
    return importlib.import_module("cupy").asarray(x)


UNDER_WAY: dict[int, np.ndarray] = {}


def compile_case(case: Case) -> None:
    """Compile each library's code for a case."""
    UNDER_WAY.update({id(x): x for x in case.arrays})
    for name in ("cuplug", "cupy"):
        case.function(name)(*case.views(*(put(name, id(x)) for x in case.arrays)))


def prepare(timer: DeviceTimer, case: Case, name: str) -> Contender:
    """Return a library's contender."""
    UNDER_WAY.update({id(x): x for x in case.arrays})
    arrays = case.views(*(put(name, id(x)) for x in case.arrays))
    call = functools.partial(case.function(name), *arrays)

    def result() -> np.ndarray:
        seen = call()
        fetched = seen.cpu().numpy() if name == "torch" else None
        if fetched is None:
            fetched = seen.numpy() if name == "cuplug" else seen.get()
        return np.asarray(fetched)

    return timer.contender(itertools.repeat(call), result=result if case.exact else None)


def compare(timer: DeviceTimer, case: Case) -> Comparison:
    """Return the comparison of a case."""
    targets = [copy_target(case.share, case.copied)]
    if case.beats_peers:
        targets.append(Target("cuplug", "<= the best peer", ("torch", "cupy")))
    comparison = Comparison(case.title, "us", COPY, targets, n_bytes=case.n_bytes)
    if case.exact:
        comparison.expected = case.numpy(*case.views(*case.arrays))
    copy = timer.driver.copier(case.n_bytes // 2)
    comparison.add(COPY, lambda: timer.contender(itertools.repeat(copy)))
    for name in ("cuplug", "torch", "cupy"):
        comparison.add(name, lambda name=name: prepare(timer, case, name))
    return comparison


def cases(side: int) -> Iterator[Case]:
    """Yield all cases on side x side floats."""
    block = np.random.default_rng(1).integers(-100, 100, side * side // 16).astype("f4") / 32
    x = np.tile(block, 16).reshape(side, side)
    yield from transposed_cases(x, x.reshape(-1, side // 16, side // 16))
    yield from row_cases(x)
    yield from computing_cases(x)
    yield from gather_cases(x.nbytes)


def measure(run: Run) -> None:
    """Element-wise operators and rows on device arrays of every layout, against a device copy."""
    side = 2048 if run.quick else 8192
    run.require_memory(GIB + 24 * side * side)
    timer = DeviceTimer(Driver())
    at_once(partial(compile_case, case) for case in cases(FEW))
    run.measure_all(partial(compare, timer, case) for case in cases(side))


if __name__ == "__main__":
    run_module(measure)
