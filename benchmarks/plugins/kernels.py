# SPDX-License-Identifier: Apache-2.0
"""Kernels on device arrays, against PyTorch, CuPy and a device copy of as many bytes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from driver import DeviceTimer, Driver
from measurement import Comparison, Contender, Target
from module import GIB, Run, run_module

MI = 1 << 20
COPY = "device copy"
SLOPE = 0.01


@dataclass(frozen=True)
class Library:
    """A library's conversions to and from the device, and its functions."""

    put: Callable[[np.ndarray], Any]
    get: Callable[[Any], np.ndarray]
    functions: dict[str, Callable[..., Any]]


@dataclass(frozen=True)
class Case:
    """A function of x and, in turn, of each set of further arguments."""

    function: str
    title: str
    reference: str
    x: np.ndarray
    sets: list[list[np.ndarray]] = field(default_factory=lambda: [[]])
    n_bytes: int | None = None
    targets: tuple[Target, ...] = ()


EXPECTED: dict[str, Callable[..., np.ndarray]] = {
    "gather": lambda x, index: x[index],
    "relu": lambda x: np.maximum(x, 0),
    "leaky_relu": lambda x: np.maximum(x, np.float32(SLOPE) * x),
}


def cuplug_library() -> Library:
    """cuplug with its own arrays and stock plugins."""
    import cuplug

    leaky_relu = cuplug.find("leaky_relu")
    functions = {"gather": cuplug.find("gather"), "relu": cuplug.find("relu")}
    functions["leaky_relu"] = lambda x: leaky_relu(x, SLOPE)
    return Library(partial(cuplug.asarray, device="cuda"), lambda x: x.numpy(), functions)


def torch_library() -> Library:
    """PyTorch on its default stream."""
    import torch

    functions = {
        "gather": lambda x, index: torch.index_select(x, 0, index),
        "relu": torch.relu,
        "leaky_relu": lambda x: torch.nn.functional.leaky_relu(x, SLOPE),
    }
    return Library(lambda x: torch.from_numpy(x).cuda(), lambda x: x.cpu().numpy(), functions)


def torch_getitem() -> Library:
    """PyTorch's x[idx], which requires int64 indices. They are converted before."""
    library = torch_library()

    def put(x: np.ndarray) -> Any:
        return library.put(x.astype(np.int64) if x.dtype == np.int32 else x)

    return Library(put, library.get, {"gather": lambda x, index: x[index]})


def cupy_library() -> Library:
    """CuPy on its default stream."""
    import cupy

    functions = {
        "gather": lambda x, index: cupy.take(x, index, axis=0),
        "relu": lambda x: cupy.maximum(x, 0),
        "leaky_relu": lambda x: cupy.maximum(x, np.float32(SLOPE) * x),
    }
    return Library(cupy.asarray, cupy.asnumpy, functions)


LIBRARIES = {
    "cuplug": cuplug_library,
    "torch": torch_library,
    "torch x[idx]": torch_getitem,
    "cupy": cupy_library,
}


def prepare(timer: DeviceTimer, case: Case, library: Library) -> Contender:
    """Return a library's contender, its arguments on the device."""
    function, x = library.functions[case.function], library.put(case.x)
    sets = [[library.put(array) for array in arrays] for arrays in case.sets]
    calls = itertools.cycle([partial(function, x, *arrays) for arrays in sets])
    return timer.contender(calls, result=lambda: library.get(function(x, *sets[0])))


def compare(timer: DeviceTimer, case: Case) -> Comparison:
    """Return the comparison of a case."""
    comparison = Comparison(case.title, "us", case.reference, case.targets, n_bytes=case.n_bytes)
    comparison.expected = EXPECTED[case.function](case.x, *case.sets[0])
    if case.sets != [[]]:
        comparison.settings["argument sets in turn"] = len(case.sets)
    if case.n_bytes:
        copy = itertools.repeat(timer.driver.copier(case.n_bytes // 2))
        comparison.add(COPY, lambda: timer.contender(copy))
    for name, library in LIBRARIES.items():
        if name != "torch x[idx]" or case.function == "gather":
            comparison.add(name, lambda library=library: prepare(timer, case, library()))
    return comparison


def copy_target(fraction: float, what: str = "") -> Target:
    """Return a target: a fraction of the speed of a device copy. `what` is copied."""
    return Target("cuplug", f">= {fraction} of a device copy{what}", (COPY,), 1 / fraction)


def gather_cases(n: int) -> Iterator[Case]:
    """Yield gathers from n floats: few and many random indices, sorted ones, and rows."""
    random = np.random.default_rng(4)
    x = random.random(n, np.float32)
    best = Target("cuplug", "<= the best peer", ("torch", "torch x[idx]", "cupy"))
    few, many = n // 128, n // 2
    sets = [[random.integers(0, n, few, np.int32)] for _ in range(8)]
    source, targets = f"gather from {n // MI} Mi floats", (best,)
    # 8 sets together are several times as large as the L2 cache
    yield Case("gather", f"{source}, {few // 1024} Ki random", "torch", x, sets, targets=targets)
    index = random.integers(0, n, many, np.int32)
    count = f"{many // MI} Mi"
    yield Case("gather", f"{source}, {count} random", "torch", x, [[index]], targets=targets)
    if n == 128 * MI:
        targets += (Target("cuplug", "<= 250 us", extra=250.0),)
    index = np.sort(index)
    yield Case("gather", f"{source}, {count} sorted", "torch", x, [[index]], targets=targets)
    rows, n_taken = x.reshape(-1, 128), n // 256
    index = random.integers(0, len(rows), n_taken, np.int32)
    n_bytes, title = 2 * n_taken * 512 + index.nbytes, f"rows of 128 floats, {n_taken // 1024} Ki"
    yield Case("gather", f"{title} random", COPY, rows, [[index]], n_bytes, (copy_target(0.95),))


def elementwise_cases(n: int) -> Iterator[Case]:
    """Yield relu and leaky_relu on n floats."""
    block = np.random.default_rng(5).standard_normal(min(n, 64 * MI), np.float32)
    x = np.tile(block, n // block.size)
    for name in ("relu", "leaky_relu"):
        title = f"{name}, {n // MI} Mi floats"
        yield Case(name, title, COPY, x, n_bytes=2 * x.nbytes, targets=(copy_target(0.97),))


def largest(driver: Driver, memory: int) -> int:
    """Return the number of floats in elementwise cases: 256 Mi, or what memory allows."""
    device_bytes_per_float, host_bytes_per_float = 80, 24
    room = min(driver.free_bytes() // device_bytes_per_float, memory // host_bytes_per_float)
    return next((n for n in (256 * MI, 64 * MI) if n <= room), 16 * MI)


def measure(run: Run) -> None:
    """Kernels on device arrays, against PyTorch, CuPy and a device copy of as many bytes."""
    driver = Driver()
    n_gather = 16 * MI if run.quick else 128 * MI
    n = 16 * MI if run.quick else largest(driver, run.memory)
    run.require_memory(GIB + 4 * 4 * n_gather)
    timer = DeviceTimer(driver)
    cases = itertools.chain(gather_cases(n_gather), elementwise_cases(n))
    run.measure_all(partial(compare, timer, case) for case in cases)


if __name__ == "__main__":
    run_module(measure)
