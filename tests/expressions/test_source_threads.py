# SPDX-License-Identifier: Apache-2.0
"""Expressions and reductions, and stock operators, on the threads of the host."""

import cuplug
import numpy as np
import pytest
from cuplug._integration.author import elf
from cuplug._source.compilers import cache

SUMS = """
import hashlib, numpy as np, cuplug
random = np.random.default_rng(0)
f = cuplug.elementwise("f(x: T, y: T) -> T", "x * y + x")
total = cuplug.reduction("total(x: T) -> T", reduce="a + b")
place = cuplug.reduction("place(x: T) -> int64", choose="!(b <= a)", post="i")
for shape in [(1_000_003,), (1000, 1025), (70_001, 3), (200, 5000), (65, 40_000), (3, 100_003)]:
    for dtype in ("float16", "float32", "float64"):
        x = random.random(shape, np.float32).astype(dtype)
        print(hashlib.sha256(f(x, x[-1]).tobytes()).hexdigest())
        whole = np.floor(x * 3)
        for axis in (None, *range(x.ndim)):
            assert np.array_equal(place(x, axis=axis), np.argmax(x, axis))
            assert np.array_equal(total(whole, axis=axis), whole.sum(axis, "f8").astype(dtype))
            print(hashlib.sha256(total(x, axis=axis).tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_results_do_not_depend_on_threads(run_python):
    """Arrays are split along reduced dimensions, along kept ones, or both."""
    found = [run_python(SUMS, env={"OMP_NUM_THREADS": n}) for n in ("1", "2", "5")]
    assert not any(done.returncode for done in found), [done.stderr for done in found]
    assert found[0].stdout == found[1].stdout == found[2].stdout


def test_forked_children_have_threads_of_their_own(run_python):
    """After the parent's threads have run, children do not have them and do not wait for them."""
    done = run_python(
        """
import os, numpy as np, cuplug
x, index = np.arange(300_000, dtype=np.float32), np.arange(300_000)[::-1].copy()
f = cuplug.elementwise("f(x: T, y: T) -> T", "x + y")
total = cuplug.reduction("total(x: T) -> T", reduce="a + b")
cases = {
    "f": lambda: np.array_equal(f(x, x), x + x),
    "total": lambda: total(x) == total(x.copy()) and abs(total(x) - x.sum()) < 1e6,
    "relu": lambda: np.array_equal(cuplug.ops.relu(x), x),
    "gather": lambda: np.array_equal(cuplug.ops.gather(x, index), x[index]),
}
for name in cases:
    assert cases[name]()
    for child_first in cases:
        if not (child := os.fork()):
            os._exit(0 if cases[child_first]() and all(case() for case in cases.values()) else 1)
        assert cases[name]()
        assert os.waitpid(child, 0)[1] == 0, (name, child_first)
""",
        env={"OMP_NUM_THREADS": "4"},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("n_threads", ["1", "4"])
def test_a_process_that_may_start_no_threads(run_python, n_threads):
    done = run_python(
        """
import os, resource, numpy as np, cuplug
x = np.arange(300_000, dtype=np.float32)
f = cuplug.elementwise("f(x: T, y: T) -> T", "x + y")
total = cuplug.reduction("total(x: T) -> T", reduce="a + b")
f(x[:1], x[:1]), total(x[:1])  # compiled
cuplug.ops.relu(x[:1]), cuplug.ops.gather(x, np.arange(1))
if not os.getuid():
    os.setresuid(65534, 65534, 65534)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
n_before = len(os.listdir("/proc/self/task"))
for _ in range(100):
    assert np.array_equal(f(x, x), x + x)
    assert abs(total(x) - x.sum()) < 1e6
    assert np.array_equal(cuplug.ops.relu(x), x)
    assert np.array_equal(cuplug.ops.gather(x, np.arange(x.size)), x)
assert len(os.listdir("/proc/self/task")) == n_before
""",
        env={"OMP_NUM_THREADS": n_threads},
    )
    assert done.returncode == 0, done.stderr


def test_generated_code_needs_no_library_of_threads(tmp_path, monkeypatch):
    monkeypatch.setenv("CUPLUG_CACHE_DIR", str(tmp_path))
    x = np.ones(100, np.float32)
    add = cuplug.elementwise("added(a: T, b: T) -> T", "a + b")
    total = cuplug.reduction("total_of(x: T) -> T", reduce="a + b")
    assert total(add(x, x)) == 200
    loaded = [entry.path for entry in cache.entries() if entry.kind == "so"]
    assert len(loaded) >= 2
    for path in loaded:
        assert not [name for name in elf.read_library(path).needed if "omp" in name]


@pytest.mark.uninstrumented
def test_a_thread_without_memory_for_a_reduction(run_python):
    """The first reduction on a thread allocates some."""
    done = run_python(
        """
import resource, threading
import numpy as np, cuplug
total = cuplug.reduction("total(x: T) -> T", reduce="a + b")
x = np.ones((30, 40))
total(x)
seen, hard = [], resource.getrlimit(resource.RLIMIT_AS)[1]

def use():
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * 4096, hard))
    filled = []
    try:
        while True:
            filled.append(bytearray(20_000))
    except MemoryError:
        pass
    try:
        total(x, axis=0)
    except MemoryError as error:
        seen.append(str(error))
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    assert (total(x, axis=0) == 30).all()

thread = threading.Thread(target=use)
thread.start()
thread.join()
assert seen == ["total: out of memory while reducing"], seen
""",
        env={"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
    )
    assert done.returncode == 0, done.stderr
