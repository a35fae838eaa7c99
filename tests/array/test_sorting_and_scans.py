# SPDX-License-Identifier: Apache-2.0
"""Functions of cuplug.array_api in stock plugins: order, sets, scans, searches, positions."""

import itertools

import numpy as np
import pytest
from cuplug import array_api as xp

PLACES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
with_device = pytest.mark.parametrize("device", PLACES)
X = np.array([[3.0, -1, np.nan, 3], [0, 7, -1, 2]])
MANY = np.random.default_rng(0).integers(-9, 9, (30, 40))


def same(result, expected):
    np.testing.assert_array_equal(result.numpy(), expected)


@with_device
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_order(device, axis):
    for x in (X, X.astype("float32"), MANY, MANY.T[::2, ::-1], MANY > 0):
        y = xp.asarray(x, device=device)
        same(xp.sort(y, axis=axis), np.sort(x, axis))
        same(xp.argsort(y, axis=axis), np.argsort(x, axis, kind="stable"))
        same(xp.sort(y, axis=axis, descending=True), np.flip(np.sort(x, axis), axis))


@with_device
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex64", "complex128"])
def test_sets(device, dtype):
    x = (MANY % 5 + (1j * (MANY % 3) if dtype.startswith("c") else 0)).astype(dtype)
    for part in (x, x[:0], x[0, 0]):
        y, wanted = xp.asarray(part, device=device), np.unique_all(part)
        for result, expected in zip(xp.unique_all(y), wanted, strict=True):
            same(result, expected)
        same(xp.unique_values(y), wanted.values)
        same(xp.unique_counts(y).counts, wanted.counts)
        same(xp.unique_inverse(y).inverse_indices, wanted.inverse_indices)


@with_device
def test_scans(device):
    y, small = xp.asarray(MANY, device=device), MANY.astype("int8")
    same(xp.cumulative_sum(y, axis=0), np.cumsum(MANY, 0))
    same(xp.cumulative_sum(y, axis=1, include_initial=True)[:, 1:], np.cumsum(MANY, 1))
    assert xp.cumulative_sum(xp.asarray(small, device=device), axis=1).dtype == np.int64
    short = xp.cumulative_sum(xp.asarray(small, device=device), axis=1, dtype="int8")
    assert short.dtype == np.int8
    same(xp.cumulative_prod(xp.asarray(X[1], device=device)), np.cumprod(X[1]))
    same(xp.diff(y, axis=0, n=2), np.diff(MANY, 2, 0))
    around = xp.asarray(MANY[:, :1], device=device)
    same(xp.diff(y, prepend=around, append=around), np.diff(MANY, 1, 1, MANY[:, :1], MANY[:, :1]))


@with_device
@pytest.mark.parametrize("shape", [(300, 700), (2000, 40), (3, 900, 130), (2, 20000, 9)])
def test_scans_down_columns_by_several_threads(device, shape):
    x = np.random.default_rng(6).integers(-1000, 1000, shape)
    for dtype in ("int32", "int64", "float32", "float64", "complex64"):
        ours = xp.asarray(x.astype(dtype), device=device)
        found = xp.cumulative_sum(ours, axis=-2, include_initial=True).numpy()
        wanted = np.cumsum(x, axis=-2)  # which all of these dtypes can represent
        np.testing.assert_array_equal(found[..., 1:, :], wanted)
        assert not found[..., :1, :].any()


@with_device
def test_searches(device):
    x, values = np.sort(MANY.ravel()), MANY[:5].astype("float32")
    y, seen = xp.asarray(x, device=device), xp.asarray(values, device=device)
    same(xp.searchsorted(y, seen, side="right"), np.searchsorted(x, values, "right"))
    turned, order = xp.asarray(x[::-1], device=device), np.arange(x.size)[::-1]
    sorter = xp.asarray(order, device=device)
    same(xp.searchsorted(turned, seen, sorter=sorter), np.searchsorted(x, values))
    for result, expected in zip(xp.nonzero(y), np.nonzero(x), strict=True):
        same(result, expected)


@with_device
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("value", [0, 2, 255, 256, -1, 2**70, -(2**70), 2.5, True, np.int8(-1)])
def test_searches_for_one_number(device, side, value):
    """Also beyond the dtype."""
    x = np.array([0, 2, 2, 255], "uint8")
    seen = xp.searchsorted(xp.asarray(x, device=device), value, side=side)
    assert (seen.shape, int(seen)) == ((), int(np.searchsorted(x, value, side)))


