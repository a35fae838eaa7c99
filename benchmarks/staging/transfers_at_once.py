# SPDX-License-Identifier: Apache-2.0
"""Arrays of many threads through one GPU, several GPUs at once, one array over all of them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from driver import Driver
from measurement import Comparison, Contender, Target, statement
from module import GIB, Run, run_module

MI = 1 << 20
N_THREADS = 8
Call = Callable[[], Any]


def all_at_once(calls: list[Call]) -> Call:
    """Return a function that makes all calls, each on its own thread."""
    pool = ThreadPoolExecutor(len(calls))
    return lambda: list(pool.map(lambda call: call(), calls))


def relu_calls(source: np.ndarray, outs: list[np.ndarray], devices: list[str]) -> list[Call]:
    """Return a call of relu for each output, on the corresponding device."""
    import cuplug

    relu = cuplug.find("relu")
    return [
        lambda out=out, device=device: relu(source, out=out, device=device)
        for out, device in zip(outs, devices, strict=True)
    ]


def timed(call: Call, result: np.ndarray) -> Contender:
    """Return a contender of one call, after which the result is available."""
    return statement("call()", lambda: result, call=call)


def in_threads(x: np.ndarray) -> Comparison:
    """Return the comparison of concurrent threads on one GPU with consecutive calls."""
    outs = [np.zeros_like(x) for _ in range(N_THREADS)]
    calls, after = relu_calls(x, outs, ["cuda"] * N_THREADS), "one after the other"
    wanted = [Target("8 threads", "<= one after the other", (after,))]
    title = f"{N_THREADS} x relu of {x.size // MI} Mi floats on one GPU"
    n_bytes = 2 * N_THREADS * x.nbytes
    comparison = Comparison(title, "ms", after, wanted, np.maximum(x, 0), n_bytes, number=1)
    comparison.add("8 threads", lambda: timed(all_at_once(calls), outs[-1]))
    comparison.add(after, lambda: timed(lambda: [call() for call in calls], outs[-1]))
    return comparison


def pinned_copy(x: np.ndarray) -> np.ndarray:
    """Return a pinned array with these values."""
    import cuplug

    result = cuplug.empty_pinned(x.shape, x.dtype)
    result[...] = x
    return result


def bus_of_all(x: np.ndarray, n: int) -> Contender:
    """The limit of the buses: pinned copies in both directions on all GPUs, a share each."""
    import torch

    there, back = ([torch.from_numpy(x).pin_memory() for _ in range(n)] for _ in range(2))
    on_gpu = [[torch.zeros(x.size, device=f"cuda:{k}") for _ in range(2)] for k in range(n)]
    streams = [[torch.cuda.Stream(device=k) for _ in range(2)] for k in range(n)]

    def call() -> None:
        for k in range(n):
            with torch.cuda.stream(streams[k][0]):
                on_gpu[k][0].copy_(there[k], non_blocking=True)
            with torch.cuda.stream(streams[k][1]):
                back[k].copy_(on_gpu[k][1], non_blocking=True)
        for k in range(n):
            torch.cuda.synchronize(k)

    return statement("call()", call=call)


def on_each_gpu(x: np.ndarray, n: int) -> Comparison:
    """Return the comparison of arrays on all GPUs at once, from pageable and from pinned memory."""
    wanted = []
    if n == 4 and x.size == 128 * MI:
        wanted += [
            Target("pageable", "<= 45 ms", extra=45.0),
            Target("pinned", "<= 32 ms", extra=32.0),
        ]
    title = f"relu of {x.size // MI} Mi floats on each of {n} GPUs at once"
    comparison = Comparison(
        title, "ms", "limit: buses", wanted, np.maximum(x, 0), 2 * n * x.nbytes, number=1
    )
    devices = [f"cuda:{k}" for k in range(n)]
    for name, made in (("pageable", np.copy), ("pinned", pinned_copy)):
        source, outs = made(x), [made(np.zeros_like(x)) for _ in range(n)]
        calls = relu_calls(source, outs, devices)
        comparison.add(name, lambda calls=calls, outs=outs: timed(all_at_once(calls), outs[-1]))
    comparison.add("limit: buses", lambda: bus_of_all(x, n))
    return comparison


def over_all_gpus(x: np.ndarray, n: int) -> Comparison:
    """Return the comparison of one array over all GPUs with the same array on one GPU."""
    wanted = [Target("pinned", "below one GPU", ("pinned, one GPU",))]
    if n == 4 and x.size == 128 * MI:
        wanted += [
            Target("pageable", "<= 11 ms", extra=11.0),
            Target("pinned", "<= 8 ms", extra=8.0),
        ]
    title = f"one array over {n} GPUs: relu of {x.size // MI} Mi floats"
    comparison = Comparison(
        title, "ms", "limit: buses", wanted, np.maximum(x, 0), 2 * x.nbytes, number=1
    )
    for name, made in (("pageable", np.copy), ("pinned", pinned_copy)):
        source, out = made(x), made(np.zeros_like(x))
        for place, device in (("", "cuda:*"), (", one GPU", "cuda:0")):
            (call,) = relu_calls(source, [out], [device])
            comparison.add(name + place, lambda call=call, out=out: timed(call, out))
    comparison.add("limit: buses", lambda: bus_of_all(x[: x.size // n], n))
    return comparison


def measure(run: Run) -> None:
    """Arrays of many threads through one GPU, several GPUs at once, one array over all of them."""
    driver = Driver()
    import cuplug

    n_gpus, n = len(cuplug.devices()), 16 * MI if run.quick else 128 * MI
    run.require_memory(GIB + (N_THREADS + 6 * n_gpus) * 4 * n)
    x = np.random.default_rng(3).standard_normal(n, np.float32)
    run.min_rounds = 3 if run.quick else 15
    prepares: list[Callable[[], Comparison]] = [lambda: in_threads(x)]
    if n_gpus > 1:
        prepares += [lambda: on_each_gpu(x, n_gpus), lambda: over_all_gpus(x, n_gpus)]

    def synchronized(prepare: Callable[[], Comparison]) -> Comparison:
        return replace(prepare(), synchronize=driver.synchronize)

    run.measure_all(partial(synchronized, prepare) for prepare in prepares)


if __name__ == "__main__":
    run_module(measure)
