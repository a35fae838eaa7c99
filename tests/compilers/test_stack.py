# SPDX-License-Identifier: Apache-2.0
"""Threads with small stacks can compile: compilers need more, and run on a separate thread."""

import pytest
from emulated_driver import need_nvrtc

ON_A_SMALL_STACK = """
import contextvars
import threading
import numpy as np
import cuplug
from cuplug._source.compilers.stack import on_large_stack

x = np.ones(8, np.float32)
total = cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0")
outcome = []


def run():
    try:
        outcome.append(task())
    except Exception as error:
        outcome.append(error)


def on_small_stack(kibibytes):
    threading.stack_size(kibibytes << 10)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert threading.stack_size() == kibibytes << 10
    return outcome[-1]


"""


@pytest.fixture
def run(run_python, tmp_path):
    """Return a function that runs Python text with those functions, and an empty cache."""

    def call(code):
        done = run_python(ON_A_SMALL_STACK + code, {"CUPLUG_CACHE_DIR": str(tmp_path / "cache")})
        assert done.returncode == 0, done.stderr

    return call


@pytest.mark.sample(4)
@pytest.mark.parametrize("kibibytes", [64, 80, 128])
@pytest.mark.parametrize(
    ("task", "wanted"),
    [
        ("cuplug.elementwise('f(x: T) -> T', 'x + 1')(x).sum()", 16),
        ("total(x)", 8),
        ("cuplug.fuse(lambda a: a - a.mean())(x).sum()", 0),
        ("list(cuplug.compile('__global__ void f() {}', architecture='90'))", ["f"]),
        ("'.entry' in cuplug.compile('__global__ void g() {}', architecture='90').ptx", True),
    ],
)
def test_compilations_on_small_stacks(task, wanted, kibibytes, run):
    if "compile" in task:
        need_nvrtc()
    run(f"task = lambda: {task}\nassert on_small_stack({kibibytes}) == {wanted!r}, outcome")


def test_errors_and_contexts_pass_between_the_threads(run):
    run(
        """
number = contextvars.ContextVar("number", default=1)

def task():
    number.set(2)
    return on_large_stack(lambda: (number.get(), threading.current_thread().name))

assert on_small_stack(64) == (2, "cuplug compiler"), outcome
assert on_large_stack(threading.current_thread) is threading.main_thread()
task = lambda: on_large_stack(int, "no number")
assert type(on_small_stack(64)) is ValueError
"""
    )


def test_wrong_source_on_a_small_stack(run):
    need_nvrtc()
    run(
        """
task = lambda: cuplug.compile("__global__ void f() { nothing; }", architecture="90")
assert 'identifier "nothing" is undefined' in str(on_small_stack(64))
"""
    )
