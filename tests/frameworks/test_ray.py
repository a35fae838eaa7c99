# SPDX-License-Identifier: Apache-2.0
"""Operators and arrays in Ray tasks and actors, as in docs/frameworks.md."""

import os

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp
from cuplug.ops import relu
from raw_plugins import named_plugin

ray = pytest.importorskip("ray")

pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("default")]
X = np.arange(-3.0, 3.0)


@pytest.fixture(scope="module")
def call():
    """Return a task that calls its argument."""
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    ray.init(num_cpus=2, **quiet)
    yield ray.remote(lambda function, *arguments: function(*arguments))
    ray.shutdown()


def test_operators_and_fused_functions_are_arguments(call):
    factor = 3
    fused = cuplug.fuse(lambda x: factor * x)
    sums = cuplug.reduction("sums(x: T) -> T", map="x", reduce="a + b")
    assert ray.get(call.remote(relu, X)).tolist() == [0, 0, 0, 0, 1, 2]
    assert ray.get(call.remote(fused, X)).tolist() == (3 * X).tolist()
    assert ray.get(call.remote(sums, X)) == -3


def test_arrays_are_in_the_object_store(call):
    """Their elements are not in the pickle, but next to it, where Ray shares memory."""
    x = ray.put(cuplug.asarray(X))
    y = ray.get(call.remote(relu, x))
    assert (type(y), y.tolist()) == (cuplug.Array, [0, 0, 0, 0, 1, 2])
    first, second = ray.get(x), ray.get(x)
    assert first.data_ptr == second.data_ptr
    for shared in (first, y):
        with pytest.raises(ValueError, match="got a read-only array"):
            shared += 1
    (first.copy() + 1).fill(0)
    assert second.tolist() == X.tolist()


def test_actors_have_state(call):
    @ray.remote
    class Total:
        def __init__(self, operator, shape):
            self.operator, self.total = operator, xp.zeros(shape)

        def add(self, x):
            self.total += self.operator(x)
            return self.total

    total, x = Total.remote(relu, X.shape), ray.put(cuplug.asarray(X))
    results = [total.add.remote(x) for _ in range(3)]
    assert ray.get(results)[-1].tolist() == [0, 0, 0, 0, 3, 6]


def test_a_runtime_environment_names_folders_of_plugins(call, tmp_path):
    """Without it, the task fails, and its worker continues."""
    lacking = cuplug.load(named_plugin(tmp_path / "liblacking.so", "lacking")).lacking
    worker = ray.get(call.remote(os.getpid))
    with pytest.raises(cuplug.PluginError, match=r"lacking\.lacking: got no such plugin"):
        ray.get(call.remote(lacking, X))
    assert ray.get(call.remote(os.getpid)) == worker
    named = call.options(runtime_env={"env_vars": {"LD_LIBRARY_CUPLUG_PATH": str(tmp_path)}})
    assert ray.get(named.remote(lacking, X)).shape == X.shape
