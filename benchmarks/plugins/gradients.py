# SPDX-License-Identifier: Apache-2.0
"""gather_backward on the host and on the device, against sums by index of NumPy, PyTorch, CuPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from driver import DeviceTimer, Driver
from measurement import SETTLED_S, Comparison, Contender, Target, statement
from module import GIB, Run, run_module

MI = 1 << 20
LARGEST = 2  # distinct values of the added numbers: their sums are exact, also in 16 bits
PEERS = ("torch index_add_", "torch embedding backward", "cupy add.at")
Call = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """Sums of n rows into m rows, of `width` numbers each."""

    m: int
    n: int
    width: int
    dtype: str

    @property
    def title(self) -> str:
        """Describe the sums."""
        row = f"rows of {self.width} {self.dtype}" if self.width > 1 else self.dtype
        return f"gather_backward, {self.n / MI:g} Mi of {row} into {self.m / MI:g} Mi"

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return grad, index and source."""
        random = np.random.default_rng(6)
        row = (self.width,) if self.width > 1 else ()
        grad = random.integers(-LARGEST, LARGEST + 1, (self.n, *row), np.int8)
        index = random.integers(0, self.m, self.n, np.int64)
        return grad.astype(self.dtype), index, np.zeros((self.m, *row), self.dtype)


def cuplug_call(case: Case, device: str) -> tuple[Call, Call]:
    """cuplug's own arrays, or NumPy's on the host."""
    import cuplug

    gather_backward = cuplug.find("gather_backward")
    arrays: Any = case.arrays()
    if device == "cpu":
        return lambda: gather_backward(*arrays, device="cpu"), lambda: gather_backward(*arrays)
    arrays = [cuplug.asarray(x, device="cuda") for x in arrays]
    return lambda: gather_backward(*arrays), lambda: gather_backward(*arrays).numpy()


def torch_call(case: Case, device: str, embedding: bool = False) -> tuple[Call, Call]:
    """PyTorch: zeros to which rows are added, or the gradient of its embedding."""
    import torch

    grad, index, source = (torch.from_numpy(x).to(device) for x in case.arrays())

    def add() -> Any:
        return torch.zeros_like(source).index_add_(0, index, grad)

    def embed() -> Any:
        return torch.ops.aten.embedding_dense_backward(grad, index, len(source), -1, False)

    call = embed if embedding else add
    return call, lambda: call().cpu().numpy()


def cupy_call(case: Case, device: str) -> tuple[Call, Call]:
    """CuPy's add.at."""
    import cupy

    grad, index, source = map(cupy.asarray, case.arrays())

    def call() -> Any:
        out = cupy.zeros_like(source)
        cupy.add.at(out, index, grad)
        return out

    return call, lambda: cupy.asnumpy(call())


def numpy_call(case: Case, device: str = "cpu") -> tuple[Call, Call]:
    """NumPy's add.at."""
    grad, index, source = case.arrays()

    def call() -> np.ndarray:
        out = np.zeros_like(source)
        np.add.at(out, index, grad)
        return out

    return call, call


def contenders(case: Case, device: str) -> Iterator[tuple[str, Callable[[], tuple[Call, Call]]]]:
    """Yield the contenders of a case: each creates the timed function, and one for its result."""
    yield "cuplug", lambda: cuplug_call(case, device)
    yield PEERS[0], lambda: torch_call(case, device)
    if case.width > 1:
        yield PEERS[1], lambda: torch_call(case, device, embedding=True)
    if device == "cpu":
        yield "np.add.at", lambda: numpy_call(case)
    elif case.dtype == "float32":
        yield PEERS[2], lambda: cupy_call(case, device)


def on_the_host(call: Call, result: Call) -> Contender:
    """Return a contender that is timed by the clock."""
    return statement("call()", result, call=call)


def compare(case: Case, device: str, contender: Callable[[Call, Call], Contender]) -> Comparison:
    """Return the comparison of a case."""
    peers = [name for name, _ in contenders(case, device) if name != "cuplug"]
    target = Target("cuplug", "<= the best peer", tuple(peers))
    unit, title = ("ms", f"{case.title}, on the CPU") if device == "cpu" else ("us", case.title)
    comparison = Comparison(title, unit, PEERS[0], (target,))
    if device == "cpu":
        comparison.pause_s = SETTLED_S
    comparison.expected = numpy_call(case)[0]()
    for name, make in contenders(case, device):
        comparison.add(name, lambda make=make: contender(*make()))
    return comparison


def measure(run: Run) -> None:
    """Sums by index on the host and on the device, against NumPy, PyTorch and CuPy."""
    size = MI // 8 if run.quick else MI
    cases = [
        Case(128 * size, size, 1, "float32"),
        Case(size, 16 * size, 1, "float32"),
        Case(size, size // 4, 128, "float32"),
        Case(size // 8, size // 128, 4096, "float16"),
    ]
    run.require_memory(GIB + 4 * 4 * 128 * size + 4 * 2 * 4096 * size // 8)
    on_host = cases[:3]
    n_left = len(cases) + len(on_host)
    for case in on_host:
        n_left -= 1
        run.measure(compare(case, "cpu", on_the_host), n_left)
    timer = DeviceTimer(Driver())

    def on_the_device(call: Call, result: Call) -> Contender:
        return timer.contender(itertools.repeat(call), result=result)

    for case in cases:
        n_left -= 1
        run.measure(compare(case, "cuda", on_the_device), n_left)


if __name__ == "__main__":
    run_module(measure)
