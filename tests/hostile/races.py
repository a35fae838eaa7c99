# SPDX-License-Identifier: Apache-2.0
"""Races, forks and signals while operators are called."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import cuplug
import numpy as np
from attacks import attack, refusals
from cuplug import array_api as xp
from cuplug.ops import gather, nonzero, relu, scatter_add, select, select_backward, topk, unique

X = np.random.default_rng(0).standard_normal(200_000).astype(np.float32)
INDEX = np.random.default_rng(1).integers(0, X.size, 100_000)
total = cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0")
square = cuplug.elementwise("square(x: T) -> T", "x * x")
SUM = float(X.astype(np.float64).sum())


def check_all() -> None:
    """Call an operator of each kind, some with arrays large enough for several threads."""
    assert np.array_equal(relu(X), np.maximum(X, 0))
    assert np.array_equal(gather(X, INDEX), X[INDEX])
    assert np.array_equal(square(X), X * X)
    assert abs(float(total(X)) - SUM) < 1.0


def beside(work: Callable[[], None], n: int = 1) -> Callable[[], None]:
    """Run work repeatedly on other threads; return a function that ends it."""
    done = threading.Event()

    def repeat() -> None:
        while not done.is_set():
            work()

    threads = [threading.Thread(target=repeat) for _ in range(n)]
    for thread in threads:
        thread.start()

    def end() -> None:
        done.set()
        for thread in threads:
            thread.join()

    return end


@attack
def shapes_changed_meanwhile(random: Random, folder: Path) -> int:
    """The sizes of an array change on another thread during calls."""
    x = X.copy()

    def change() -> None:
        x.shape = random.choice([(-1,), (2, -1), (100, 2, -1)])

    end = beside(change, 2)
    try:
        for _ in range(1500):
            with refusals(TypeError, ValueError):
                result = relu(x)
                assert np.array_equal(result.ravel(), np.maximum(X, 0))
    finally:
        end()
    return 1500


def _changing() -> tuple[Callable[[], None], list[Callable[[], object]]]:
    """Return a function that keeps changing arrays, and calls that read them more than once."""
    n = 50_000
    numbers, places, out = np.arange(n), np.zeros(n, np.int64), np.zeros(n, np.int64)
    mask = np.zeros(n, bool)
    x, k, m, o = (cuplug.asarray(a, device="cpu") for a in (numbers, places, mask, out))
    y = cuplug.asarray(numbers, device="cpu", copy=True)

    def change() -> None:
        places[:], mask[:], out[:] = 1 << 40, True, -(1 << 62)
        places[:], mask[:], out[:] = 0, False, 7

    sort, search = cuplug.find("sort"), cuplug.find("searchsorted")
    return change, [
        *(lambda f=f: f(k) for f in (xp.sort, xp.argsort, xp.unique_all, xp.max, nonzero, unique)),
        *(lambda f=f: f(x, k) for f in (gather, xp.take_along_axis, xp.repeat, xp.searchsorted)),
        *(lambda key=key: x[key] for key in (k, m, (k, None), (m, None))),
        *(lambda key=key: y.__setitem__(key, 5) for key in (k, m, (m, None))),
        lambda: y.__setitem__(m, x[:3]),
        lambda: select(x, m),
        lambda: select_backward(x, m),
        lambda: scatter_add(x, k, x, 0),
        lambda: topk(k, 100),
        lambda: xp.searchsorted(k, x),
        lambda: sort(x, out=o),
        lambda: search(x, y, out=o),
        lambda: o.sort(),
    ]


@attack
def contents_changed_meanwhile(random: Random, folder: Path) -> int:
    """Positions, masks and outputs change on another thread while operators read them."""
    change, calls = _changing()
    end = beside(change)
    try:
        for _ in range(600):
            with refusals(IndexError, ValueError, MemoryError):
                random.choice(calls)()
    finally:
        end()
    check_all()
    return 600


@attack
def forks_from_threads(random: Random, folder: Path) -> int:
    """Children of a process whose threads are in calls call operators themselves."""
    check_all()
    end = beside(check_all, 2)
    try:
        for _ in range(25):
            child = os.fork()
            if not child:
                status = 1
                try:
                    check_all()
                    status = 0
                finally:
                    os._exit(status)
            for _ in range(200):
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended:
                    break
                time.sleep(0.05)
            else:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                raise TimeoutError("a forked child hangs")
            assert status == 0, status
    finally:
        end()
    return 25


@attack
def storms_of_signals(random: Random, folder: Path) -> int:
    """Thousands of signals per second interrupt cuplug's waits."""
    seen = []
    signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
    os.environ["CUPLUG_CACHE_DIR"] = str(folder / "cache")
    try:
        for k in range(60):
            check_all()
            if k % 20 == 0:
                plus = cuplug.elementwise("plus(x: T) -> T", f"x + {k}")
                assert np.array_equal(plus(X), X + np.float32(k))
                assert cuplug.plugins()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert seen
    return 60


@attack
def many_threads(random: Random, folder: Path) -> int:
    """Twenty threads call operators of each kind, and some for the first time."""
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            own = cuplug.elementwise("own(x: T) -> T", f"x - {number % 4}")
            for _ in range(10):
                check_all()
                assert np.array_equal(own(X), X - np.float32(number % 4))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return 200
