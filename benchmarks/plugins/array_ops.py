# SPDX-License-Identifier: Apache-2.0
"""Stock operators on whole arrays, 1 Ki to 1 Gi elements, on the host and on the device."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from driver import DeviceTimer, Driver
from libraries import grown
from measurement import SETTLED_S, Comparison, Contender, Skip, Target, statement
from module import GIB, Run, in_groups, run_module

KI, MI, GI = 1 << 10, 1 << 20, 1 << 30
PART = 16 * MI  # the largest size on the host; larger arrays are created on the device
COPIED = 64 * MI  # compared with a device copy: operations that move the same memory
COPY = "device copy"
BINS, TOP = 256, 64
Function = Callable[..., Any]
Call = Callable[[], Any]
BYTES_EACH = 150  # host memory per element, including results and the libraries' needs


@dataclass(frozen=True)
class Operation:
    """A computation: its arrays, and each library's spelling, given its module.

    `share` is the target fraction of a device copy's speed, if the minimum of bytes is meaningful.
    With `is_anywhere`, the second array has positions in the first.
    """

    name: str
    make: Callable[[np.random.Generator, int], list[np.ndarray]]
    numpy: Function
    cuplug: Function
    torch: Function
    cupy: Function
    share: float | None = None
    is_anywhere: bool = False


def some(dtype: str) -> Callable[[np.random.Generator, int], list[np.ndarray]]:
    """Return a function that creates whole numbers, whose sums are exact."""
    return lambda random, n: [random.integers(-1, 2, n, np.int8).astype(dtype)]


def some_columns(random: np.random.Generator, n: int) -> list[np.ndarray]:
    return [some("float32")(random, n)[0].reshape(-1, 256)]


def floats(random: np.random.Generator, n: int) -> list[np.ndarray]:
    return [random.random(n, np.float32)]


def masked(random: np.random.Generator, n: int) -> list[np.ndarray]:
    x = random.random(n, np.float32)
    return [x, x < 0.31]


def rows(random: np.random.Generator, n: int) -> list[np.ndarray]:
    x = random.random((n // 256, 256), np.float32)
    return [x, random.integers(0, 256, x.shape)]


def added(random: np.random.Generator, n: int) -> list[np.ndarray]:
    values = random.integers(-1, 2, n, np.int8).astype(np.float32)
    return [np.zeros(n, np.float32), random.integers(0, n, n), values]


def placed(random: np.random.Generator, n: int) -> list[np.ndarray]:
    return [np.zeros(n, np.float32), random.permutation(n), random.random(n, np.float32)]


def columns(random: np.random.Generator, n: int) -> list[np.ndarray]:
    x = random.random((n // 256, 256), np.float32)
    return [x, random.integers(0, len(x), x.shape)]


def put(_: Any, x: Any, index: Any, values: Any) -> Any:
    x[index] = values
    return x


def own_put(ops: Any, x: Any, index: Any, values: Any) -> Any:
    ops.put(x, index, values)
    return x


def searched(random: np.random.Generator, n: int) -> list[np.ndarray]:
    return [np.sort(random.random(64 * KI, np.float32)), random.random(n, np.float32)]


def numpy_scatter_add(_: Any, x: Any, index: Any, values: Any) -> Any:
    return np.bincount(index, values, len(x)).astype(np.float32)


def cupy_scatter_add(cp: Any, x: Any, index: Any, values: Any) -> Any:
    out = x.copy()
    cp.add.at(out, index, values)
    return out


OPERATIONS = [
    Operation(
        "select, 31 % kept",
        masked,
        lambda np, x, mask: x[mask],
        lambda ops, x, mask: ops.select(x, mask),
        lambda torch, x, mask: x[mask],
        lambda cp, x, mask: x[mask],
        0.6,
    ),
    Operation(
        "nonzero",
        some("float32"),
        lambda np, x: np.nonzero(x)[0],
        lambda ops, x: ops.nonzero(x)[0],
        lambda torch, x: torch.nonzero(x)[:, 0],
        lambda cp, x: cp.nonzero(x)[0],
    ),
    Operation(
        "sort",
        floats,
        lambda np, x: np.sort(x),
        lambda ops, x: ops.sort(x),
        lambda torch, x: torch.sort(x).values,
        lambda cp, x: cp.sort(x),
    ),
    Operation(
        "argsort",
        floats,
        lambda np, x: np.argsort(x, kind="stable"),
        lambda ops, x: ops.argsort(x),
        lambda torch, x: torch.sort(x, stable=True).indices,
        lambda cp, x: cp.argsort(x),
    ),
    Operation(
        f"topk, {TOP} of all",
        floats,
        lambda np, x: np.sort(np.partition(x, x.size - TOP)[-TOP:])[::-1],
        lambda ops, x: ops.topk(x, TOP).values,
        lambda torch, x: torch.topk(x, TOP).values,
        lambda cp, x: cp.sort(cp.partition(x, x.size - TOP)[-TOP:])[::-1],
    ),
    Operation(
        "unique",
        some("int32"),
        lambda np, x: np.unique(x),
        lambda ops, x: ops.unique_values(x),
        lambda torch, x: torch.unique(x),
        lambda cp, x: cp.unique(x),
    ),
    Operation(
        "cumulative_sum",
        some("float32"),
        lambda np, x: np.cumsum(x),
        lambda ops, x: ops.cumulative_sum(x),
        lambda torch, x: torch.cumsum(x, 0),
        lambda cp, x: cp.cumsum(x),
        0.9,
    ),
    Operation(
        "cumulative_sum, columns of 256",
        some_columns,
        lambda np, x: np.cumsum(x, 0),
        lambda ops, x: ops.cumulative_sum(x, 0),
        lambda torch, x: torch.cumsum(x, 0),
        lambda cp, x: cp.cumsum(x, 0),
    ),
    Operation(
        "take_along_axis, rows of 256",
        rows,
        lambda np, x, index: np.take_along_axis(x, index, 1),
        lambda ops, x, index: ops.take_along_axis(x, index, 1),
        lambda torch, x, index: torch.gather(x, 1, index),
        lambda cp, x, index: cp.take_along_axis(x, index, 1),
    ),
    Operation(
        "take_along_axis, columns of 256",
        columns,
        lambda np, x, index: np.take_along_axis(x, index, 0),
        lambda ops, x, index: ops.take_along_axis(x, index, 0),
        lambda torch, x, index: torch.gather(x, 0, index),
        lambda cp, x, index: cp.take_along_axis(x, index, 0),
        is_anywhere=True,
    ),
    Operation("put, all anywhere", placed, put, own_put, put, put, is_anywhere=True),
    Operation(
        "scatter_add, all anywhere",
        added,
        numpy_scatter_add,
        lambda ops, x, index, values: ops.scatter_add(x, index, values),
        lambda torch, x, index, values: torch.scatter_add(x, 0, index, values),
        cupy_scatter_add,
        is_anywhere=True,
    ),
    Operation(
        "searchsorted in 64 Ki",
        searched,
        lambda np, x, values: np.searchsorted(x, values),
        lambda ops, x, values: ops.searchsorted(x, values),
        lambda torch, x, values: torch.searchsorted(x, values),
        lambda cp, x, values: cp.searchsorted(x, values),
    ),
    Operation(
        f"histogram, {BINS} bins",
        floats,
        lambda np, x: np.histogram(x, BINS, (0, 1))[0],
        lambda ops, x: ops.histogram(x, bins=BINS, low=0.0, high=1.0),
        lambda torch, x: torch.histc(x, BINS, 0, 1),
        lambda cp, x: cp.histogram(x, BINS, (0, 1))[0],
    ),
]


@dataclass(frozen=True)
class Library:
    """A library's conversions of arrays, and its functions."""

    module: str
    function: Callable[[Operation], Function]
    put: Callable[[Any, np.ndarray], Any]
    get: Callable[[Any, Any], np.ndarray]


