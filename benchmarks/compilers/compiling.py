# SPDX-License-Identifier: Apache-2.0
"""Compilation at run time, cold and from disk, and launches of the compiled kernels."""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import calls_cuda
import native
import numpy as np
from calls_cuda import FLOOR, KERNEL, LAUNCHES, SIZE, X, Y
from compiling_first import (
    EXPECTED,
    First,
    cuda_core_kernel,
    cuplug_code,
    cuplug_expression,
    cuplug_kernel,
    cupy_expression,
    cupy_kernel,
    kernel_text,
)
from driver import Driver
from first_use import fresh_process
from measurement import Comparison, Contender, Skip, Target, statement
from module import Run, run_module

SCRIPT = str(native.find("compiling_first.py"))
NVRTC = "NVRTC alone"
CUPY_COLD, CUPY_WARM = "CuPy, cold", "CuPy, from disk"
Sources = itertools.count(2)


def in_turn(first: First) -> Contender:
    """Return a contender that compiles a different source each time."""
    results: list[Callable[[], np.ndarray]] = []

    def time_ns(number: int) -> float:
        texts = [next(Sources) for _ in range(number)]
        start_ns = time.perf_counter_ns()
        results[:] = [first(n) for n in texts]
        return time.perf_counter_ns() - start_ns

    return Contender(time_ns, lambda: results[0]())


