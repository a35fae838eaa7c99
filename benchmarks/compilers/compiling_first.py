# SPDX-License-Identifier: Apache-2.0
"""Print the microseconds of the first compilation in this process: compiling_first.py KIND CACHE

Imports, arrays and the CUDA context come before the clock starts. It stops when the kernel is
loaded, or when the first result of the expression is available. CACHE is the directory in which
cuplug and CuPy cache compiled code; "-": a new one.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

N = 16
X = np.arange(N, dtype=np.float32) / 8
EXPECTED = 2 * X  # exact, compared with the terms that are added

Result = Callable[[], np.ndarray]  # computes EXPECTED
First = Callable[[int], Result]  # runs the timed code for source number n


def kernel_text(n: int) -> str:
    """Return CUDA source that differs for each n."""
    return f"""extern "C" __global__ void scale(float *x, float factor, int count) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) x[i] = factor * x[i] + {n};
}}
"""


def cuplug_code(architecture: str = "90") -> First:
    """cuplug, only from source to machine code, which needs no GPU."""
    import cuplug

    def first(n: int) -> Result:
        cuplug.compile(kernel_text(n), architecture=architecture)["scale"]
        return lambda: EXPECTED

    return first


def cuplug_kernel() -> First:
    """cuplug, from source to a loaded kernel."""
    import cuplug

    cuplug.asarray(X, device="cuda")
    cuplug.synchronize()

    def first(n: int) -> Result:
        kernel = cuplug.compile(kernel_text(n))["scale"]
        kernel.function()

        def result() -> np.ndarray:
            y = cuplug.asarray(X, device="cuda")
            kernel[1, N](y, 2, N)
            return y.numpy() - np.float32(n)

        return result

    return first


def cupy_kernel() -> First:
    """CuPy, from source to a loaded kernel."""
    import cupy

    cupy.asarray(X)
    cupy.cuda.Device().synchronize()

    def first(n: int) -> Result:
        kernel = cupy.RawModule(code=kernel_text(n)).get_function("scale")

        def result() -> np.ndarray:
            y = cupy.asarray(X)
            kernel((1,), (N,), (y, np.float32(2), np.int32(N)))
            return y.get() - np.float32(n)

        return result

    return first


def cuda_core_kernel() -> First:
    """cuda.core, from source to a loaded kernel."""
    import cupy
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device(0)
    device.set_current()
    options = ProgramOptions(arch=f"sm_{device.arch}")

    def first(n: int) -> Result:
        compiled = Program(kernel_text(n), code_type="c++", options=options).compile("cubin")
        kernel = compiled.get_kernel("scale")

        def result() -> np.ndarray:
            y = cupy.asarray(X)
            arguments = (y.data.ptr, np.float32(2), np.int32(N))
            launch(device.default_stream, LaunchConfig(grid=1, block=N), kernel, *arguments)
            return y.get() - np.float32(n)

        return result

    return first


def cuplug_expression(device: str = "cuda") -> First:
    """cuplug, an operator from an expression and its first call."""
    import cuplug

    x = cuplug.asarray(X, device="cuda") if device == "cuda" else X
    if device == "cuda":
        cuplug.synchronize()

    def first(n: int) -> Result:
        f = cuplug.elementwise("f(x: T, slope: T) -> T", f"slope * x + {n}")
        y = f(x, 2)
        if device == "cuda":
            cuplug.synchronize()
        return lambda: np.asarray(y.numpy() if device == "cuda" else y) - np.float32(n)

    return first


def cupy_expression() -> First:
    """CuPy, an ElementwiseKernel and its first call."""
    import cupy

    x = cupy.asarray(X)
    cupy.cuda.Device().synchronize()

    def first(n: int) -> Result:
        f = cupy.ElementwiseKernel("T x, T slope", "T y", f"y = slope * x + {n}", "f")
        y = f(x, np.float32(2))
        cupy.cuda.Device().synchronize()
        return lambda: y.get() - np.float32(n)

    return first


KINDS: dict[str, Callable[[], First]] = {
    "cuplug-code": cuplug_code,
    "cuplug-kernel": cuplug_kernel,
    "cupy-kernel": cupy_kernel,
    "cuplug-expression": cuplug_expression,
    "cuplug-host-expression": lambda: cuplug_expression("cpu"),
    "cupy-expression": cupy_expression,
}


def main(kind: str, cache: str) -> None:
    """Time the first compilation and check the kernel's results."""
    os.environ["CUPLUG_CACHE_DIR"] = os.environ["CUPY_CACHE_DIR"] = cache
    first = KINDS[kind]()
    start_ns = time.perf_counter_ns()
    result = first(1)
    elapsed_ns = time.perf_counter_ns() - start_ns
    if not np.array_equal(result(), EXPECTED):
        sys.exit("it computed something else")
    print(elapsed_ns / 1e3)


if __name__ == "__main__":
    if sys.argv[2] == "-":
        with tempfile.TemporaryDirectory() as directory:
            main(sys.argv[1], directory)
    else:
        main(sys.argv[1], sys.argv[2])