@with_device
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "uint8", "uint32", "int64"]
)
def test_searches_for_every_kind_of_number(device, side, dtype):
    """Zeros of both signs, infinities and NaNs among others, in x and in the values."""
    random = np.random.default_rng(5)
    few = [0, 1, 2, 2, 3, np.iinfo(dtype).max] if dtype[0] in "iu" else [-np.inf, -1, -0.0, 0.0, 2,
           np.inf, np.nan]  # fmt: skip
    for n_found, n_values in itertools.product((0, 1, 2, 7, 300), (1, 15, 16, 17, 333, 600)):
        x = np.sort(random.choice(np.array(few, dtype), n_found))
        for chosen in (few, few[:-1]):
            values = random.choice(np.array(chosen, dtype), n_values)
            seen = xp.searchsorted(
                xp.asarray(x, device=device), xp.asarray(values, device=device), side=side
            )
            same(seen, np.searchsorted(x, values, side))


@with_device
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int16", "float16", "float32", "int64", "float64"]
)
def test_few_and_many_values(device, dtype):
    """The number of values that fits a table, one more, one more at the end, and NaNs."""
    random = np.random.default_rng(6)
    for n, n_values in itertools.product((4095, 4096, 70_001), (1, 2, 3, 255, 256, 257, 600)):
        x = (random.integers(0, n_values, n) - n_values // 2).astype(dtype)
        changed = x.copy()
        changed[-1] = 1 if dtype == "bool" else np.nan if dtype[0] == "f" else 99
        zeros = np.where(x == 0, -x, x) if dtype[0] == "f" else x
        for each in (x, changed, zeros):
            seen = xp.unique_values(xp.asarray(each, device=device))
            same(seen, np.unique(each, equal_nan=False))


@with_device
def test_positions(device):
    y, order = xp.asarray(MANY, device=device), np.argsort(MANY, 1)
    index = xp.asarray(order, device=device)
    same(xp.take_along_axis(y, index, axis=1), np.take_along_axis(MANY, order, 1))
    row = xp.asarray(MANY[:1], device=device)
    same(xp.take_along_axis(row, index, axis=1), MANY[0][order])
    same(xp.repeat(y, 3), np.repeat(MANY, 3))
    times = np.arange(30) % 4
    same(xp.repeat(y, xp.asarray(times, device=device), axis=0), np.repeat(MANY, times, 0))


@with_device
def test_masks(device):
    y, mask = xp.asarray(MANY, device=device, copy=True), MANY > 2
    chosen = xp.asarray(mask, device=device)
    same(y[chosen], MANY[mask])
    values, expected = np.arange(mask.sum()), MANY.copy()
    y[chosen], expected[mask] = xp.asarray(values, device=device), values
    same(y, expected)
    same(y.T[chosen.T], expected.T[mask.T])
    with pytest.raises(ValueError, match="broadcast"):
        y[chosen] = xp.asarray(values[1:], device=device)
    same(y, expected)


@pytest.mark.parametrize(
    ("call", "exception", "message"),
    [
        (lambda: xp.sort(xp.asarray([1j])), TypeError, "sort: x: got complex128"),
        (lambda: xp.argsort(xp.asarray(1.0)), IndexError, "argsort: axis"),
        (lambda: xp.cumulative_sum(xp.asarray(MANY)), ValueError, "axis: got None"),
        (lambda: xp.cumulative_sum(xp.asarray(1.0)), ValueError, "axis: got None"),
        (lambda: xp.cumulative_sum(xp.asarray(MANY), axis=2), IndexError, "sum: axis: got 2"),
        (lambda: xp.max(xp.asarray(MANY), axis=2), IndexError, "max: axis: got 2, expected -2"),
        (lambda: xp.argmin(xp.asarray(MANY), axis=2**70), IndexError, "argmin: axis: got"),
        (lambda: xp.sum(xp.asarray(MANY), axis=0.0), TypeError, "sum: axis"),
        (lambda: xp.diff(xp.asarray([1, 2]), n=-1), ValueError, "diff: n: got -1"),
        (lambda: xp.repeat(xp.asarray([1, 2]), -1), ValueError, "repeats"),
        (lambda: xp.repeat(xp.asarray([1, 2]), xp.asarray([1.0, 2])), TypeError, "repeats"),
        (lambda: xp.unique_all([1, 2]), TypeError, "unique_all: x: got list"),
    ],
)
def test_what_is_refused(call, exception, message):
    with pytest.raises(exception, match=message):
        call()
