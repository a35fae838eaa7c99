# SPDX-License-Identifier: Apache-2.0
"""Histograms with even bins, with edges and of integers, compared with NumPy."""

import cuplug
import numpy as np
import pytest
from backends import FLOATING, SIGNED, UNSIGNED, assert_same, dtype_of
from cuplug.ops import bincount, histogram
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = [*SIGNED, *UNSIGNED, *FLOATING]
RANGES = [(10, 0, 3), (7, 0.1, 2.9), (1, -5, 5), (1000, -1, 30), (3, 50, 60), (20_000, 0, 3)]


def numbers(shape, dtype, seed=0) -> np.ndarray:
    """Return numbers from 0 to 3, many at the edges of bins; floats include NaN."""
    random, dtype = np.random.default_rng(seed), dtype_of(dtype)
    x = random.integers(0, 31, shape)
    if dtype.kind in "iu":
        return (x % 4).astype(dtype)
    return np.where(random.random(shape) < 0.05, np.nan, x * 0.1).astype(dtype)


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "bfloat16"])
@pytest.mark.parametrize(("bins", "low", "high"), RANGES)
def test_even_bins(backend, dtype, bins, low, high):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    if dtype == "float16" and bins > 10:
        pytest.skip("float16 has not as many edges")
    for shape in ((0,), (7,), (3, 30_001)):
        x = numbers(shape, dtype)
        wanted = np.histogram(x, bins, (low, high))[0].astype(np.int64)
        assert_same(backend(histogram, x, bins=bins, low=low, high=high), wanted)


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "bfloat16"])
def test_edges(backend, dtype):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    x = numbers((5, 20_000), dtype)
    for edges in ([0, 1, 2, 3], [0.5, 0.7, 2.9], [1], [0, 1, 1, 2], [0, 50]):
        ascending = np.array(edges).astype(x.dtype)
        assert_same(backend(histogram, x, ascending), np.histogram(x[x == x], ascending)[0])


def test_edges_of_bfloat16(backend):
    dtype = dtype_of("bfloat16")
    if not backend.supports(dtype):
        pytest.skip(f"{backend.name} has no bfloat16")
    x = numbers((1000,), "bfloat16")
    edges = np.array([0, 0.5, 1, 3]).astype(dtype)
    wide = x.astype(np.float32)
    wanted = np.histogram(wide[wide == wide], edges.astype(np.float32))[0]
    assert_same(backend(histogram, x, edges), wanted)
    wanted = np.histogram(wide[wide == wide], 4, (0, 4))[0]
    assert_same(backend(histogram, x, bins=4, low=0.0, high=4.0), wanted)


@pytest.mark.sanitizer
@settings(max_examples=30)
@given(
    x=st.lists(st.floats(-10, 10, width=32), max_size=50),
    low=st.floats(-10, 10),
    length=st.floats(0.01, 20),
    bins=st.integers(1, 100),
)
def test_any_numbers(backend, x, low, length, bins):
    x = np.array(x, np.float64)
    result = backend(histogram, x, bins=bins, low=low, high=low + length)
    assert_same(result, np.histogram(x, bins, (low, low + length))[0])


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
@pytest.mark.parametrize("size", [4, 100, 9000])
def test_bincount(backend, dtype, size):
    if not backend.supports(np.dtype(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    for shape in ((0,), (5,), (3, 40_000)):
        x = numbers(shape, dtype)
        wanted = np.bincount(x.ravel().astype(np.int64), minlength=size)
        assert_same(backend(bincount, x, size), wanted)


@pytest.mark.parametrize("value", [-1, 4, 2**62])
def test_a_number_without_a_bin(backend, value):
    with pytest.raises(IndexError, match=rf"index {value} at position 2 is out of bounds"):
        backend(bincount, np.array([1, 3, value]), 4)
        cuplug.synchronize()


@pytest.mark.sanitizer
@pytest.mark.parametrize("n", [0, 3])
def test_edges_that_do_not_ascend_are_refused(backend, n):
    for edges in ([0.0, 2.0, 1.0], [0.0, np.nan, 1.0]):
        with pytest.raises(ValueError, match="edges: got a smaller number at position 2, expected"):
            backend(histogram, np.ones(n), np.array(edges))
            cuplug.synchronize()
    assert_same(backend(histogram, np.ones(n), np.array([0.0, 1.0])), np.array([n]))


def test_many_edges_that_do_not_ascend_are_refused(backend):
    edges = np.arange(100_000.0)
    edges[70_001] = 69_999
    with pytest.raises(ValueError, match="edges: got a smaller number at position 70001, expected"):
        backend(histogram, np.ones(3), edges)
        cuplug.synchronize()


def test_a_range_without_numbers_is_refused():
    with pytest.raises(ValueError, match="histogram"):
        histogram(np.ones(3), bins=3, low=1.0, high=1.0)
    with pytest.raises(ValueError, match="histogram"):
        histogram(np.ones(3), bins=0, low=0.0, high=1.0)


@pytest.mark.parametrize(("low", "high"), [(-np.inf, np.inf), (0, np.inf), (-1e308, 1e308)])
def test_a_range_that_is_not_finite_is_refused(backend, low, high):
    message = "histogram: high: got a distance from low that is not finite, expected one that is"
    with pytest.raises(ValueError, match=message):
        backend(histogram, np.ones(3), 4, float(low), float(high))
