# SPDX-License-Identifier: Apache-2.0
"""Calls from several threads."""

import threading
from pathlib import Path

import cuplug
import numpy as np
import pytest

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(scope="module")
def ops(build_plugin):
    """Return the plugin with an operator for each kind of argument."""
    return cuplug.load(build_plugin(FIXTURES / "arguments.c", "arguments"))


def test_calls_release_the_gil(ops):
    """Two threads can only meet inside the entry when neither holds the GIL there."""
    results = []
    threads = [threading.Thread(target=lambda: results.append(int(ops.meet(3)[0]))) for _ in "ab"]
    for thread in threads:
        thread.start()
    results.append(int(ops.meet(3)[0]))
    for thread in threads:
        thread.join()
    assert results == [3, 3, 3]


@pytest.fixture(scope="module")
def locks(build_plugin):
    """Return the plugin that tells whether its caller holds the GIL."""
    return cuplug.load(build_plugin(FIXTURES / "locks.c", "locks"))


def test_small_calls_that_never_wait_keep_the_gil(locks):
    small, large = np.zeros(16 << 10, np.uint8), np.zeros((16 << 10) + 1, np.uint8)
    for operator in (locks.held, locks.held_briefly, locks.held_rows):
        operator.load()
    assert locks.held_briefly(small)[0] == 1
    assert locks.held_briefly(large)[0] == 0
    assert locks.held(small)[0] == 0
    assert locks.held_rows(small[:2048])[0] == 1
    assert locks.held_rows(small[:2049])[0] == 0  # its output is larger


def test_the_first_call_loads_without_the_gil(build_plugin):
    fresh = cuplug.load(build_plugin(FIXTURES / "locks.c", "locks_again"))
    small = np.zeros(1, np.uint8)
    assert [fresh.held_briefly(small)[0] for _ in range(2)] == [0, 1]


def test_many_threads_call_at_once(ops):
    failures = []

    def work(seed):
        x = np.random.default_rng(seed).random(50) - 0.5
        for _ in range(300):
            if ops.positive(x).tolist() != x[x > 0].tolist():
                failures.append(seed)
            if ops.add(x[:, None], x).tolist() != (x[:, None] + x).tolist():
                failures.append(seed)
            if len(ops.scalars(1, 2, s="a" * seed, mode="x")) != 8:
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_new_array_types_from_many_threads(ops):
    """Types are looked at once and kept; here each is new to all threads at the same time."""
    types = [type(f"Array{k}", (np.ndarray,), {}) for k in range(300)]
    failures = []

    def work():
        for cls in types:
            if ops.copy(np.arange(3.0).view(cls)).tolist() != [0, 1, 2]:
                failures.append(cls)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
