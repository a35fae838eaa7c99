# SPDX-License-Identifier: Apache-2.0
"""The fastest block size of a kernel, measured once and cached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

from cuplug._engine.cuda.events import Event
from cuplug._engine.cuda.placement import Device
from cuplug._source.compilers import cache, shipped
from cuplug._source.kernels.function import Function
from cuplug._source.kernels.launch import Launch
from cuplug.errors import CudaError

N_ROUNDS = 5  # the fastest counts: others were disturbed
N_LAUNCHES = 10  # per round


def tune(
    kernel: Function,
    image: bytes,
    device: int,
    threads: int | Callable[[int], Any],
    arguments: Sequence[Any],
    blocks: Sequence[int],
    shared: int,
) -> Launch:
    """Implement `Kernel.tune`."""
    sizes = sorted({index(block) for block in blocks})
    if not sizes:
        raise ValueError(
            f"{kernel.name}: blocks: got none, expected at least one number of threads"
        )

    def launch(block: int) -> Launch:
        grid = threads(block) if callable(threads) else -(-index(threads) // block)
        return Launch(kernel, (grid, block, shared))

    what = "a function" if callable(threads) else str(threads)
    parts = [kernel.symbol, Device(device).name, what, " ".join(map(str, sizes)), str(shared)]
    key = cache.key("tuned", image, *parts)
    request = shipped.request("tuned", image, *parts)
    known = shipped.read(request, "tuned") or cache.get(key, "tuned")
    best = int(known) if known and known.isdigit() and int(known) in sizes else 0
    if not best:
        best = _measure(kernel, {block: launch(block) for block in sizes}, arguments, device)
        cache.put(key, "tuned", str(best).encode())
    shipped.add(request, "tuned", str(best).encode())
    return launch(best)


def _measure(
    kernel: Function, launches: dict[int, Launch], arguments: Sequence[Any], device: int
) -> int:
    """Return the fastest block size.

    Sizes that the kernel or the GPU does not allow are skipped.
    """
    times, refusal = {}, None
    for block, launch in launches.items():
        try:
            launch(*arguments)
        except (CudaError, ValueError) as error:
            refusal = error
        else:
            times[block] = min(_time(launch, arguments, device) for _ in range(N_ROUNDS))
    if not times:
        raise ValueError(f"{kernel.name}: tune: no block of {list(launches)} runs") from refusal
    return min(times, key=lambda block: times[block])


def _time(launch: Launch, arguments: Sequence[Any], device: int) -> float:
    start, end = Event(device), Event(device)
    start.record()
    for _ in range(N_LAUNCHES):
        launch(*arguments)
    end.record()
    end.synchronize()
    return start.elapsed_time(end)
