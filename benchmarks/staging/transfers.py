# SPDX-License-Identifier: Apache-2.0
"""NumPy to NumPy through the GPU, and the copies by themselves: 128 Mi floats."""

from __future__ import annotations

from typing import Any

import numpy as np
from driver import Driver
from measurement import Comparison, Contender, Target, statement
from module import GIB, Run, run_module

MI = 1 << 20
STAGED_GB_PER_S = 45.0


def cuplug_relu(x: np.ndarray) -> Contender:
    """cuplug's stock relu, staged through the pinned pool."""
    import cuplug

    relu = cuplug.find("relu")
    return statement("call(x, device='cuda')", lambda: relu(x, device="cuda"), call=relu, x=x)


def torch_relu(x: np.ndarray) -> Contender:
    """PyTorch: copy, relu, copy back."""
    import torch

    def call() -> np.ndarray:
        return torch.relu(torch.from_numpy(x).cuda()).cpu().numpy()

    return statement("call()", call, call=call)


def cupy_relu(x: np.ndarray) -> Contender:
    """CuPy: copy, maximum, copy back."""
    import cupy

    def call() -> np.ndarray:
        return cupy.asnumpy(cupy.maximum(cupy.asarray(x), 0))

    return statement("call()", call, call=call)


def cuplug_to_device(x: np.ndarray) -> Contender:
    """cuplug.asarray: a staged copy."""
    import cuplug

    call = cuplug.asarray
    again = lambda: call(x, device="cuda").numpy()  # noqa: E731
    return statement("call(x, device='cuda')", again, call=call, x=x)


def cuplug_to_host(x: np.ndarray) -> Contender:
    """Array.numpy(): a staged copy to a new array."""
    import cuplug

    array = cuplug.asarray(x, device="cuda")
    return statement("array.numpy()", array.numpy, array=array)


def torch_pair(x: np.ndarray, pinned: bool) -> tuple[Any, Any]:
    """Return a host tensor with x, and a device tensor of that shape."""
    import torch

    host = torch.from_numpy(x)
    return host.pin_memory() if pinned else host, torch.zeros(x.size, device="cuda")


def torch_to_device(x: np.ndarray, pinned: bool) -> Contender:
    """PyTorch's copy to a new tensor, or from pinned memory to an existing one."""
    import torch

    host, device = torch_pair(x, pinned)
    if not pinned:
        return statement("call('cuda')", lambda: host.to("cuda").cpu().numpy(), call=host.to)
    text = "copy(host, non_blocking=True); synchronize()"
    names = {"copy": device.copy_, "synchronize": torch.cuda.synchronize}
    return statement(text, lambda: device.cpu().numpy(), host=host, **names)


def torch_to_host(x: np.ndarray, pinned: bool) -> Contender:
    """PyTorch's copy to an existing host tensor, or to a new one from pageable memory."""
    import torch

    host, device = torch_pair(x, pinned)
    device.copy_(host)
    if not pinned:
        return statement("call()", lambda: device.cpu().numpy(), call=device.cpu)
    host.fill_(np.nan)
    text = "copy(device, non_blocking=True); synchronize()"
    names = {"copy": host.copy_, "synchronize": torch.cuda.synchronize}
    return statement(text, host.numpy, device=device, **names)


def cupy_to_device(x: np.ndarray) -> Contender:
    """CuPy's copy of pageable memory."""
    import cupy

    text = "call(x); synchronize()"
    wait = cupy.cuda.runtime.deviceSynchronize
    return statement(text, lambda: cupy.asarray(x).get(), call=cupy.asarray, x=x, synchronize=wait)


def round_trip(x: np.ndarray, driver: Driver) -> Comparison:
    """Return the comparison of relu through the GPU."""
    title = f"relu through the GPU, NumPy to NumPy, {x.size // MI} Mi floats"
    wanted = [Target("cuplug", "below torch and cupy", ("torch", "cupy"))]
    if x.size == 128 * MI:
        wanted += [Target("cuplug", "<= 20 ms", extra=20.0)]
    comparison = Comparison(title, "ms", "cupy", wanted, np.maximum(x, 0), 2 * x.nbytes, number=1)
    comparison.synchronize = driver.synchronize
    comparison.settings["GB/s"] = "bytes to the device and back, over the time of both"
    for name, prepare in (("cuplug", cuplug_relu), ("torch", torch_relu), ("cupy", cupy_relu)):
        comparison.add(name, lambda prepare=prepare: prepare(x))
    return comparison


def copies(x: np.ndarray, driver: Driver) -> Comparison:
    """Return the comparison of copy rates; the target is a rate."""
    limit_ms = x.nbytes / STAGED_GB_PER_S / 1e6
    to, back, text = "cuplug.asarray", "cuplug .numpy()", f">= {STAGED_GB_PER_S:.0f} GB/s staged"
    wanted = [Target(name, text, extra=limit_ms) for name in (to, back)]
    pinned = "torch, pinned, to device"
    title = f"copies between host and device, {x.nbytes // MI} MiB"
    comparison = Comparison(title, "ms", pinned, wanted, x, x.nbytes, number=1)
    comparison.synchronize = driver.synchronize
    prepares = {
        to: lambda: cuplug_to_device(x),
        back: lambda: cuplug_to_host(x),
        pinned: lambda: torch_to_device(x, True),
        "torch, pinned, to host": lambda: torch_to_host(x, True),
        "torch, pageable, to device": lambda: torch_to_device(x, False),
        "torch, pageable, to host": lambda: torch_to_host(x, False),
        "cupy.asarray": lambda: cupy_to_device(x),
    }
    for name, prepare in prepares.items():
        comparison.add(name, prepare)
    return comparison


def measure(run: Run) -> None:
    """NumPy to NumPy through the GPU, and the copies by themselves: 128 Mi floats."""
    driver = Driver()
    n = 16 * MI if run.quick else 128 * MI
    run.require_memory(GIB + 10 * 4 * n)
    x = np.random.default_rng(3).standard_normal(n, np.float32)
    run.measure(round_trip(x, driver), 1)
    run.measure(copies(x, driver), 0)


if __name__ == "__main__":
    run_module(measure)
