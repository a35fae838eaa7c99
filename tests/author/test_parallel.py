# SPDX-License-Identifier: Apache-2.0
"""Plugins whose loops run on the threads of the host, in C and in C++."""

import os

import cuplug
import numpy as np
import pytest
from cuplug import PluginError

IN_C = """#include <cuplug/format.h>
#include <cuplug/plugin.h>
enum { GRAIN = 1000 };

static int fill(void *context, int64_t begin, int64_t end) {
  const cuplug_call *call = context;
  float *y = call->outputs[0].data;
  for (int64_t i = begin; i < end; i++) {
    const float x = ((const float *)call->tensors[0].data)[i];
    if (x < 0) return cuplug_failf(call, CUPLUG_ERROR_VALUE, "x: got %g, expected 0 or more", x);
    y[i] = (float)begin;
  }
  return CUPLUG_OK;
}

CUPLUG_ENTRY int begins_host(const cuplug_call *call) {
  return cuplug_parallel(call, cuplug_n_elements(&call->tensors[0]), GRAIN, fill, (void *)call);
}
CUPLUG_HOST_OPERATOR(begins_host, "begins(x: float32[n]) -> float32[n]", "Where ranges begin.");
CUPLUG_PLUGIN(begins, "1.0.0");
"""

IN_CPP = """#include <cuplug/plugin.hpp>
#include <stdexcept>
#include <string>
CUPLUG_TYPED_HOST_OPERATOR(
    twice, "twice(x: T[n], bad: int = -1) -> T[n] where T: float32 | float64", "May fail.");
CUPLUG_HOST_ENTRY(twice, (T), x, bad, n, out) {
  int status = call.parallel(n, 1000, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      if (i == bad) throw std::runtime_error("thrown at " + std::to_string(i));
      out[i] = x[i];
    }
  });
  if (status) return status;
  return call.parallel(n, 1000, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      out[i] += x[i];
      if (i == bad - 1) return call.fail(CUPLUG_ERROR_INDEX, "bad: failed");
    }
    return (int)CUPLUG_OK;
  });
}
CUPLUG_PLUGIN(twice, "1.0.0");
"""


OF_ITS_OWN = """#include <cuplug/plugin.h>
CUPLUG_ENTRY int limit_host(const cuplug_call *call) {
  *(int64_t *)call->outputs[0].data = call->max_threads;
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(limit_host, "limit() -> int64[1]", "Threads that an entry may start itself.");
CUPLUG_PLUGIN(limit, "1.0.0");
"""


IN_ALL = """#include <cuplug/plugin.h>
CUPLUG_ENTRY int team_host(const cuplug_call *call) {
  *(int64_t *)call->outputs[0].data = cuplug_n_threads(call);
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(team_host, "team() -> int64[1]", "Threads that loops run on.");
CUPLUG_PLUGIN(team, "1.0.0");
"""


@pytest.fixture(scope="module")
def begins(build_plugin):
    return cuplug.load(build_plugin(IN_C, "begins")).begins


@pytest.fixture(scope="module")
def twice(build_plugin):
    options = ["-xc++", "-std=c++17", "-Wl,--no-as-needed", "-lstdc++"]
    return cuplug.load(build_plugin(IN_CPP, "twice", extra=options)).twice


@pytest.mark.parametrize("n", [0, 1, 999, 1000, 1001, 100_500])
def test_ranges_are_the_same_each_time(begins, n):
    expected = (np.arange(n) // 1000 * 1000).astype(np.float32)
    for _ in range(5):
        assert np.array_equal(begins(np.ones(n, np.float32)), expected)


def test_many_ranges_that_fail_at_once(begins):
    x = np.full(200_000, -1, np.float32)
    for _ in range(50):
        with pytest.raises(ValueError, match="^begins: x: got -1, expected 0 or more"):
            begins(x)
    assert begins(np.ones(3, np.float32)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lambdas(twice, dtype):
    x = np.arange(100_500, dtype=dtype)
    assert np.array_equal(twice(x), 2 * x)


def test_exceptions_and_failures_of_lambdas(twice):
    x = np.ones(100_500, np.float32)
    for at in (0, 70_001):
        with pytest.raises(PluginError, match=f"^twice: thrown at {at}"):
            twice(x, at)
    with pytest.raises(IndexError, match="^twice: bad: failed"):
        twice(x, x.size)


def test_how_many_threads_there_are(build_plugin):
    """At most the CPUs that the process may use, or fewer by a limit of its group."""
    (n,) = cuplug.load(build_plugin(IN_ALL, "team")).team()
    assert 1 <= n <= len(os.sched_getaffinity(0))


def test_entries_with_threads_of_their_own_have_one_in_a_forked_child(build_plugin):
    limit = cuplug.load(build_plugin(OF_ITS_OWN, "limit")).limit
    assert limit() == [0]
    if not (child := os.fork()):
        os._exit(0 if limit() == [1] else 1)
    assert os.waitpid(child, 0)[1] == 0
