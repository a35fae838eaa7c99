# SPDX-License-Identifier: Apache-2.0
"""Host time of one launch with 1, 8 and 14 GPU arrays, and with a scalar and keywords."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import native
import numpy as np
from calls import LETTERS, names
from calls_cuda import LAUNCHES, SIZE, tvm_ffi_function
from driver import Driver
from measurement import Comparison, Contender, Target, statement
from module import Run, run_module

FLOOR = "launch from C"
X = np.arange(1, SIZE + 1, dtype=np.float32)


@cache
def floor() -> Callable[..., int]:
    """Return the C function that times launches."""
    function = ctypes.CDLL(str(native.shared_library("chain_floor.cu"))).chain_ns
    pointers = ctypes.POINTER(ctypes.c_void_p)
    function.argtypes = [ctypes.c_int, pointers, ctypes.c_int, ctypes.c_float, ctypes.c_int64]
    function.restype = ctypes.c_int64
    return function


def launch_from_c(driver: Driver, n: int, factor: float) -> Contender:
    """The same kernel, launched in a loop in C."""
    addresses = [driver.upload(X) for _ in range(n)]
    data, call = (ctypes.c_void_p * n)(*addresses), floor()

    def time_ns(number: int) -> float:
        elapsed_ns = call(number, data, n, factor, SIZE)
        if elapsed_ns < 0:
            raise RuntimeError(f"CUDA error {-elapsed_ns}")
        return elapsed_ns

    return Contender(time_ns, lambda: driver.download(addresses[-1], X))


def on_torch(call: Callable[..., object], text: str, n: int) -> Contender:
    """Call a function on PyTorch CUDA tensors a, b, c, ..."""
    import torch

    tensors = {name: torch.from_numpy(X).cuda() for name in LETTERS[:n]}
    last = tensors[LETTERS[n - 1]]
    return statement(text, lambda: last.cpu().numpy(), call=call, **tensors)


def cuplug_call(kind: str, text: str, n: int) -> Contender:
    """cuplug with arrays of PyTorch, of CuPy or its own, all checks on."""
    import cuplug

    native.plugin("chain")
    call = cuplug.find(f"chain.chain{n}")
    if kind == "torch tensors":
        return on_torch(call, text, n)
    arrays: dict[str, Any] = {}
    if kind == "CuPy arrays":
        import cupy

        arrays = {name: cupy.asarray(X) for name in LETTERS[:n]}
        return statement(text, arrays[LETTERS[n - 1]].get, call=call, **arrays)
    arrays = {name: cuplug.asarray(X, device="cuda") for name in LETTERS[:n]}
    return statement(text, arrays[LETTERS[n - 1]].numpy, call=call, **arrays)


def compare(driver: Driver, n: int, scaled: bool = False) -> Comparison:
    """Return the comparison with n arrays, or with n arrays and a scalar."""
    factor, more = (0.5, " and a scalar") if scaled else (1.0, "")
    text = f"call({names(n)}, 0.5)" if scaled else f"call({names(n)})"
    ours, tvm = "cuplug, torch tensors", "tvm-ffi, torch tensors"
    wanted = [
        Target(ours, "<= 1.10 x the floor", (FLOOR,), 1.10),
        Target(ours, "below tvm-ffi", (tvm,)),
    ]
    plural = "s" if n > 1 else ""
    title = f"{n} GPU array{plural}{more}, asynchronous launch"
    comparison = Comparison(title, "us", FLOOR, wanted, number=LAUNCHES)
    comparison.synchronize = driver.synchronize
    comparison.expected = np.float32(factor) * X
    comparison.add(FLOOR, lambda: launch_from_c(driver, n, factor))
    for kind in ("torch tensors", "CuPy arrays", "own arrays"):
        comparison.add(f"cuplug, {kind}", partial(cuplug_call, kind, text, n))
    if scaled:
        keywords = f"call({names(n)}, factor=0.5, mode='wrap')"
        name = "cuplug, torch tensors, 2 keywords"
        comparison.add(name, partial(cuplug_call, "torch tensors", keywords, n))
    comparison.add(tvm, lambda: on_torch(tvm_ffi_function("chain"), text, n))
    return comparison


def measure(run: Run) -> None:
    """Host time of one launch with 1, 8 and 14 GPU arrays, and with a scalar and keywords."""
    driver = Driver()
    chains = [partial(compare, driver, n) for n in (1, 8, 14)]
    run.measure_all([*chains, partial(compare, driver, 3, scaled=True)])


if __name__ == "__main__":
    run_module(measure)
