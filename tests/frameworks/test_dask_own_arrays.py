# SPDX-License-Identifier: Apache-2.0
"""Dask arrays of cuplug arrays: results are cuplug arrays, also without importing cuplug.dask."""

import sys

import numpy as np
import pytest

pytest.importorskip("dask.array")

PROGRAM = """
import sys
import numpy as np
{imports}

dask.config.set(scheduler="synchronous")
whole = np.random.default_rng(3).normal(size=(4, 3, 5))
x = da.from_array(cuplug.asarray(whole, device={device!r}), chunks=(3, 2, 2))
function = {function}
seen, wanted = function(x).compute(), function(whole)
assert "cuplug.dask" not in sys.modules
assert type(seen) is cuplug.Array, type(seen)
assert seen.device == {device!r}
assert seen.shape == np.shape(wanted)
np.testing.assert_allclose(seen.numpy(), wanted, rtol=1e-12, atol=1e-12)
"""
FUNCTIONS = {
    "join": "lambda x: x + 1",
    "ufunc": "lambda x: abs(x) * 2 - x",
    "transpose": "lambda x: x.transpose(2, 0, 1)",
    "sum": "lambda x: x.sum(axis=1)",
    "max": "lambda x: x.max(axis=(0, 2), keepdims=True)",
    "mean": "lambda x: x.mean(axis=0)",
    "mean of all": "lambda x: x.mean()",
    "var": "lambda x: x.var(axis=2)",
    "std": "lambda x: x.std(axis=(1, 2))",
    "cumsum": "lambda x: x.cumsum(axis=0)",
    "index": "lambda x: x[:, [0, 2]]",
    "pad": "lambda x: np.pad(x, 1, 'constant')",
    "einsum": "lambda x: np.einsum('ijk,ljk->il', x, x)",
}
ORDERS = {
    "cuplug first": "import cuplug, dask, dask.array as da",
    "dask first": "import dask, dask.array as da, cuplug",
}


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("order", ORDERS)
def test_results_are_of_cuplug(run_python, device, order):
    for name, function in FUNCTIONS.items():
        parts = {"imports": ORDERS[order], "device": device, "function": function}
        text = PROGRAM.format(**parts)
        if name == next(iter(FUNCTIONS)):
            done = run_python(text)  # in a process without such calls before
            assert done.returncode == 0, done.stderr
        else:
            exec(
                compile(text.replace('assert "cuplug.dask" not in sys.modules\n', ""), name, "exec")
            )


def test_blocks_of_numpy_beside_them():
    """Such as the blocks with which dask begins a sum or fills an edge."""
    import cuplug
    import dask.array as da

    own = da.from_array(cuplug.asarray(np.arange(3.0), device="cpu"), chunks=3)
    seen = da.concatenate([da.zeros(2, chunks=2), own]).compute(scheduler="synchronous")
    assert "dask.array" in sys.modules
    assert type(seen) is cuplug.Array
    assert seen.tolist() == [0, 0, 0, 1, 2]


def test_memory_is_counted():
    import cuplug
    import cuplug.dask
    from dask.sizeof import sizeof

    assert sizeof(cuplug.empty(1000, device="cpu")) == 8000
