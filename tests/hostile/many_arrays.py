# SPDX-License-Identifier: Apache-2.0
"""Source operators of up to 64 arrays, and many threads that each make their own mistakes."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import cuplug
import numpy as np
from attacks import attack, refusals
from cuplug.ops import gather, relu

MOST = 64  # arrays of a signature, outputs included
EDGES = (1, 2, 8, 15, 16, 17, 31, 32, 33, 48, 61, 62)


def _names(n: int) -> list[str]:
    return [f"a{k}" for k in range(n)]


def _signature(n: int, result: str) -> str:
    return f"f({', '.join(f'{x}: T[...]' for x in _names(n))}) -> {result} where T: float64"


def elementwise(n: int) -> Callable[..., Any]:
    return cuplug.elementwise(_signature(n, "T[...]"), " + ".join(_names(n)))


def reduction(n: int) -> Callable[..., Any]:
    return cuplug.reduction(_signature(n, "T[...]"), map=" + ".join(_names(n)), reduce="a + b")


def scan(n: int) -> Callable[..., Any]:
    return cuplug.scan(_signature(n, "T[...]"), map=" + ".join(_names(n)), reduce="a + b")


def fused(n: int) -> Callable[..., Any]:
    def add(*arrays: Any) -> Any:
        total = arrays[0]
        for x in arrays[1:]:
            total = total + x
        return total

    listed = ", ".join(_names(n))
    given: dict[str, Any] = {"add": add}
    exec(f"def f({listed}):\n    return add({listed})\n", given)
    return cuplug.fuse(given["f"])


def whole(n: int) -> Callable[..., Any]:
    listed = ", ".join(f"{x}: float64[n]" for x in _names(n))
    pointers = ", ".join(f"const double *{x}" for x in _names(n))
    added = " + ".join(f"{x}[k]" for x in _names(n))
    host = (
        f"void f({pointers}, double *y, long n) {{ while (n--) {{ long k = n; y[k] = {added}; }} }}"
    )
    return cuplug.operator(
        f"f({listed}) -> y: float64[n]", arguments=", ".join([*_names(n), "y", "n"]), host=host
    )


NUMPY: dict[Callable[[int], Callable[..., Any]], Callable[[Any], Any]] = {
    elementwise: lambda total: total,
    reduction: np.sum,
    scan: np.cumsum,
    fused: lambda total: total,
    whole: lambda total: total,
}


@attack
def many_arrays(random: Random, folder: Path) -> int:
    """Each kind of source operator with any number of arrays, dense and strided, equals NumPy."""
    for make, wanted in NUMPY.items():
        for n in (random.choice(EDGES[:6]), random.choice(EDGES[6:]), random.randrange(1, 63)):
            step = random.choice([1, 1, 2])
            given = [np.arange(14.0)[::step] * (k + 1) for k in range(n)]
            result = make(n)(*given)
            assert np.array_equal(np.ravel(result), np.ravel(wanted(sum(given)))), (make, n)
    return 3 * len(NUMPY)


@attack
def too_many_arrays(random: Random, folder: Path) -> int:
    """More arrays than a signature can have are rejected with a message."""
    for make in NUMPY:
        for n in (MOST, MOST + 1, random.randrange(MOST, 300)):
            with refusals(ValueError, TypeError, cuplug.Error):
                result = make(n)(*[np.ones(3)] * n)
                assert n == MOST
                assert np.ravel(result)[-1] in (n, 3 * n)
    return 3 * len(NUMPY)


def _device() -> str:
    with refusals(cuplug.Error):
        return "cuda" if cuplug.devices() else "cpu"
    return "cpu"


@attack
def faults_of_threads(random: Random, folder: Path) -> int:
    """Each thread receives only the errors of its own calls, with its own index."""
    device, wrong = _device(), list[str]()
    data = np.arange(1000, dtype=np.float32)
    x = cuplug.asarray(data, device=device)
    start = threading.Barrier(12)

    def work(number: int) -> None:
        bad, good = 1000 + number, np.arange(number, 1000, 3)
        places = cuplug.asarray(np.array([0, bad]), device=device)
        fine = cuplug.asarray(good, device=device)
        start.wait()
        for _ in range(60):
            try:
                said = f"{gather(x, places).tolist()}"
            except IndexError as error:
                said = str(error)
            if not re.search(rf"\b{bad}\b", said):
                wrong.append(f"{bad}: {said}")
            if number % 2 and not np.array_equal(np.asarray(gather(x, fine).numpy()), data[good]):
                wrong.append(f"{number}: another result")
            if number % 3 == 0 and not (relu(x).numpy() == data).all():
                wrong.append(f"{number}: another result of relu")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]
    return 12 * 60
