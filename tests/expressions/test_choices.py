# SPDX-License-Identifier: Apache-2.0
"""Reductions that choose an element, compared with NumPy."""

import itertools

import cuplug
import numpy as np
import pytest
from backends import assert_same
from expression_values import LONG, values

NAN_IS_BEST = "(b {} a) | ((b != b) & (a == a))"
ARGMAX = cuplug.reduction("argmax(x: T) -> int64", choose=NAN_IS_BEST.format(">"), post="i")
LEAST = cuplug.reduction(
    "least(x: T) -> (value: T, index: int64)",
    choose=NAN_IS_BEST.format("<"),
    post="value = a; index = i",
)


@pytest.mark.sample(15)
@pytest.mark.sanitizer
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool", "uint64"])
@pytest.mark.parametrize("shape", LONG, ids=str)
def test_the_first_of_the_best_is_chosen(backend, shape, dtype):
    """Many values are equal."""
    x = (values(shape, "float64") % 50).astype(dtype)
    if not backend.supports(x.dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    for v, axis in itertools.product((x, x.T, x[::-1]), (None, *range(x.ndim))):
        got = backend.take(ARGMAX(backend.put(v), axis=axis, **backend.keywords))
        assert_same(np.asarray(got), np.asarray(v.argmax(axis)))
        found = LEAST(backend.put(v), axis=axis, **backend.keywords)
        assert_same(np.asarray(backend.take(found.index)), np.asarray(v.argmin(axis)))
        assert_same(np.asarray(backend.take(found.value)), np.asarray(v.min(axis)))


@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_rows_of_any_length(dtype):
    """Rows shorter than the lanes, and rows whose last vector overlaps the previous one."""
    for n in range(1, 300, 3):
        x = values((min(n, 40), n), "float64", n).astype(dtype)
        assert_same(ARGMAX(x, axis=1), x.argmax(1))


@pytest.mark.sanitizer
@pytest.mark.parametrize("shape", [(7, 9), (50, 4000), (4000, 50)], ids=str)
def test_nan_is_chosen(backend, shape):
    x = np.random.default_rng(0).standard_normal(shape)
    x[3, 5] = x[3, 7] = x[5, 5] = np.nan
    for axis in (None, 0, 1):
        got = backend.take(ARGMAX(backend.put(x), axis=axis, **backend.keywords))
        assert_same(np.asarray(got), np.asarray(x.argmax(axis)))


@pytest.mark.sanitizer
@pytest.mark.parametrize("shape", [(7, 9), (50, 4000), (4000, 50)], ids=str)
def test_a_choice_between_two_that_are_as_good(backend, shape):
    """Either may be chosen, whatever the text."""
    last = cuplug.reduction("last(x: T) -> int64", choose="b >= a", post="i")
    unordered = cuplug.reduction("unordered(x: T) -> int64", choose="!(b <= a)", post="i")
    x = values(shape, "float64") % 50
    for axis in (0, 1):
        at = np.asarray(backend.take(last(backend.put(x), axis=axis, **backend.keywords)))
        assert_same(np.take_along_axis(x, np.expand_dims(at, axis), axis).max(axis), x.max(axis))
        nan = np.full_like(x, np.nan)
        at = np.asarray(backend.take(unordered(backend.put(nan), axis=axis, **backend.keywords)))
        assert set(at.ravel()) <= set(range(shape[axis]))


def test_min_and_max_of_bools():
    x, y = np.random.default_rng(0).random((2, 1000)) < 0.5
    for name, ufunc in (("min", np.minimum), ("max", np.maximum)):
        chosen = cuplug.elementwise("f(x: T, y: T) -> T", f"{name}(x, y)")(x, y)
        assert chosen.dtype == bool
        assert np.array_equal(chosen, ufunc(x, y))
        mixed = cuplug.elementwise("f(x: T, y: U) -> U", f"{name}(x, y)")
        assert np.array_equal(mixed(x, np.int8([-3])), ufunc(x, np.int8([-3])))
