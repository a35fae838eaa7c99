# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy beyond the standard: NumPy's values."""

import warnings

import numpy as np
import pytest
from cuplug import array_api as xp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy
from same_as_numpy import check, compare, ours

FLOATS = st.floats(-1e3, 1e3, width=32)

# ---- Without NaN, and at quantiles -------------------------------------------------------------

SOME_NAN = of_numpy.arrays(
    "float64", (4, 5), elements=st.one_of(FLOATS, st.just(np.nan), st.just(2.0))
)
OF_NAN = ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nanmedian"]


@given(
    x=SOME_NAN,
    name=st.sampled_from(OF_NAN),
    axis=st.sampled_from([None, 0, 1, -1]),
    keepdims=st.booleans(),
)
def test_reductions_without_nan(x, name, axis, keepdims):
    check(name, x, axis=axis, keepdims=keepdims, tolerance=1e-9)


@given(
    x=SOME_NAN,
    name=st.sampled_from(["nancumsum", "nancumprod"]),
    axis=st.sampled_from([None, 0, 1]),
)
def test_cumulative_sums_without_nan(x, name, axis):
    check(name, x, axis=axis, tolerance=1e-9)


@pytest.mark.parametrize("name", [*OF_NAN, "nancumsum", "nan_to_num", "median", "ptp", "average"])
def test_integers_have_no_nan(name):
    check(name, np.array([[3, 1, 7], [2, 2, 9]]))


def test_places_without_nan():
    x = np.array([[np.nan, 3, 1, 3], [4, np.nan, np.nan, 4.5]])
    for name in ("nanargmax", "nanargmin"):
        for axis in (None, 0, 1):
            if axis != 0:
                compare(getattr(xp, name)(ours(x), axis), getattr(np, name)(x, axis))
        with pytest.raises(ValueError, match="only NaN"):
            getattr(xp, name)(ours(x * np.array([[1], [np.nan]])), 1)


def test_numbers_in_place_of_nan():
    x = np.array([1, np.nan, np.inf, -np.inf])
    check("nan_to_num", x)
    check("nan_to_num", x, nan=7.0, posinf=9.0, neginf=-9.0)
    z = np.empty(4, complex)
    z.real, z.imag = x, x[::-1]
    check("nan_to_num", z)
    y = ours(x)
    assert xp.nan_to_num(y, copy=False) is y
    np.testing.assert_array_equal(y.numpy(), np.nan_to_num(x))
    z = ours(x)
    assert xp.nan_to_num(z) is not z
    np.testing.assert_array_equal(z.numpy(), x)


METHODS = ["linear", "lower", "higher", "nearest", "midpoint", "hazen", "weibull"]
METHODS += ["median_unbiased", "normal_unbiased", "interpolated_inverted_cdf"]
METHODS += ["inverted_cdf", "averaged_inverted_cdf", "closest_observation"]


@given(
    x=of_numpy.arrays(
        "float64",
        st.sampled_from([(7,), (1, 4), (3, 5), (2, 3, 4)]),
        elements=st.one_of(FLOATS, st.just(np.nan)),
    ),
    q=st.one_of(st.floats(0, 1), st.lists(st.sampled_from([0, 0.1, 0.5, 0.75, 1]), max_size=4)),
    axis=st.sampled_from([None, 0, -1]),
    method=st.sampled_from(METHODS),
    keepdims=st.booleans(),
    name=st.sampled_from(["quantile", "nanquantile"]),
)
def test_quantiles(x, q, axis, method, keepdims, name):
    q = np.array(q, "float64") if isinstance(q, list) else q
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        wanted = getattr(np, name)(x, q, axis=axis, method=method, keepdims=keepdims)
    seen = getattr(xp, name)(ours(x), q, axis=axis, method=method, keepdims=keepdims)
    compare(seen, wanted, 1e-9)


def test_percentiles_medians_and_their_errors():
    x = np.random.default_rng(1).normal(size=(5, 6)).astype("float32")
    check("percentile", x, 30.0, axis=1, tolerance=1e-5)
    check("nanpercentile", x, 30.0, axis=1, tolerance=1e-5)
    check("median", x, axis=(0, 1), tolerance=1e-6)
    check("median", np.array([np.inf, np.inf, 1.0, 2.0]))
    assert np.isnan(float(xp.median(ours(np.zeros(0)))))
    for call, error in (
        (lambda: xp.quantile(ours(x), 1.5), "q: got 1.5, expected 0 to 1"),
        (lambda: xp.quantile(ours(x), 0.5, method="best"), "method: got 'best'"),
    ):
        with pytest.raises(ValueError, match=error):
            call()
    with pytest.raises(TypeError, match="complex64"):
        xp.median(ours(x.astype("complex64")))


# ---- Histograms, sets, comparisons -------------------------------------------------------------


@given(
    x=of_numpy.arrays("float64", st.integers(0, 40), elements=FLOATS),
    bins=st.one_of(st.integers(1, 12), st.just(np.array([-5.0, 0, 1, 1, 30]))),
    weighted=st.booleans(),
    density=st.booleans(),
)
def test_histograms(x, bins, weighted, density):
    weights = np.arange(x.size) / 2 if weighted else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        wanted = np.histogram(x, bins, weights=weights, density=density)
    seen = xp.histogram(ours(x), bins, weights=weights, density=density)
    compare(list(seen), list(wanted), 1e-9)


