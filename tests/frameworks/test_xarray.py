# SPDX-License-Identifier: Apache-2.0
"""Operators on arrays of xarray; the recipes of docs/frameworks.md are run from there."""

import re

import numpy as np
import pytest
from cuplug.ops import gather, leaky_relu, relu, relu_backward, scale

xarray = pytest.importorskip("xarray")

X = np.arange(-3.0, 3.0).reshape(2, 3)


@pytest.fixture
def array():
    """Return an array with labels along one of its dimensions."""
    return xarray.DataArray(X, dims=("x", "y"), coords={"y": [1, 2, 3]}, name="depth")


def test_labels_stay(array):
    y = relu(array)
    assert y.name == "depth"
    xarray.testing.assert_identical(y, array.copy(data=relu(X)))


def test_dimensions_are_broadcast_by_name(array):
    turned = array.T + 1
    grad = xarray.DataArray(np.array([2.0, 3.0]), dims="x")
    seen = relu_backward(grad=grad, x=turned)
    xarray.testing.assert_equal(seen, grad.broadcast_like(seen) * (turned > 0))


def test_labels_must_be_equal(array):
    with pytest.raises(ValueError, match="cannot align"):
        relu_backward(array, array.assign_coords(y=[2, 3, 4]))


def test_data_sets(array):
    seen = leaky_relu(xarray.Dataset({"a": array, "b": array + 1}), slope=0.5)
    np.testing.assert_array_equal(seen.a, leaky_relu(X, 0.5))
    np.testing.assert_array_equal(seen.b, leaky_relu(X + 1, 0.5))


def test_numbers_without_labels(array):
    assert (leaky_relu(array, array.max()).values == leaky_relu(X, 2.0)).all()
    assert (relu_backward(array, X).values == relu_backward(X, X)).all()


def test_blocks_of_dask_stay_blocks(array):
    pytest.importorskip("dask")
    y = relu(array.chunk(x=1))
    assert y.chunks == ((1, 1), (3,))
    xarray.testing.assert_identical(y.compute(), relu(array))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: gather(x, np.array([0])),
        lambda x: scale(x, 2.0),
        lambda x: relu(x, out=X.copy()),
    ],
    ids=["dimensions without names", "changed in place", "out"],
)
def test_what_is_refused(array, call):
    wanted = "got an array of xarray (use xarray.apply_ufunc, or pass x.values)"
    with pytest.raises(TypeError, match=re.escape(wanted)):
        call(array)


def test_what_only_looks_like_an_array_of_xarray():
    look_alike = type("DataArray", (), {"__module__": "xarray.core", "ndim": 2, "shape": (2, 3)})
    with pytest.raises(TypeError, match="got an array of xarray"):
        relu(look_alike())
