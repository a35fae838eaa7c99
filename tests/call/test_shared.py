# SPDX-License-Identifier: Apache-2.0
"""Threads that share operators, arrays and plugins while these change.

With the GIL, few of these happen at once. `CUPLUG_FREE_THREADED_PYTHON` names a free-threaded
Python with its own build of cuplug, created by `make VENV=... PYTHON=python3.13t BUILD=...`. The
last test runs the others there.
"""

import os
import shutil
import subprocess
import sys
import threading

import cuplug
import numpy as np
import pytest
from builds import compile_module
from cuplug._engine.lookup.find import forget_operators
from cuplug.ops import gather, relu, scale

N_THREADS = 8
SOURCE = """
#include <cuplug/plugin.h>
CUPLUG_ENTRY int %(name)s_host(const cuplug_call *call) {
  for (int64_t i = 0; i < call->tensors[0].shape[0]; i++)
    ((double *)call->tensors[1].data)[i] = %(factor)s * ((const double *)call->tensors[0].data)[i];
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(%(name)s_host, "%(name)s(x: float64[n]) -> float64[n]", "Product.");
CUPLUG_PLUGIN(%(name)s, "%(factor)s.0");
"""
USER = """
from {name}_typed cimport {name}, view

def call(const double[::1] x, double[::1] out):
    with nogil:
        {name}(view(x), view(out))
"""


@pytest.fixture(autouse=True)
def often():
    """With the GIL, make threads switch as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*works):
    """Run functions in threads that begin at once; raise an exception of any of them."""
    barrier, failures = threading.Barrier(len(works)), []

    def run(work):
        try:
            barrier.wait(60)
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def build(folder, name, factor):
    path = folder / f"{name}.c"
    path.write_text(SOURCE % {"name": name, "factor": factor})
    return cuplug.build(path)


def test_an_operator_is_one_object_for_all_threads():
    found = []
    for _ in range(200):
        found.clear()
        forget_operators()
        together(*[lambda: found.append(cuplug.find("cumulative_sum"))] * N_THREADS)
        assert all(x is found[0] for x in found)


def test_calls_on_arrays_in_common():
    x, index = np.arange(-500.0, 500), np.arange(1000)[::-1].copy()
    own = cuplug.asarray(x)

    def work():
        for _ in range(200):
            assert np.array_equal(gather(x, index), x[::-1])
            assert np.array_equal(gather(source=x, index=index, mode="wrap"), x[::-1])
            assert np.array_equal(np.asarray(relu(own)), np.maximum(x, 0))
            with pytest.raises(TypeError, match="gather: index"):
                gather(x, x)

    together(*[work] * N_THREADS)


def test_arrays_that_are_changed_while_they_are_read():
    """Each element is an old or a new one; sizes and memory stay."""
    x = cuplug.asarray(np.ones(4096))
    host = np.ones(4096)

    def change():
        for k in range(300):
            x[...] = 2.0 if k % 2 else 1.0
            scale(host, 2.0 if k % 2 else 0.5)
            x[k % 7 :: 7] = 1.0

    def read():
        for _ in range(300):
            assert set(np.asarray(relu(x)).tolist()) <= {1.0, 2.0}
            assert (relu(host) > 0).all()
            assert x.shape == (4096,)
            assert len(x[::3]) == 1366

    together(change, change, *[read] * (N_THREADS - 2))


def test_plugins_that_are_added_while_others_are_called(tmp_path):
    paths = [build(tmp_path, f"added{k}", k + 1) for k in range(N_THREADS)]
    x = np.arange(5.0)

    def add(k):
        for _ in range(20):
            operator = getattr(cuplug.load(paths[k]), f"added{k}")
            assert operator(x).tolist() == ((k + 1) * x).tolist()
            assert f"added{k}" in repr(operator)
            assert cuplug.find(f"added{(k + 1) % N_THREADS}.added{(k + 1) % N_THREADS}")(x)[1] > 0

    for path in paths:
        cuplug.load(path)
    together(*[lambda k=k: add(k) for k in range(N_THREADS)], lambda: cuplug.plugins())


def test_new_operators_from_source_while_all_are_listed():
    """A reload visits all operators, also ones that other threads are creating."""

    kept = []
    stop = threading.Event()

    def make(k):
        try:
            for i in range(150):
                kept.append(cuplug.elementwise(f"made{k}_{i}(x: T) -> T", "x + 1"))
        finally:
            stop.set()

    def visit():
        while not stop.is_set():
            cuplug.reload()

    together(visit, visit, *[lambda k=k: make(k) for k in range(N_THREADS - 2)])


@pytest.mark.slow
def test_reload_while_the_operator_is_called(tmp_path):
    """Each call runs the old or the new code, and calls after the reload run the new code."""
    name = "swapped"
    operator = getattr(cuplug.load(build(tmp_path, name, 1)), name)
    from cuplug._integration.author.bind import write_module

    write_module(operator.path, str(tmp_path))
    (tmp_path / "swapped_user.pyx").write_text(USER.format(name=name))
    compile_module(tmp_path / "swapped_user.pyx", tmp_path)
    sys.path.insert(0, str(tmp_path))
    try:
        import swapped_user
    finally:
        sys.path.remove(str(tmp_path))
    x, stop = np.ones(3), threading.Event()
    factors = range(2, 8)

    def call():
        out = np.zeros(3)
        while not stop.is_set():
            assert 1 <= operator(x=x)[0] < 8
            swapped_user.call(x, out)
            assert 1 <= out[0] < 8

    def swap():
        out = np.zeros(3)
        try:
            for factor in factors:
                path = build(tmp_path, name, factor)
                assert cuplug.reload(operator) == (path,)
                swapped_user.call(x, out)
                assert operator(x).tolist() == out.tolist() == [factor] * 3
        finally:
            stop.set()

    together(swap, *[call] * (N_THREADS - 1))


@pytest.mark.slow
def test_without_the_gil():
    """Run this file and the tests of threads with an available free-threaded Python."""
    given = os.environ.get("CUPLUG_FREE_THREADED_PYTHON")
    python = given or shutil.which("python3.14t") or shutil.which("python3.13t")
    if not python:
        pytest.skip("needs a free-threaded Python: CUPLUG_FREE_THREADED_PYTHON names one")
    probe = "import sys, cuplug, pytest; assert not sys._is_gil_enabled()"
    clean = {key: x for key, x in os.environ.items() if not key.startswith(("PYTEST", "PYTHON"))}
    done = subprocess.run([python, "-c", probe], env=clean, capture_output=True, text=True)
    if not given and "ModuleNotFoundError" in done.stderr:
        pytest.skip("the free-threaded Python has no cuplug, or no pytest")
    assert done.returncode == 0, done.stderr
    files = [__file__, os.path.join(os.path.dirname(__file__), "test_threads.py")]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "slow or not slow"]
    chosen = [*files, "-k", "not without_the_gil"]
    done = subprocess.run([*command, *chosen], env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
