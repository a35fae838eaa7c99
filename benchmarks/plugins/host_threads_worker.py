# SPDX-License-Identifier: Apache-2.0
"""Times host operators on request, with the number of threads in OMP_NUM_THREADS.

    host_threads_worker.py N_FLOATS

For a line `OPERATOR LIBRARY NUMBER` on standard input, it prints the nanoseconds of NUMBER calls,
or `error` and a message. With a fourth word, `tail`, each call counts as the 90th percentile. Every
result is compared with NumPy's before the first timing.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial

import numpy as np
from host_ops import SLOPE, numpy_leaky_relu
from measurement import explain

N = int(sys.argv[1])
RANDOM = np.random.default_rng(7)
X = RANDOM.standard_normal(N, np.float32)
WHOLE = RANDOM.integers(-8, 8, 1 << 20).astype(np.float32)  # sums are exact in any order
INDEX = RANDOM.integers(0, N, max(N // 64, 1 << 16), np.int32)
Z = {"relu": np.empty_like(X), "leaky_relu": np.empty_like(X)}
Z["gather"] = np.empty(INDEX.size, np.float32)


def numpy_calls() -> dict[str, Callable[[], object]]:
    """NumPy, on one thread whatever is set."""
    leaky_relu = numpy_leaky_relu()
    return {
        "relu": lambda: np.maximum(X, 0, out=Z["relu"]),
        "leaky_relu": lambda: leaky_relu(X),
        "gather": lambda: np.take(X, INDEX, out=Z["gather"], mode="wrap"),
        "sum": lambda: WHOLE.sum(),
    }


def cuplug_calls() -> dict[str, Callable[[], object]]:
    """cuplug's stock operators."""
    import cuplug

    on = {name: partial(cuplug.find(name), device="cpu", out=z) for name, z in Z.items()}
    total = cuplug.reduction("total(x: T) -> T", reduce="a + b")
    return {
        "relu": lambda: on["relu"](X),
        "leaky_relu": lambda: on["leaky_relu"](X, SLOPE),
        "gather": lambda: on["gather"](X, INDEX),
        "sum": lambda: total(WHOLE),
    }


def expression_calls() -> dict[str, Callable[[], object]]:
    """cuplug's operators from an expression."""
    import cuplug

    leaky_relu = cuplug.elementwise("leaky_relu(x: T, slope: T) -> T", "x > 0 ? x : slope * x")
    return {"leaky_relu": lambda: leaky_relu(X, SLOPE, device="cpu", out=Z["leaky_relu"])}


def torch_calls() -> dict[str, Callable[[], object]]:
    """PyTorch on the memory of the NumPy arrays."""
    import torch

    x, index, whole = (torch.from_numpy(array) for array in (X, INDEX, WHOLE))
    z = {name: torch.from_numpy(array) for name, array in Z.items()}
    leaky_relu = torch._C._nn.leaky_relu
    return {
        "relu": lambda: torch.clamp_min(x, 0.0, out=z["relu"]),
        "leaky_relu": lambda: leaky_relu(x, SLOPE, out=z["leaky_relu"]),
        "gather": lambda: torch.index_select(x, 0, index, out=z["gather"]),
        "sum": lambda: torch.sum(whole),
    }


LIBRARIES = {"numpy": numpy_calls, "cuplug": cuplug_calls, "torch": torch_calls}
LIBRARIES["expression"] = expression_calls
EXPECTED = {
    "relu": lambda: np.maximum(X, 0),
    "leaky_relu": lambda: numpy_leaky_relu()(X),
    "gather": lambda: X[INDEX],
    "sum": lambda: np.asarray(WHOLE.sum()),
}


@cache
def checked(operator: str, library: str) -> Callable[[], object]:
    """Return a call whose result has been compared."""
    call = LIBRARIES[library]()[operator]
    if not np.array_equal(np.asarray(call()), EXPECTED[operator]()):
        raise ArithmeticError("its result differs from the expected one")
    return call


def each_ns(call: Callable[[], object], number: int) -> np.ndarray:
    """Return the nanoseconds of each call."""
    clock, times = time.perf_counter_ns, np.empty(number + 1)
    for k in range(number):
        times[k] = clock()
        call()
    times[number] = clock()
    return np.diff(times)


def answer(operator: str, library: str, number: str, *tail: str) -> str:
    """Time calls; return the line to print."""
    try:
        call = checked(operator, library)
        times = each_ns(call, int(number))
        return str(int(np.percentile(times, 90) * times.size if tail else times.sum()))
    except Exception as error:
        return f"error {explain(error)}"


if __name__ == "__main__":
    for name in ("cuplug", "torch"):  # at the same time in all workers, before the first request
        with suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        print(answer(*line.split()), flush=True)
