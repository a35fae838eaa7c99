# SPDX-License-Identifier: Apache-2.0
"""NumPy to NumPy through the GPU, and the copies by themselves: 128 Mi floats."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from driver import Driver
from measurement import Comparison, Contender, Target, statement
from module import GIB, Run, run_module

MI = 1 << 20
STAGED_GB_PER_S = 45.0
MAX_KEPT = 32  # results; with more rounds, their pages are reused


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


def cuplug_kept(x: np.ndarray) -> Contender:
    """The same, but all results are kept, in new pages. The pages of dropped results are reused."""
    import cuplug

    relu, kept = cuplug.find("relu"), deque[np.ndarray](maxlen=MAX_KEPT)
    text = "append(call(x, device='cuda'))"
    return statement(text, lambda: kept[-1], append=kept.append, call=relu, x=x)


def pinned_like(x: np.ndarray) -> Any:
    """Return a tensor in pinned memory with the values of x."""
    import torch

    return torch.from_numpy(x).pin_memory()


def cuplug_pinned(x: np.ndarray) -> Contender:
    """Pinned NumPy arrays in and out: no copy on the host."""
    import cuplug

    relu, source, out = cuplug.find("relu"), *(cuplug.empty_pinned(x.shape, x.dtype) for _ in "ab")
    source[...] = x
    text = "call(source, out=out, device='cuda')"
    return statement(text, lambda: out, call=relu, source=source, out=out)


def torch_pinned(x: np.ndarray) -> Contender:
    """PyTorch: pinned tensors in and out, one copy each."""
    import torch

    source, out = pinned_like(x), pinned_like(np.zeros_like(x))

    def call() -> None:
        out.copy_(torch.relu(source.to("cuda", non_blocking=True)), non_blocking=True)
        torch.cuda.synchronize()

    return statement("call()", out.numpy, call=call)


def torch_chunks(x: np.ndarray) -> Contender:
    """PyTorch's fastest way: pinned tensors in chunks of 8 MiB on three streams."""
    import torch

    source, out, n = pinned_like(x), pinned_like(np.zeros_like(x)), 2 * MI
    streams = [torch.cuda.Stream() for _ in range(3)]

    def call() -> None:
        for k, (part, to) in enumerate(zip(source.split(n), out.split(n), strict=True)):
            with torch.cuda.stream(streams[k % 3]):
                to.copy_(torch.relu(part.to("cuda", non_blocking=True)), non_blocking=True)
        torch.cuda.synchronize()

    return statement("call()", out.numpy, call=call)


def bus(x: np.ndarray) -> Contender:
    """The limit of the bus: pinned copies both ways at once."""
    import torch

    source, out = pinned_like(x), pinned_like(x)
    there, back = (torch.empty(x.size, device="cuda") for _ in range(2))
    streams = [torch.cuda.Stream() for _ in range(2)]

    def call() -> None:
        with torch.cuda.stream(streams[0]):
            there.copy_(source, non_blocking=True)
        with torch.cuda.stream(streams[1]):
            out.copy_(back, non_blocking=True)
        torch.cuda.synchronize()

    return statement("call()", call=call)


def memory(x: np.ndarray) -> Contender:
    """The limit of the host's memory: one copy of the array by a thread for each core."""
    out, n = np.zeros_like(x), os.cpu_count() or 1
    pool, edges = ThreadPoolExecutor(n), np.linspace(0, x.size, n + 1).astype(int)
    parts = [(out[a:b], x[a:b]) for a, b in pairwise(edges)]

    def call() -> None:
        list(pool.map(lambda pair: np.copyto(*pair), parts))

    return statement("call()", call=call)


LIMITS = {"limit: bus, both ways": bus, "limit: memory, one copy": memory}
USUAL = {"torch": torch_relu, "cupy": cupy_relu}
AT_BEST = {"torch, pinned, in chunks": torch_chunks}


def compare_relu(
    title: str, x: np.ndarray, driver: Driver, prepares: dict[str, Any], wanted: list[Target]
) -> Comparison:
    """Return a comparison of ways through the GPU, all of which compute relu."""
    comparison = Comparison(
        title, "ms", next(iter(prepares)), wanted, np.maximum(x, 0), 2 * x.nbytes, number=1
    )
    comparison.synchronize = driver.synchronize
    comparison.settings["GB/s"] = "bytes to the device and back, over the time of both"
    for name, prepare in (prepares | LIMITS).items():
        comparison.add(name, lambda prepare=prepare: prepare(x))
    return comparison


def limits(x: np.ndarray, name: str, *limits_ms: float) -> list[Target]:
    """Return targets in milliseconds, for the complete size."""
    whole = x.size == 128 * MI
    return [Target(name, f"<= {ms} ms", extra=ms) for ms in limits_ms if whole]


def round_trip(x: np.ndarray, driver: Driver) -> Comparison:
    """Return the comparison of relu through the GPU."""
    title = f"relu through the GPU, NumPy to NumPy, {x.size // MI} Mi floats"
    wanted = [Target("cuplug", "below torch and cupy", ("torch", "cupy"))]
    wanted += limits(x, "cuplug", 20.0, 11.5)
    return compare_relu(title, x, driver, {"cuplug": cuplug_relu} | USUAL | AT_BEST, wanted)


def kept_results(x: np.ndarray, driver: Driver) -> Comparison:
    """Return the comparison with results that are kept."""
    title = f"kept results: relu of {x.size // MI} Mi floats through the GPU"
    wanted = [Target("cuplug", "below cupy", ("cupy",)), *limits(x, "cuplug", 20.0)]
    prepares = {"cuplug": cuplug_kept, "cupy": cupy_relu}
    return compare_relu(title, x, driver, prepares, wanted)


def pinned_arrays(x: np.ndarray, driver: Driver) -> Comparison:
    """Return the comparison of pinned arrays in and out."""
    title = f"pinned arrays: relu of {x.size // MI} Mi floats through the GPU"
    names = ("torch, pinned", *AT_BEST)
    wanted = [Target("cuplug", "no slower than torch", names), *limits(x, "cuplug", 11.0)]
    prepares = {"cuplug": cuplug_pinned, "torch, pinned": torch_pinned} | AT_BEST
    return compare_relu(title, x, driver, prepares, wanted)


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
    run.require_memory(GIB + (10 + MAX_KEPT) * 4 * n)
    x = np.random.default_rng(3).standard_normal(n, np.float32)
    run.min_rounds = 3 if run.quick else 15
    compared = (round_trip, kept_results, pinned_arrays, copies)
    run.measure_all(partial(compare, x, driver) for compare in compared)


if __name__ == "__main__":
    run_module(measure)
