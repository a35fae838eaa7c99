# SPDX-License-Identifier: Apache-2.0
"""Calls whose arrays differ from the previous call's are matched by their own arrays."""

import itertools

import cuplug
import numpy as np
import pytest

SHAPES = [(16,), (4, 4), (2, 2, 2, 2), (8, 2), (2, 8), (0, 3), (), (17,), (1,), (16, 1), (3, 5, 7)]
ADD = [cuplug.elementwise(f"add_{k}(x: T, y: T) -> T", f"x + y + (T){k}") for k in range(6)]


def arrays():
    random = np.random.default_rng(3)
    for shape, dtype in itertools.product(SHAPES, ("float32", "int64")):
        x = np.asarray(random.integers(0, 9, shape)).astype(dtype)
        yield x, x + 1


def test_shapes_dtypes_and_operators_in_turn():
    given = list(arrays())
    for _ in range(3):
        for k, (x, y) in enumerate(given):
            for number in (k % 6, (k + 3) % 6):
                found = ADD[number](x, y)
                assert found.dtype == x.dtype
                np.testing.assert_array_equal(found, x + y + x.dtype.type(number))


def test_layouts_in_turn():
    """Strided and broadcast arrays alternate with contiguous ones of the same shape."""
    x = np.arange(64.0).reshape(8, 8)
    out, wide = np.empty((8, 8)), np.zeros((8, 16))
    for _ in range(3):
        for a, b in ((x, x), (x.T, x), (x, x[0]), (x, x.T), (x[::-1], x[:, ::-1]), (x, x)):
            np.testing.assert_array_equal(ADD[0](a, b), a + b)
            np.testing.assert_array_equal(ADD[0](a, b, out=out), a + b)
            np.testing.assert_array_equal(ADD[0](a, b, out=wide[:, ::2]), a + b)
            assert not wide[:, 1::2].any()


def test_in_place_arrays_are_checked_in_each_call():
    axpy = cuplug.elementwise("axpy(inout y: T, x: T, a: T)", "y = a * x + y")
    x = np.arange(16.0)
    for _ in range(3):
        y = x.copy()
        axpy(y, x, 2)
        np.testing.assert_array_equal(y, 3 * x)
        with pytest.raises(ValueError, match="y: it is changed in place and overlaps x"):
            axpy(y, y, 2)


def test_stock_operators_of_many_shapes():
    for _ in range(2):
        for n in range(1, 200):
            x = np.arange(-n, n, dtype="float32")
            np.testing.assert_array_equal(cuplug.ops.relu(x), np.maximum(x, 0))


AXES = [None, 0, 1, -1, (0, 1), (1, 2), (), (2, 0)]


def test_axes_in_turn():
    """The outputs' shapes depend on numbers, not only on the arrays."""
    total = cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0")
    x = np.arange(24.0).reshape(2, 3, 4)
    for _ in range(3):
        for axis, keepdims in itertools.product(AXES, (False, True)):
            found = total(x, axis=axis, keepdims=keepdims)
            np.testing.assert_array_equal(found, x.sum(axis, keepdims=keepdims), strict=True)
            with pytest.raises(ValueError, match=r"total: axis: got 3, expected -\d <= axis"):
                total(x, axis=3)


def test_lists_in_turn():
    """Lists of the same number of arrays or more, of other shapes and dtypes, and empty ones."""
    x = np.arange(60.0).reshape(3, 4, 5)
    keys = [(np.array(k),) * n for n in (1, 2, 3) for k in ([0, 2], [-1, 1], [[1]], [0, 1, 2])]
    for _ in range(3):
        for key, dtype in itertools.product(keys, ("int64", "int32")):
            given = [k.astype(dtype) for k in key]
            np.testing.assert_array_equal(cuplug.ops.index(x, given), x[key], strict=True)
            changed, wanted = x.copy(), x.copy()
            cuplug.ops.index_put(changed, given, np.array(-1.0))
            wanted[key] = -1
            np.testing.assert_array_equal(changed, wanted)
            with pytest.raises(ValueError, match=r"expected len\(indices\) <= len\(s\)"):
                cuplug.ops.index(x, [given[0]] * 4)
            with pytest.raises(IndexError, match="out of bounds for size 3"):
                cuplug.ops.index(x, [given[0] + 3, *given[1:]])


def test_arrays_of_lists_that_are_changed_are_checked_in_each_call():
    x, at = np.zeros(8, "int64"), np.arange(4)
    for _ in range(3):
        cuplug.ops.index_put(x, [at], np.array(1))
        with pytest.raises(ValueError, match="x: it is changed in place and overlaps indices"):
            cuplug.ops.index_put(x, [x[:4]], np.array(1))