def test_histograms_of_other_kinds():
    x = np.array([1.0, 2, 1, 5, 9, 4])
    check("histogram", x, 4, range=(2, 6))
    check("histogram", x.astype("float32"), 5)
    check("histogram", np.array([4, 1, 1, 7]), 3)
    check("histogram_bin_edges", x, 3)
    check("bincount", np.array([0, 3, 1, 3]))
    check("bincount", np.array([0, 3, 1, 3], "uint8"), minlength=7)
    check("bincount", np.array([], "int64"), minlength=2)
    check("bincount", np.array([0, 3, 1, 3]), weights=np.array([0.5, 1, 2, 4]))
    y = np.array([0.5, 2.5, 2.5, 0.1, 9, 3])
    check("histogram2d", x, y, 3)
    check("histogram2d", x, y, [np.array([0, 2.0, 9]), 4])
    compare(
        list(xp.histogramdd(ours(np.stack([x, y], 1)), (2, 3), density=True)),
        list(np.histogramdd(np.stack([x, y], 1), (2, 3), density=True)),
    )
    for bins in (np.array([0, 2.0, 4]), np.array([4, 2.0, 0])):
        for right in (False, True):
            check("digitize", x, bins, right=right)
    for call in (
        lambda: xp.histogram(ours(x), [3.0, 1]),
        lambda: xp.bincount(ours([-1])),
        lambda: xp.digitize(ours(x), [1.0, 3, 2]),
        lambda: xp.histogram(ours(x), 0),
        lambda: xp.histogram(ours(x * np.nan)),
    ):
        with pytest.raises(ValueError, match="got"):
            call()


@given(
    x=of_numpy.arrays("float64", (3, 4), elements=st.sampled_from([0, 1, 2, 5, np.nan])),
    y=of_numpy.arrays("int64", st.integers(0, 5), elements=st.integers(0, 6)),
    invert=st.booleans(),
)
def test_elements_in_sets(x, y, invert):
    check("isin", x, y, invert=invert)
    plain = np.nan_to_num(x)
    for name in ("union1d", "intersect1d", "setdiff1d"):
        check(name, plain, y.astype(float))


def test_comparisons():
    x, y = (
        np.array([1, np.nan, np.inf, 3, -np.inf]),
        np.array([1 + 1e-9, np.nan, np.inf, 4, np.inf]),
    )
    check("isclose", x, y)
    check("isclose", x, y, equal_nan=True)
    check("isclose", np.array([1, 200], "uint8"), np.array([2, 100], "uint8"), atol=99.5)
    assert xp.allclose(ours(x[:1]), y[:1]) is True
    assert np.allclose(ours(x), ours(y)) is False
    assert xp.array_equal(ours(x), ours(x)) is False
    assert xp.array_equal(ours(x), x, equal_nan=True) is True
    assert xp.array_equiv(ours(x[:1]), np.ones((2, 3))) is True
    assert xp.array_equiv(ours(x), np.ones((2, 3))) is False
    with pytest.raises(TypeError, match="complex"):
        xp.isin(ours([1j]), [1j])


def test_unique_positions_and_choices():
    x = np.array([[3, 1, 3], [0, 1, 7]])
    check("unique", x)
    mine = np.unique(ours(x), return_counts=True, return_index=True)
    compare(list(mine), list(np.unique(x, return_counts=True, return_index=True)))
    check("unique", np.array([np.nan, 1, np.nan, 1]), equal_nan=False)
    nans = np.array([np.nan, 1, np.nan, 1, np.nan])
    for flags in ({}, {"return_index": True, "return_inverse": True, "return_counts": True}):
        compare(np.unique(ours(nans), **flags), np.unique(nans, **flags))
    check("argwhere", x)
    check("flatnonzero", x)
    check("compress", np.array([True, False, True]), x, axis=1)
    check("partition", x, 1)
    np.testing.assert_array_equal(np.sort(xp.argpartition(ours(x), 1).numpy()), [[0, 1, 2]] * 2)
    conditions, choices = [x > 5, x > 2], [x * 10, x + 0.5]
    wanted = np.select(conditions, choices, -1)
    seen = xp.select([ours(c) for c in conditions], [ours(c) for c in choices], -1)
    compare(seen, wanted)
    for functions in ([lambda v: v * 10, 7], [lambda v: v * 10, 7, lambda v: -v]):
        mine = [ours(c) for c in conditions]
        compare(np.piecewise(ours(x), mine, functions), np.piecewise(x, conditions, functions))
        compare(
            xp.piecewise(ours(x), conditions, functions), np.piecewise(x, conditions, functions)
        )


@pytest.mark.parametrize("method", METHODS)
def test_methods_of_quantiles(method):
    x = np.random.default_rng(3).normal(size=(8, 5))
    for dtype in ("float64", "float32", "int64", "int8"):
        y = (x * 9).astype(dtype)
        for q in (0.3, [0.0, 0.25, 0.7, 1.0], np.float64(0.4)):
            check("quantile", y, q, axis=0, method=method, tolerance=1e-6)
    out = ours(np.zeros(8))
    assert np.quantile(ours(x), 0.5, 1, out, method=method) is out
    np.testing.assert_allclose(out.numpy(), np.quantile(x, 0.5, 1, method=method))
    assert np.median(ours(x), 1, out) is out
