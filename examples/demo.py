# SPDX-License-Identifier: Apache-2.0
"""Gather 1 Mi random elements of 128 Mi through a plugin: on the CPU, and on the GPU if any."""

import re
import sys
import time
from pathlib import Path

import cuplug
import numpy as np

N_SOURCE = 128 * 1024**2
N_INDEX = 1024**2
NEEDED_BYTES = 768 * 1024**2  # the source, indices, results and libraries


def require_memory() -> None:
    """Exit with a message if the arrays would not fit."""
    found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    free = int(found.group(1)) * 1024
    if free < NEEDED_BYTES:
        sys.exit(f"The demo needs {NEEDED_BYTES >> 20} MiB of memory, {free >> 20} MiB are free.")


def best_ms(function, repeats: int = 5) -> float:
    """Return the shortest time of a few calls, in milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def report(result: np.ndarray, expected: np.ndarray, ours, numpy_ms: float) -> None:
    """Print the result of a call, its device and its time."""
    call = cuplug.last_call()
    print(f"  shape      {result.shape}")
    print(f"  correct    {int((result == expected).sum())} of {expected.size}")
    print(f"  ran on     {call.device}" + (", copied there and back" if call.offloaded else ""))
    print(f"  time       {best_ms(ours):.2f} ms (NumPy's source[index]: {numpy_ms:.2f} ms)")


def say_next(command: str, python: str) -> None:
    """Print the next commands, with the names of the command and of Python used here."""
    imports = "from numpy import array; from cuplug.ops import gather"
    code = f"{imports}; print(gather(array([0.5, 1.5]), array([1, 0])))"
    print("Try next:")
    print(f"  {command} list")
    print(f"  {command} new half && {command} build half")
    print(f"  {python} -c '{code}'")
    print("`make` also builds the other stock plugins, kernels, expressions and adoption.")


def run() -> None:
    """Run gather and report, on the host and on the GPU."""
    from cuplug.ops import gather

    require_memory()
    random = np.random.default_rng(0)
    source = random.random(N_SOURCE, dtype=np.float32)
    index = random.integers(0, N_SOURCE, N_INDEX, dtype=np.int32)
    expected = source[index]
    numpy_ms = best_ms(lambda: source[index])
    print(f"gather: {N_INDEX} of {N_SOURCE} float32 values, plugin {gather.path}")

    print("NumPy arrays on the host:")
    report(gather(source, index), expected, lambda: gather(source, index), numpy_ms)
    gpus = cuplug.devices()
    if not gpus:
        print("No GPU is used: there is none that can be; cuplug doctor explains why.")
        return
    if "cuda" not in gather.device_types:
        print("No GPU is used: the plugin was compiled without CUDA code, as there was no nvcc.")
        return
    print(f"NumPy arrays through the GPU ({gpus[0].name}):")
    staged = gather(source, index, device="cuda")
    report(staged, expected, lambda: gather(source, index, device="cuda"), numpy_ms)

    print("Arrays on the GPU:")
    on_gpu = cuplug.asarray(source, device="cuda"), cuplug.asarray(index, device="cuda")

    def on_gpu_alone() -> None:
        gather(*on_gpu)
        cuplug.synchronize()

    report(gather(*on_gpu).numpy(), expected, on_gpu_alone, numpy_ms)


if __name__ == "__main__":
    run()
    if len(sys.argv) == 3:
        say_next(*sys.argv[1:])
