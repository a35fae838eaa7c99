# SPDX-License-Identifier: Apache-2.0
"""Numbers of many bits that become floats of 16 and 8 bits are rounded once, to nearest."""

from fractions import Fraction
from functools import cache

import cuplug
import ml_dtypes
import numpy as np
import pytest
from cuplug import array_api as xp
from hypothesis import given, settings
from hypothesis import strategies as st

NARROW = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


@cache
def neighbours(name):
    """Return all finite numbers of a dtype that are not negative, in order."""
    dtype = dtype_of(name)
    bits = np.arange(1 << (8 * dtype.itemsize - 1), dtype=f"uint{8 * dtype.itemsize}")
    with np.errstate(all="ignore"):
        values = bits.view(dtype).astype("float64")
    return values[np.isfinite(values)]


def rounded(name, number):
    """Return a number rounded to nearest, ties to even, from exact distances: the reference."""
    values = neighbours(name)
    exact, size = Fraction(number), abs(Fraction(number))
    k = int(np.searchsorted(values, float(size)))
    near = [j for j in range(k - 2, k + 2) if 0 <= j < len(values)]
    best = min(near, key=lambda j: (abs(Fraction(values[j]) - size), j % 2))
    found = values[best]
    spacing = Fraction(values[-1]) - Fraction(values[-2])
    beyond, is_even = size - Fraction(values[-1]), name == "float8_e4m3fn"  # the last number is
    if beyond > spacing / 2 or (beyond == spacing / 2 and not is_even):
        found = np.nan if name == "float8_e4m3fn" else np.inf
    return -found if exact < 0 else found


def near_ties(name):
    """Return float64 numbers on, below and above the midpoints of a dtype."""
    values = neighbours(name)
    picked = values[:: max(1, len(values) // 500)]
    after = values[1:][:: max(1, len(values) // 500)]
    n = min(len(picked), len(after))
    ties = (picked[:n] + after[:n]) / 2
    scale = ties * 2.0**-40
    around = [ties, ties - scale, ties + scale, np.nextafter(ties, 0), np.nextafter(ties, np.inf)]
    last = values[-1] + (values[-1] - values[-2]) / 2
    around.append(np.array([last, np.nextafter(last, 0), np.nextafter(last, np.inf), values[-1]]))
    found = np.concatenate(around)
    return np.concatenate([found, -found])


def conversions(x, name):
    """Yield the same conversion in all ways."""
    dtype = dtype_of(name)
    own = cuplug.asarray(x, device="cpu")
    yield "astype", xp.astype(own, dtype)
    yield "value", cuplug.elementwise(f"v(x: {x.dtype}) -> {name}", "x")(x)
    if x.dtype.itemsize < 8 or x.dtype.kind == "f":  # statements assign double at most
        yield "statement", cuplug.elementwise(f"s(x: {x.dtype}) -> y: {name}", "y = x")(x)
    yield "fuse", cuplug.fuse(lambda x: x.astype(dtype))(x)
    yield "strided", cuplug.elementwise(f"v(x: {x.dtype}) -> {name}", "x")(np.repeat(x, 2)[::2])
    target = xp.zeros(x.shape, dtype=dtype, device="cpu")
    target[:] = own
    yield "assignment", target


def check(x, name):
    wanted = np.array([rounded(name, Fraction(v)) for v in x.tolist()])
    for how, found in conversions(x, name):
        seen = np.asarray(found)
        assert seen.dtype == dtype_of(name), how
        np.testing.assert_array_equal(seen.astype("float64"), wanted, err_msg=how)


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", NARROW)
def test_float64_near_ties(name):
    check(near_ties(name), name)


@pytest.mark.parametrize("name", NARROW)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_float64(name, data):
    values = neighbours(name)
    k = data.draw(st.integers(0, len(values) - 2))
    away = data.draw(st.integers(-3, 3)) * 2.0 ** data.draw(st.integers(-52, -12))
    tie = (values[k] + values[k + 1]) / 2
    check(np.array([tie, tie * (1 + away), -tie * (1 + away)]), name)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "uint32"])
def test_integers(name, dtype):
    limits, numbers = np.iinfo(dtype), []
    for power in range(3, limits.bits):
        for last in (2, 3, 5, 8, 9, 12):
            tie = (1 << power) + (1 << max(power - last, 0))
            numbers += [tie, tie + 1, tie - 1, 3 * tie + 1, -tie - 1, -tie, -tie + 1]
    inside = [x for x in numbers if limits.min <= x <= limits.max]
    check(np.array([*inside, limits.min, limits.max], dtype), name)


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", NARROW)
def test_numbers(name):
    """Python numbers, and reductions that end in a narrow float."""
    dtype = dtype_of(name)
    most = neighbours(name)[-1]
    for x in near_ties(name)[::37].tolist():
        if abs(x) > most:
            continue
        wanted = rounded(name, Fraction(x))
        with np.errstate(all="ignore"):
            full = xp.full((3,), x, dtype=dtype, device="cpu")
        np.testing.assert_array_equal(np.asarray(full).astype("float64"), [wanted] * 3)
        total = cuplug.reduction(
            f"total(x: float64) -> {name}", reduce="a + b", accumulate="float64"
        )
        ended = total(np.array([x, 0.0]))
        np.testing.assert_array_equal(np.asarray(ended).astype("float64"), wanted)
        pair = cuplug.reduction(
            f"two(x: float64) -> (low: {name}, sum: float64)",
            accumulate="s: float64",
            map="s = x",
            reduce="s = a.s + b.s",
            post="sum = a.s; low = a.s",
        )
        np.testing.assert_array_equal(np.asarray(pair(np.array([x]))[0]).astype("float64"), wanted)


def test_infinities_and_nans():
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e300, -1e-300, 5e-324])
    for name in NARROW:
        with np.errstate(all="ignore"):
            wanted = x.astype("float32").astype(dtype_of(name)).astype("float64")
        for how, found in conversions(x, name):
            seen = np.asarray(found).astype("float64")
            np.testing.assert_array_equal(seen, wanted, err_msg=how)
            numbers = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(seen)[numbers], np.signbit(wanted)[numbers])
