# SPDX-License-Identifier: Apache-2.0
"""Sums and products of finite numbers that leave the range of the dtype in between: in one order of
the elements, but not in all."""

from fractions import Fraction

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp
from hypothesis import example, given, settings
from hypothesis import strategies as st

LENGTHS = [1, 2, 4, 30, 1000, 40_000]


def on_host(x):
    return cuplug.asarray(np.ascontiguousarray(x), device="cpu")


def layouts(x):
    """Yield the numbers along an axis of some arrays, with the axis."""
    yield x, 0
    yield np.repeat(x[:, None], 5, 1), 0
    yield np.repeat(x[None], 3, 0), 1
    yield np.repeat(x[None], 70, 0).T, 0


def check(reduce, x, wanted, near):
    for array, axis in layouts(x):
        found = np.asarray(reduce(on_host(array), axis=axis))
        np.testing.assert_allclose(found, np.full_like(found, wanted), 0, near)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_that_cancel_each_other(dtype, n):
    top = np.finfo(dtype).max * 0.75
    check(xp.sum, np.tile([top, -top], n).astype(dtype), 0, 0)
    check(xp.mean, np.tile([top, -top], n).astype(dtype), 0, 0)
    half = np.repeat([top, -top], n).astype(dtype)
    check(xp.sum, half, 0, n * float(top * np.finfo(dtype).eps))


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_factors_that_cancel_each_other(dtype, n):
    great = 2.0 ** (np.finfo(dtype).maxexp - 2)
    check(xp.prod, np.tile([great, 1 / great], n).astype(dtype), 1, 0)
    check(xp.prod, np.repeat([great, -1 / great], n).astype(dtype), (-1) ** n, 0)
    check(xp.prod, np.tile([1 / great, great], n).astype(dtype)[:-1], 1 / great, 0)


@pytest.mark.parametrize("n", LENGTHS)
def test_complex_numbers(n):
    check(xp.sum, np.tile([1e308 - 1e308j, -1e308 + 1e308j], n), 0, 0)


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_values_that_no_order_changes(name, dtype):
    """Elements that are infinite, NaN or zero, and results beyond the range."""
    special = [np.inf, -np.inf, np.nan, 0.0, -0.0, np.finfo(dtype).max, 3.0, -np.finfo(dtype).tiny]
    for first in special:
        for second in special:
            x = np.array([1, first, 2, second, 1], dtype)
            with np.errstate(all="ignore"):
                wanted = getattr(np, name)(x.astype(np.longdouble)).astype(dtype)
                for array, axis in layouts(x):
                    found = np.asarray(getattr(xp, name)(on_host(array), axis=axis))
                    np.testing.assert_allclose(found, np.full_like(found, wanted), 1e-6)


FACTORS = st.sampled_from([1e30, 1e-30, -1e38, 1e-38, 1.5, -1e-40])
NUMBERS = st.sampled_from([1.7e308, -1.7e308, 9e307, -9e307, 1e300, -1e300, 1.0, -1.0, 0.0])


@settings(deadline=None, max_examples=60)
@given(st.lists(NUMBERS, min_size=1, max_size=300))
@example([1e308, -1e308] * 2)
def test_sums_are_infinite_where_the_exact_sum_is(numbers):
    exact, far = sum(map(Fraction, numbers)), Fraction(np.finfo(float).max)
    found = float(xp.sum(on_host(np.array(numbers))))
    if abs(exact) > far * (1 + Fraction(1, 2**40)):
        assert found == np.inf * (1 if exact > 0 else -1)
    elif abs(exact) < far * (1 - Fraction(1, 2**40)):
        near = Fraction(2) ** -53 * len(numbers) * sum(abs(Fraction(x)) for x in numbers)
        assert abs(Fraction(found) - exact) <= near


@settings(deadline=None, max_examples=60)
@given(st.lists(FACTORS, min_size=1, max_size=300))
def test_products_are_those_of_the_exact_numbers(numbers):
    x, least = np.array(numbers, "f4"), float(np.finfo("f4").smallest_subnormal)
    exact = Fraction(1)
    for each in x:
        exact *= Fraction(float(each))
    found = float(xp.prod(on_host(x)))
    if abs(exact) > Fraction(float(np.finfo("f4").max)):
        assert found == np.inf * (1 if exact > 0 else -1)
    elif abs(exact) < Fraction(least) / 4:
        assert found == 0
    else:
        np.testing.assert_allclose(found, float(exact), 1e-6, least)


@pytest.mark.slow
def test_reductions_of_other_texts():
    """Conversions of elements and of the result belong to the reduction."""
    scaled = cuplug.reduction(
        "scaled(x: T, y: T, by: float64 = 1) -> T",
        map="x * y * by",
        reduce="b + a",
        post="a / n + 1",
    )
    x = np.tile([1e154, -1e154], 40)
    np.testing.assert_array_equal(scaled(x, np.full(80, 1e154), by=1.5, axis=0), 1)
    numbered = cuplug.reduction("numbered(x: T) -> T", map="i % 2 ? -x : x", reduce="a + b")
    np.testing.assert_array_equal(numbered(np.full((3, 2000), 1e308), axis=1), [0, 0, 0])
    fused = cuplug.fuse(lambda x: xp.exp(x.sum(axis=-1)))
    np.testing.assert_array_equal(fused(np.tile([1e308, -1e308], (3, 50))), [1, 1, 1])
