# SPDX-License-Identifier: Apache-2.0
"""Processes that lack memory, threads, descriptors or disk space, and the end of processes."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

from attacks import attack

CALLS = """
import resource, sys, threading
import numpy as np, cuplug
from cuplug.ops import gather, relu
x = np.arange(-100_000, 100_000, dtype=np.float32)
ones, index = np.ones(200_000, np.float32), np.arange(0, 200_000, 7)
square = cuplug.elementwise("square(x: T) -> T", "x * x")
total = cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0")

def check():
    assert np.array_equal(relu(x), np.maximum(x, 0))
    assert np.array_equal(gather(x, index), x[index])
    assert np.array_equal(square(x), x * x)
    assert total(ones) == 200_000

def limited(what, most):
    resource.setrlimit(what, (most, resource.getrlimit(what)[1]))
"""

# The parent process may ignore the signal, and processes inherit that.
LISTENS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def run(
    folder: Path, text: str, limit_s: float = 90.0, calls: str = CALLS, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run Python text after CALLS, as a user without rights if possible."""
    variables = os.environ | {"CUPLUG_CACHE_DIR": str(folder / "cache")} | variables
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", calls + text],
        env=variables,
        capture_output=True,
        text=True,
        timeout=limit_s,
    )


def must_end_well(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:])


@attack
def little_memory(random: Random, folder: Path) -> int:
    """Calls with less and less memory raise MemoryError, or succeed; later calls succeed."""
    step = random.randrange(100_000, 900_000)
    text = f"""
check()
pages = int(open("/proc/self/statm").read().split()[0])
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
for spare in range(0, 8_000_000, {step}):
    resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + spare, hard))
    for call in (lambda: relu(x), lambda: gather(x, index), lambda: square(x), lambda: total(x),
                 lambda: cuplug.find("none"), lambda: cuplug.plugins(), lambda: relu(x[::2])):
        try:
            call()
        except (MemoryError, cuplug.Error, OSError):
            pass
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    check()
"""
    done = run(folder, text)
    # The C library ends processes, and so do sanitizers that have no memory themselves.
    ended = re.search("thread-local|Sanitizer failed to allocate", done.stderr)
    if done.returncode < 0 or not ended:
        must_end_well(done)
    return 8_000_000 // step * 7


@attack
def few_descriptors(random: Random, folder: Path) -> int:
    """First calls, searches and compilations without a free descriptor."""
    text = f"""
limited(resource.RLIMIT_NOFILE, {random.randrange(3, 14)})
for k in range(5):
    for call in (check, cuplug.plugins, lambda: cuplug.find("none"),
                 lambda: cuplug.elementwise("plus(x: T) -> T", f"x + {{k}}")(x)):
        try:
            call()
        except (cuplug.Error, OSError, ImportError, MemoryError) as error:
            assert str(error)
limited(resource.RLIMIT_NOFILE, 256)
check()
"""
    must_end_well(run(folder, text))
    return 20


@attack
def full_disk(random: Random, folder: Path) -> int:
    """No file can grow beyond a few bytes: compiled code is not cached, and nothing breaks."""
    text = f"""
limited(resource.RLIMIT_FSIZE, {random.choice([0, 10, 1000, 10_000])})
for k in range(3):
    try:
        check()
    except (cuplug.Error, OSError) as error:
        assert str(error)
"""
    must_end_well(run(folder, text))
    must_end_well(run(folder, "check()\n"))
    return 6


@attack
def no_more_threads(random: Random, folder: Path) -> int:
    """No thread can be created, as no addresses are left for its stack."""
    text = """
pages = int(open("/proc/self/statm").read().split()[0])
limited(resource.RLIMIT_AS, pages * 4096 + 300_000_000)
kept = []
try:
    while True:
        ready, done = threading.Event(), threading.Event()
        thread = threading.Thread(target=lambda: done.wait(), daemon=True)
        thread.start()
        kept.append(done)
except (RuntimeError, MemoryError):
    pass
limited(resource.RLIMIT_AS, pages * 4096 + 340_000_000)
try:
    check()
except (MemoryError, cuplug.CompileError) as error:
    assert str(error)
for done in kept:
    done.set()
resource.setrlimit(resource.RLIMIT_AS, (resource.getrlimit(resource.RLIMIT_AS)[1],) * 2)
check()
"""
    must_end_well(run(folder, text))
    return 4


