# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs of cuplug calls: host time per kernel, captured by PyTorch and by CuPy."""

from __future__ import annotations

import ctypes
import timeit
from collections.abc import Callable

import native
import numpy as np
from calls_cuda import SIZE, X, Y, cupy_arrays, tensors
from driver import Driver
from measurement import Comparison, Contender, Target
from module import Run, run_module

N_KERNELS = 100
REPLAYS = 10
FLOOR = "launches from C, captured"

Add = Callable[[ctypes.CDLL, ctypes.c_void_p], None]  # adds the kernels to a stream's capture


def replayed(replay: Callable[[], object], result: Callable[[], np.ndarray]) -> Contender:
    """Return a contender whose unit of work is one kernel of a replayed graph."""
    timer = timeit.Timer(replay)

    def time_ns(number: int) -> float:
        n_replays = max(number // N_KERNELS, 1)
        return timer.timeit(n_replays) * 1e9 * number / (n_replays * N_KERNELS)

    return Contender(time_ns, result)


def checked(code: int) -> None:
    """Raise the CUDA error that a function of graph_floor.cu has returned."""
    if code:
        raise RuntimeError(f"capture: CUDA error {code}")


def captured_from_c(add: Add) -> Callable[[int], float]:
    """Return the nanoseconds per kernel of a graph that C begins, ends and replays."""
    library, pointer = ctypes.CDLL(str(native.shared_library("graph_floor.cu"))), ctypes.c_void_p
    library.graph_replay_ns.argtypes = [ctypes.c_int, pointer, pointer]
    library.graph_replay_ns.restype = ctypes.c_int64
    graph, stream = pointer(), pointer()
    checked(library.graph_begin(ctypes.byref(stream)))
    add(library, stream)
    checked(library.graph_end(stream, ctypes.byref(graph)))

    def time_ns(number: int) -> float:
        n_replays = max(number // N_KERNELS, 1)
        elapsed_ns = library.graph_replay_ns(n_replays, graph, stream)
        if elapsed_ns < 0:
            raise RuntimeError(f"replay: CUDA error {-elapsed_ns}")
        return elapsed_ns * number / (n_replays * N_KERNELS)

    return time_ns


def launches_from_c(driver: Driver) -> Contender:
    """The floor: a graph of launches from C."""
    x, y, z = (driver.upload(array) for array in (X, Y, np.full_like(X, np.nan)))

    def add(library: ctypes.CDLL, stream: ctypes.c_void_p) -> None:
        pointer = ctypes.c_void_p
        library.graph_add.argtypes = [ctypes.c_int, *[pointer] * 3, ctypes.c_int64, pointer]
        library.graph_add.restype = None
        library.graph_add(N_KERNELS, x, y, z, SIZE, stream)

    return Contender(captured_from_c(add), lambda: driver.download(z, X))


def calls_from_c() -> Contender:
    """cuplug's calls on its own arrays, in the same graph as the floor."""
    import cuplug

    call = cuplug_add3()
    x, y, z = (cuplug.asarray(array) for array in (X, Y, np.full_like(X, np.nan)))

    def add(_: ctypes.CDLL, stream: ctypes.c_void_p) -> None:
        for _ in range(N_KERNELS):
            call(x, y, out=z, stream=stream.value)

    return Contender(captured_from_c(add), z.numpy)


def cuplug_add3() -> Callable[..., object]:
    """cuplug's operator, with all checks at capture."""
    import cuplug

    native.plugin("add3")
    return cuplug.find("add3.add3")


def captured_by_torch(find: Callable[[], Callable[..., object]]) -> Contender:
    """PyTorch's capture of calls on its tensors."""
    import torch

    call, t = find(), tensors()
    call(t["x"], t["y"], out=t["z"])
    torch.cuda.synchronize()
    t["z"].fill_(float("nan"))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(N_KERNELS):
            call(t["x"], t["y"], out=t["z"])
    return replayed(graph.replay, lambda: t["z"].cpu().numpy())


def captured_by_cupy(find: Callable[[], Callable[..., object]]) -> Contender:
    """CuPy's capture of calls on its arrays."""
    import cupy

    call, a = find(), cupy_arrays()
    call(a["x"], a["y"], out=a["z"])
    a["z"].fill(np.nan)
    cupy.cuda.runtime.deviceSynchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        try:
            for _ in range(N_KERNELS):
                call(a["x"], a["y"], out=a["z"])
        finally:
            graph = stream.end_capture()
    return replayed(lambda: graph.launch(stream), lambda: a["z"].get())


def torch_add() -> Callable[..., object]:
    """PyTorch's own addition."""
    import torch

    return torch.add


def cupy_add() -> Callable[..., object]:
    """CuPy's own addition."""
    import cupy

    return cupy.add


def measure(run: Run) -> None:
    """CUDA graphs of cuplug calls: host time per kernel, captured by PyTorch and by CuPy."""
    driver = Driver()
    run.min_rounds = 25
    captured = "cuplug, captured from C"
    ours, torch_peer = "cuplug, captured by torch", "torch.add(out=), captured by torch"
    wanted = [
        Target(captured, "<= 1.10 x the graph from C", (FLOOR,), 1.10),
        Target(ours, "<= 1.05 x torch's own", (torch_peer,), 1.05),
    ]
    title = f"replay of a graph of {N_KERNELS} kernels, host time per kernel"
    comparison = Comparison(title, "us", FLOOR, wanted, X + Y, number=N_KERNELS * REPLAYS)
    comparison.synchronize = driver.synchronize
    comparison.settings["replays between synchronisations"] = REPLAYS
    comparison.add(FLOOR, lambda: launches_from_c(driver))
    comparison.add(captured, calls_from_c)
    comparison.add(ours, lambda: captured_by_torch(cuplug_add3))
    comparison.add(torch_peer, lambda: captured_by_torch(torch_add))
    comparison.add("cuplug, captured by CuPy", lambda: captured_by_cupy(cuplug_add3))
    comparison.add("cupy.add(out=), captured by CuPy", lambda: captured_by_cupy(cupy_add))
    run.measure(comparison, 0)


if __name__ == "__main__":
    run_module(measure)
