# SPDX-License-Identifier: Apache-2.0
"""Expressions of large arrays and of others that are constant along each row: the code reads one
element of these for each row."""

import itertools

import cuplug
import numpy as np
import pytest

ROWS = 512  # long enough that blocks end where rows do
SHAPES = [
    (160, 1, ROWS),
    (1, 7, ROWS),
    (160, 7, 1),
    (160, 1, 1),
    (1, 7, 1),
    (160, 7, ROWS),
    (1, 1, 1),
]
PAIRS = [(x, y) for x, y in itertools.product(SHAPES, repeat=2) if ROWS in (x[2], y[2])]
SUM = cuplug.elementwise("sum(x: T[...], y: T[...]) -> T[...]", "x + y")
RATIO = cuplug.elementwise("ratio(x: T[...], y: T[...]) -> T[...]", "x / y")
COUNTED = cuplug.elementwise("counted(x: T[...], y: T[...]) -> float64[...]", "exp(-x) * y + i + n")
MORE = cuplug.elementwise("more(inout x: T[...], y: T[...])", "x = x + y")
PICKED = cuplug.elementwise(
    "picked(x: T[...], y: T[...], table: T[m]) -> T[...]", "x + table[1] * y"
)


def made(shape, dtype, seed):
    return (np.random.default_rng(seed).random(shape) * 50 + 1).astype(dtype)


@pytest.mark.sample(6)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "complex64"])
@pytest.mark.parametrize(("first", "second"), PAIRS, ids=str)
def test_sums(first, second, dtype):
    x, y = made(first, dtype, 0), made(second, dtype, 1)
    np.testing.assert_array_equal(SUM(x, y), x + y)
    np.testing.assert_array_equal(SUM(x[::-1], y), x[::-1] + y)


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=str)
def test_functions_and_numbers_of_elements(first, second):
    x, y = made(first, "float32", 0), made(second, "float32", 1)
    shape = np.broadcast_shapes(first, second)
    numbers = np.arange(np.prod(shape)).reshape(shape)
    wanted = np.exp(-x.astype("f8")) * y + numbers + numbers.size
    np.testing.assert_allclose(COUNTED(x, y), wanted, rtol=1e-6)


def test_quotients_of_integers():
    x, y = made((160, 7, ROWS), "int32", 0), made((160, 7, 1), "int32", 1)
    np.testing.assert_array_equal(RATIO(x, y), x // y)
    y[150, 3] = 0
    with pytest.raises(ValueError, match="ratio: .*0"):
        RATIO(x, y)


def test_arrays_that_are_changed():
    x, y = made((160, 7, ROWS), "float32", 0), made((160, 1, 1), "float32", 1)
    wanted = x + y
    MORE(x, y)
    np.testing.assert_array_equal(x, wanted)


def test_arrays_that_are_read_anywhere():
    x, y = made((160, 7, ROWS), "float32", 0), made((160, 7, 1), "float32", 1)
    table = np.array([2, 3], "float32")
    np.testing.assert_array_equal(PICKED(x, y, table), x + 3 * y)


def test_the_same_bits_as_of_whole_arrays():
    x, y = made((160, 7, ROWS), "float32", 0), made((160, 7, 1), "float32", 1)
    whole = np.ascontiguousarray(np.broadcast_to(y, x.shape))
    assert COUNTED(x, y).tobytes() == COUNTED(x, whole).tobytes()
