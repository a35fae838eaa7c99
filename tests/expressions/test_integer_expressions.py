# SPDX-License-Identifier: Apache-2.0
"""Integer arithmetic in expressions on the CPU: undefined results, and wrapping."""

import re

import cuplug
import numpy as np
import pytest
from backends import SIGNED, UNSIGNED, assert_same

DIVISIONS = [
    ("x / y", "", "line 1, column 3"),
    ("x % y", "", "line 1, column 3"),
    ("1 +\n x / y", "", "line 2, column 4"),
    (
        "share(x, y)",
        "__device__ T share(T a, T b) { return a / b; }",
        "preamble: line 1, column 41",
    ),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
@pytest.mark.parametrize(("text", "preamble", "place"), DIVISIONS)
def test_integer_division_without_a_result(dtype, text, preamble, place):
    divide = cuplug.elementwise("divide(x: T, y: T) -> T", text, preamble=preamble)
    for n in (3, 200_000):
        x, y = np.ones(n, dtype), np.ones(n, dtype)
        y[n // 2] = 0
        wanted = f"divide: {place}: got 1 / 0 of integers, expected a division that has a result"
        with pytest.raises(ValueError, match=f"^{re.escape(wanted)}$"):
            divide(x, y)
        y[n // 2] = 1
        expected = {"x / y": 1, "x % y": 0}.get(text, 1 if preamble else 2)
        assert (divide(x, y) == expected).all()


@pytest.mark.parametrize("dtype", SIGNED)
@pytest.mark.parametrize("operator", "/%")
def test_least_integer_by_minus_one(dtype, operator):
    divide = cuplug.elementwise("divide(x: T, y: T) -> T", f"x {operator} y")
    least = np.iinfo(dtype).min
    x, y = np.array([least], dtype), np.array([-1], dtype)
    if np.dtype(dtype).itemsize < 4:  # promoted to int, then wrapped
        assert divide(x, y).tolist() == [least if operator == "/" else 0]
        return
    with pytest.raises(ValueError, match=f"divide: line 1, column 3: got {least} / -1 of integers"):
        divide(x, y)


def test_divisions_that_are_guarded_or_of_floats_are_fine():
    guarded = cuplug.elementwise("guarded(x: T, y: T) -> T", "y ? x / y : 0")
    x = np.arange(-500, 500)
    y = np.arange(1000) % 7
    expected = np.where(y, np.trunc(x / np.maximum(y, 1)), 0).astype(x.dtype)
    assert_same(guarded(x, y), expected)
    wide = cuplug.elementwise("wide(x: T, y: T) -> T", "(T)((__int128)x / y)")
    assert wide(np.array([7]), np.array([2])).tolist() == [3]
    with pytest.raises(ValueError, match="wide: line 1, column 17: got 7 / 0 of integers"):
        wide(np.array([7]), np.array([0]))
    ratio = cuplug.elementwise("ratio(x: T, y: T) -> T", "x / y")
    assert_same(ratio(np.array([1.0, -1.0]), np.zeros(2)), np.array([np.inf, -np.inf]))


def test_integers_wrap():
    x = np.array([2**31 - 1, -(2**31)], np.int32)
    following = cuplug.elementwise("following(x: T) -> T", "x + 1 > x ? x + 1 : x + 1 - 1")
    assert following(x).tolist() == [2**31 - 1, 1 - 2**31]
    with np.errstate(over="ignore"):
        assert_same(cuplug.elementwise("square(x: T) -> T", "x * x")(x), x * x)