@attack
def daemons_at_exit(random: Random, folder: Path) -> int:
    """The process ends while daemon threads are in calls."""
    text = f"""
import time
def repeat():
    while True:
        check()
check()
for _ in range(4):
    threading.Thread(target=repeat, daemon=True).start()
time.sleep({random.uniform(0.0, 0.2)})
"""
    for _ in range(4):
        must_end_well(run(folder, text))
    return 4


@attack
def interrupted(random: Random, folder: Path) -> int:
    """Control-C while an operator is compiled or called ends in KeyboardInterrupt."""
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", LISTENS + CALLS + "while True:\n    check()\n"],
            env=os.environ | {"CUPLUG_CACHE_DIR": str(folder / f"cache{random.random()}")},
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            process.communicate(timeout=random.uniform(0.5, 2.5))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
        assert process.returncode in (1, -signal.SIGINT), (process.returncode, said[-2000:])
        assert "KeyboardInterrupt" in said, said[-2000:]
    return 4


@attack
def subinterpreters(random: Random, folder: Path) -> int:
    """Subinterpreters are rejected with a message."""
    text = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
check()
other = interpreters.create()
try:
    found = interpreters.run_string(other, "import cuplug; cuplug.find('relu')")
    assert found is not None and "subinterpreter" in str(found), found
except interpreters.RunFailedError as error:
    assert "interpreter" in str(error), error
check()
"""
    must_end_well(run(folder, text.replace("interpreters.RunFailedError", "Exception")))
    return 1


LEAKS = """
import gc, pickle
from cuplug import array_api as xp
def pages():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1])
small, out, i = x[:16].copy(), np.empty(16, np.float32), np.arange(4)
bad = np.array([99])
def fails(call):
    try:
        call()
    except (ValueError, TypeError, IndexError):
        return
    raise AssertionError
a = cuplug.asarray(small, device="cpu", copy=True)
b, mask, k, square_a = a * 2, a > 0, cuplug.asarray(i, device="cpu"), a.reshape(4, 4)
running = cuplug.scan("running(x: T) -> T", reduce="a + b")
random = cuplug.random.default_rng(3)
@cuplug.fuse
def fused(x, y):
    return x * y + 1
def changes():
    global b
    b += a
    b *= 0.5
    b[2:5], b[k], b[mask] = 1, 0, 2
kinds = [
    lambda: relu(small), lambda: relu(small, out=out), lambda: gather(small, i),
    lambda: square(small), lambda: total(small), lambda: running(small), lambda: relu(small[::2]),
    lambda: cuplug.find("relu"), lambda: relu(x[:20000]),
    lambda: fails(lambda: gather(small, bad)), lambda: fails(lambda: relu("a")),
    lambda: fails(lambda: relu(small, out=i)), lambda: fails(lambda: a[99]),
    lambda: fails(lambda: a[[99]]), lambda: fails(lambda: a + square_a[:3]),
    lambda: fails(lambda: cuplug.asarray([1, [2]])), lambda: fails(lambda: cuplug.empty(3, "q9")),
    lambda: (a + b) * 2 - a, changes, lambda: square_a[1:, None][::-1].mT, lambda: (a[k], a[mask]),
    lambda: fused(small, small), lambda: fused(a, a), lambda: float(square_a.sum(axis=0)[0]),
    lambda: (xp.sort(a), xp.argsort(a), xp.unique_values(a), xp.searchsorted(a, b), a.cumsum()),
    lambda: (xp.where(mask, a, b), xp.concat([a, b]), a.reshape((2,) + (1,) * 6 + (8,))),
    lambda: (a.numpy(), a.tolist(), a.astype("float16"), np.add(a, 1), np.sum(a)),
    lambda: cuplug.asarray(np.asarray(a), device="cpu"), lambda: memoryview(a).nbytes,
    lambda: cuplug.asarray(np.from_dlpack(a), device="cpu"), lambda: random.random(8),
    lambda: pickle.loads(pickle.dumps(a)), lambda: list(a),
]
"""


@attack
def calls_that_leak_nothing(random: Random, folder: Path) -> int:
    """Many calls of each kind, including failing ones, do not increase memory."""
    n = 20_000
    text = f"""
for call in kinds:
    for _ in range(2000):
        call()
    before = pages()
    for _ in range({n}):
        call()
    assert pages() - before < 256, (pages() - before, kinds.index(call))
print(len(kinds))
"""
    # The address sanitizer retains freed memory, which is not a leak.
    held = "quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
    options = f"{os.environ.get('ASAN_OPTIONS', '')}:{held}"
    done = run(folder, LEAKS + text, 300.0, ASAN_OPTIONS=options)
    must_end_well(done)
    return n * int(done.stdout)


resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