HOST = {
    "cuplug": Library("cuplug.ops", lambda x: x.cuplug, lambda _, x: x, lambda _, x: x),
    "numpy": Library("numpy", lambda x: x.numpy, lambda _, x: x, lambda _, x: x),
    "torch": Library(
        "torch", lambda x: x.torch, lambda torch, x: torch.from_numpy(x), lambda _, x: x.numpy()
    ),
}
DEVICE = {
    "cuplug": Library(
        "cuplug.ops", lambda x: x.cuplug, lambda _, x: own_array(x), lambda _, x: x.numpy()
    ),
    "torch": Library(
        "torch",
        lambda x: x.torch,
        lambda torch, x: torch.from_numpy(x).cuda(),
        lambda _, x: x.cpu().numpy(),
    ),
    "cupy": Library(
        "cupy", lambda x: x.cupy, lambda cp, x: cp.asarray(x), lambda cp, x: cp.asnumpy(x)
    ),
}


def own_array(x: np.ndarray) -> Any:
    """Return a cuplug.Array in GPU memory."""
    import cuplug

    return cuplug.asarray(x, device="cuda")


@dataclass(frozen=True)
class Case:
    """An operation on arrays, and its expected result; None if it is not checked."""

    operation: Operation
    arrays: list[np.ndarray]
    expected: np.ndarray | None
    n: int

    def call(self, name: str, library: Library) -> tuple[Call, Call | None]:
        """Return the computation, and a function that returns the result in the expected dtype."""
        module, expected = importlib.import_module(library.module), self.expected
        arrays = [library.put(module, x) for x in self.arrays]
        if expected is None:
            times, places = self.n // PART, arrays[1:2]
            arrays = grown(name, arrays, times)
            if self.operation.is_anywhere:
                each = library.put(module, np.arange(times).reshape(-1, *[1] * places[0].ndim))
                arrays[1] = (places[0] * times + each).reshape(-1, *places[0].shape[1:])
        call = partial(library.function(self.operation), module, *arrays)
        if expected is None or name == "numpy":  # the result is the expected one
            return call, None
        return call, lambda: library.get(module, call()).astype(expected.dtype, copy=False)

    @property
    def n_bytes(self) -> int | None:
        if self.expected is None:
            return None
        return sum(x.nbytes for x in self.arrays) + self.expected.nbytes

    @property
    def size(self) -> str:
        return f"{self.n // KI} Ki" if self.n < MI else f"{self.n // MI} Mi"