def nvrtc_alone(architecture: str) -> First:
    """Compile with the required NVRTC functions, through ctypes."""
    from cuplug._source.compilers import nvrtc

    library = ctypes.CDLL(nvrtc.find().path)
    options = [f"--gpu-architecture=sm_{architecture}".encode(), b"-lineinfo"]
    given = (ctypes.c_char_p * len(options))(*options)

    def call(name: str, *args: object) -> None:
        if code := getattr(library, name)(*args):
            raise RuntimeError(f"{name}: nvrtcResult {code}")

    def first(n: int) -> Callable[[], np.ndarray]:
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        text = kernel_text(n).encode()
        call("nvrtcCreateProgram", ctypes.byref(program), text, b"scale.cu", 0, None, None)
        call("nvrtcCompileProgram", program, len(options), given)
        call("nvrtcGetCUBINSize", program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        call("nvrtcGetCUBIN", program, code)
        call("nvrtcDestroyProgram", ctypes.byref(program))
        return lambda: EXPECTED

    return first


def code(architecture: str) -> Comparison:
    """Return the comparison of cuplug with the compiler that it calls."""
    wanted = [Target("cuplug", "<= 1.15 x NVRTC alone", (NVRTC,), 1.15)]
    title = "a new small kernel, from source to machine code"
    comparison = Comparison(title, "ms", NVRTC, wanted, EXPECTED, number=1)
    comparison.settings["cuplug"] = "with the parameters' types, kept on disk too"
    comparison.add(NVRTC, lambda: in_turn(nvrtc_alone(architecture)))
    comparison.add("cuplug", lambda: in_turn(cuplug_code(architecture)))
    return comparison


def kernels() -> Comparison:
    """Return the comparison of new kernels, each library loaded and warm."""
    peers = ("CuPy RawModule", "cuda.core Program")
    wanted = [Target("cuplug", f"<= {peer}", (peer,)) for peer in peers]
    title = "a new small kernel, from source until it is loaded"
    comparison = Comparison(title, "ms", peers[0], wanted, EXPECTED, number=1)
    comparison.add("cuplug", lambda: in_turn(cuplug_kernel()))
    for name, prepare in zip(peers, (cupy_kernel, cuda_core_kernel), strict=True):
        comparison.add(name, lambda prepare=prepare: in_turn(prepare()))
    return comparison


def expressions() -> Comparison:
    """Return the comparison of new expressions: creation and call, until the result exists."""
    ours, peer = "cuplug, GPU", "cupy.ElementwiseKernel"
    wanted = [Target(ours, "<= CuPy", (peer,))]
    title = "a new element-wise expression and its first call"
    comparison = Comparison(title, "ms", peer, wanted, EXPECTED, number=1)
    comparison.add(ours, lambda: in_turn(cuplug_expression()))
    comparison.add(peer, lambda: in_turn(cupy_expression()))
    comparison.add("cuplug, CPU", lambda: in_turn(cuplug_expression("cpu")))
    return comparison


def fresh(kind: str, directory: str) -> Contender:
    """Return a contender that compiles in a fresh process. "-" as the directory: a new cache."""
    return fresh_process(sys.executable, SCRIPT, kind, directory)


def first_kernels(directory: str, use_gpu: bool) -> Comparison:
    """Return the comparison of the first kernel of a process, cold and from disk."""
    kind = "cuplug-kernel" if use_gpu else "cuplug-code"
    cold, warm = "cuplug, cold", "cuplug, from disk"
    wanted = [Target(cold, "<= CuPy", (CUPY_COLD,)), Target(warm, "< 5 ms", extra=5.0)]
    title = "first small kernel of a process, from source " + (
        "until it is loaded" if use_gpu else "to machine code"
    )
    comparison = Comparison(title, "ms", CUPY_COLD, wanted, number=1)
    comparison.settings["before"] = "NumPy, the library and the CUDA context; what it imports "
    comparison.settings["before"] += "later counts"
    comparison.add(cold, lambda: fresh(kind, "-"))
    comparison.add(warm, lambda: fresh(kind, directory))
    comparison.add(CUPY_COLD, lambda: fresh("cupy-kernel", "-"))
    comparison.add(CUPY_WARM, lambda: fresh("cupy-kernel", directory))
    return comparison


def first_expressions(directory: str) -> Comparison:
    """Return the comparison of the first expression of a process, from disk."""
    ours = "cuplug, GPU, from disk"
    wanted = [Target(ours, "<= CuPy", (CUPY_WARM,))]
    title = "first element-wise expression of a process and its call"
    comparison = Comparison(title, "ms", CUPY_WARM, wanted, number=1)
    comparison.add(ours, lambda: fresh("cuplug-expression", directory))
    comparison.add(CUPY_WARM, lambda: fresh("cupy-expression", directory))
    comparison.add("cuplug, CPU, from disk", lambda: fresh("cuplug-host-expression", directory))
    return comparison


def cuplug_kernel_add() -> Any:
    """Return the kernel that all contenders launch, compiled by cuplug."""
    import cuplug

    return cuplug.compile(KERNEL)["add_kernel"]


def cuplug_own(text: str) -> Contender:
    """cuplug's kernel with its own arrays."""
    import cuplug

    z = np.full_like(X, np.nan)
    x, y, z = (cuplug.asarray(array, device="cuda") for array in (X, Y, z))
    kernel = cuplug_kernel_add()
    names = {"kernel": kernel, "launch": kernel[1, 32], "x": x, "y": y, "z": z}
    return statement(text, lambda: z.numpy(), n=np.int64(SIZE), **names)


def cuplug_torch() -> Contender:
    """cuplug's kept launch with PyTorch tensors, on PyTorch's current stream."""
    return calls_cuda.torch_statement(f"call(x, y, z, {SIZE})", cuplug_kernel_add()[1, 32])


def cuplug_cupy() -> Contender:
    """cuplug's kept launch with CuPy arrays, on CuPy's current stream."""
    a = calls_cuda.cupy_arrays()
    text = f"call(x, y, z, {SIZE})"
    return statement(text, lambda: a["z"].get(), call=cuplug_kernel_add()[1, 32], **a)


def launches(driver: Driver) -> Comparison:
    """Return the comparison of launches of one kernel, compiled by each library."""
    kept = ("cuplug, kept launch, own arrays", "cuplug, kept launch, torch tensors")
    peers = ("CuPy RawKernel", "cuda.core launch")
    wanted = [Target(name, "<= C + 0.5 us", (FLOOR,), extra=0.5) for name in kept]
    wanted += [Target(name, "below all peers", peers) for name in kept]
    comparison = Comparison(
        f"launch of a compiled kernel, 3 GPU arrays of {SIZE} floats",
        "us",
        FLOOR,
        targets=wanted,
        expected=X + Y,
        number=LAUNCHES,
        synchronize=driver.synchronize,
        settings={"launches between synchronisations": LAUNCHES, "stream": "legacy default"},
    )
    own = f"launch(x, y, z, {SIZE})"
    comparison.add(FLOOR, lambda: calls_cuda.launch_from_c(driver))
    comparison.add(kept[0], lambda: cuplug_own(own))
    comparison.add(kept[1], cuplug_torch)
    comparison.add("cuplug, kept launch, CuPy arrays", cuplug_cupy)
    comparison.add("cuplug, NumPy scalar", lambda: cuplug_own("launch(x, y, z, n)"))
    brackets = f"kernel[1, 32](x, y, z, {SIZE})"
    comparison.add("cuplug, kernel[grid, block](...)", lambda: cuplug_own(brackets))
    comparison.add(peers[0], calls_cuda.cupy_raw_kernel)
    comparison.add(peers[1], calls_cuda.cuda_core_launch)
    return comparison


def measure_all(run: Run, directory: str) -> None:
    """Measure what this machine allows. The caches are in the directory."""
    try:
        driver: Driver | None = Driver()
    except Skip:
        driver = None
    if driver:
        run.measure(launches(driver), 5)
        run.measure(kernels(), 4)
    run.measure(code(architecture(driver)), 3)
    run.measure(expressions(), 2)
    run.min_rounds = 3  # a process with CuPy takes one or two seconds
    run.measure(first_kernels(directory, driver is not None), 1)
    run.measure(first_expressions(directory), 0)


def architecture(driver: Driver | None) -> str:
    """Return the architecture of GPU 0, or the default without a GPU."""
    import cuplug

    return str(cuplug.devices()[0].compute_capability) if driver else "90"


def measure(run: Run) -> None:
    """Compilation at run time, cold and from disk, and launches of the compiled kernels."""
    with tempfile.TemporaryDirectory() as directory:
        os.environ["CUPLUG_CACHE_DIR"] = os.environ["CUPY_CACHE_DIR"] = directory
        measure_all(run, str(Path(directory) / "warm"))


if __name__ == "__main__":
    run_module(measure)