def chosen(sizes: list[int]) -> list[tuple[int, Operation]]:
    """Return each operation on each size, compared with a copy if it has a target for it."""
    pairs = itertools.product(sizes, OPERATIONS)
    return [(n, operation) for n, operation in pairs if n != COPIED or operation.share]


def made(n: int) -> int:
    """Return the number of elements that are created on the host."""
    return n if n < GI else PART


def cases(pairs: list[tuple[int, Operation]], memory: int) -> Iterator[Case]:
    """Yield the operations on their arrays. Arrays of one size are created together."""
    for n, each in itertools.groupby(pairs, lambda pair: pair[0]):
        makes = (partial(case_of, n, operation) for _, operation in each)
        yield from in_groups(makes, made(n) * BYTES_EACH, memory)


def case_of(n: int, operation: Operation) -> Case:
    """Create the arrays of an operation, and the expected result; for the largest, a part."""
    arrays = operation.make(np.random.default_rng(7), made(n))
    expected = np.asarray(operation.numpy(np, *arrays)) if n < GI else None
    return Case(operation, arrays, expected, n)


def on_host(case: Case) -> Comparison:
    """Return the comparison with NumPy and PyTorch on the CPU."""
    wanted = [Target("cuplug", "<= the best peer", ("numpy", "torch"))]
    title = f"{case.operation.name}, {case.size}, CPU"
    comparison = Comparison(title, "us", "numpy", wanted, case.expected, case.n_bytes)
    comparison.pause_s = SETTLED_S

    def prepare(name: str) -> Contender:
        call, result = case.call(name, HOST[name])
        return statement("call()", result, call=call)

    for name in HOST:
        comparison.add(name, partial(prepare, name))
    return comparison


def on_device(timer: DeviceTimer, case: Case) -> Comparison:
    """Return the comparison with PyTorch and CuPy, and with a copy of the same bytes."""
    wanted = [Target("cuplug", "<= the best peer", ("torch", "cupy"))]
    if case.operation.share and case.n == COPIED:
        share = case.operation.share
        wanted.append(Target("cuplug", f">= {share} of a device copy", (COPY,), 1 / share))
    title = f"{case.operation.name}, {case.size}, GPU"
    reference = "torch" if case.n_bytes is None else COPY
    comparison = Comparison(title, "us", reference, wanted, case.expected, case.n_bytes)
    if case.n_bytes is not None:
        copies = itertools.repeat(timer.driver.copier(case.n_bytes // 2))
        comparison.add(COPY, lambda: timer.contender(copies))

    def prepare(name: str) -> Contender:
        call, result = case.call(name, DEVICE[name])
        return timer.contender(itertools.repeat(call), result=result)

    for name in DEVICE:
        comparison.add(name, partial(prepare, name))
    return comparison


def measure(run: Run) -> None:
    """Stock operators on whole arrays, 1 Ki to 1 Gi elements, on the host and on the device."""
    try:
        driver = Driver()
    except Skip:
        driver = None
    sizes = [KI, MI] if run.quick else [KI, MI, PART, *([COPIED, GI] if driver else [])]
    pairs = chosen([n for n in sizes if made(n) * BYTES_EACH + GIB < run.memory])
    timer = DeviceTimer(driver) if driver else None
    left = sum((n <= PART) + bool(driver) for n, _ in pairs)
    for case in cases(pairs, run.memory):
        n = case.n
        run.min_rounds = 3 if n > MI else run.min_rounds  # peers sort 16 Mi for seconds
        if n <= PART:
            left -= 1
            run.measure(on_host(case), left)
        if timer and n * 80 < timer.driver.free_bytes():
            left -= 1
            run.measure(on_device(timer, case), left)


if __name__ == "__main__":
    run_module(measure)
