# SPDX-License-Identifier: Apache-2.0
"""Statistics, products, signals and shapes beyond the standard: NumPy's values."""

import itertools

import numpy as np
import pytest
from cuplug import array_api as xp
from cuplug.array_api.beyond.products import by_pairs
from cuplug.array_api.beyond.signals import by_windows
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy
from same_as_numpy import check, compare, ours

FLOATS = st.floats(-1e3, 1e3, width=32)


# ---- Statistics, products, signals ---------------------------------------------------------------


def test_means_and_covariances():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(3, 8)), rng.normal(size=(3, 8))
    for name in ("cov", "corrcoef"):
        for a in (x, x + 1j * y, x[0], np.arange(12).reshape(3, 4)):
            check(name, a)
        check(name, x, y)
        check(name, x, rowvar=False)
    check("cov", x, bias=True)
    check("cov", x, ddof=3)
    weights = np.arange(x.shape[1]) % 3
    check("cov", x, fweights=weights)
    check("cov", x, aweights=weights + 0.5)
    check("cov", x, fweights=weights, aweights=weights + 0.5, ddof=2)
    for name in ("fweights", "aweights"):
        with pytest.raises(ValueError, match=name):
            np.cov(ours(x), **{name: weights - 1})
    check("average", x, axis=1, weights=np.arange(8))
    check("average", x, weights=y**2, returned=True)
    check("average", x, axis=0, returned=True, keepdims=True)
    with pytest.raises(ValueError, match="weights: got shape"):
        xp.average(ours(x), axis=0, weights=np.ones(8))


@pytest.mark.parametrize("dtype", ["int32", "float64", "complex128"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_convolutions(name, mode, dtype):
    rng = np.random.default_rng(3)
    for n, m in ((1, 1), (7, 3), (3, 7), (8, 4), (4, 8), (5, 5), (6, 1)):
        x, y = (rng.integers(-9, 9, k).astype(dtype) for k in (n, m))
        if dtype == "complex128":
            x, y = x * (1 + 2j), y * (3 - 1j)
        check(name, x, y, mode=mode)
        compare(by_windows(name, ours(x), ours(y), mode), getattr(np, name)(x, y, mode))


def test_long_convolutions_are_made_in_parts(monkeypatch):
    from cuplug.array_api.beyond import signals

    monkeypatch.setattr(signals, "_WINDOWED", 20)
    x, y = np.arange(50.0), np.arange(6.0)
    compare(by_windows("convolve", ours(x), ours(y), "full"), np.convolve(x, y))


@given(
    x=of_numpy.arrays("float64", (6,), elements=st.one_of(FLOATS, st.just(np.nan))),
    xp_=st.lists(st.integers(-900, 900), min_size=1, max_size=6, unique=True),
    bounds=st.sampled_from([{}, {"left": -1.0, "right": 7.0}]),
)
def test_interpolation(x, xp_, bounds):
    places = np.sort(np.array(xp_, "float64"))
    values = places**2 / 7
    wanted = np.interp(x, places, values, **bounds)
    compare(xp.interp(ours(x), places, values, **bounds), wanted, 1e-9)


def test_periodic_and_complex_interpolation():
    x = np.array([-180.0, -170, 0, 185, 190, 355])
    check("interp", x, np.array([190.0, 10, 355]), np.array([5.0, 10, 3]), period=360)
    check("interp", x, np.array([-200.0, 0, 300]), np.array([1 + 2j, 0, 3j]))
    with pytest.raises(ValueError, match="got shapes"):
        xp.interp(ours(x), [1.0, 2], [1.0])


def test_interpolation_with_infinities_and_nan():
    x = np.array([-np.inf, -1, -0.5, 0, 0.5, 1, np.inf, np.nan])
    choices = (-np.inf, 1.0, np.inf, np.nan)
    for n in (1, 2, 3):
        for places in itertools.combinations((-np.inf, -1.0, 0.0, 1.0, np.inf), n):
            for values in itertools.product(choices, repeat=n):
                real, imaginary = np.array(values), np.array(values[::-1])
                check("interp", x, np.array(places), real)
                if n < 3:
                    both = np.empty(n, "complex128")
                    both.real, both.imag = real, imaginary
                    check("interp", x, np.array(places), both)


def test_gradients_and_integrals():
    x = np.random.default_rng(4).normal(size=(5, 6))
    places = np.array([0, 1.0, 1.5, 3.5, 4, 6])
    for order in (1, 2):
        check("gradient", x, edge_order=order)
        check("gradient", x, 2.0, axis=0, edge_order=order)
        check("gradient", x, places, axis=1, edge_order=order)
        check("gradient", x, 0.5, places, edge_order=order)
    check("gradient", np.array([1, 4, 9, 16]))
    check("trapezoid", x, axis=0)
    check("polyval", np.array([2.0, -1, 3]), x)
    check("trapezoid", x, places)
    check("trapezoid", x, dx=0.5)
    for call, error in (
        (lambda: xp.gradient(ours(x), 1.0, 2.0, 3.0), TypeError),
        (lambda: xp.gradient(ours(x[:1]), axis=0), ValueError),
        (lambda: xp.gradient(ours(x), edge_order=3), ValueError),
    ):
        with pytest.raises(error, match="gradient"):
            call()


def test_products():
    rng = np.random.default_rng(5)
    x, y, v = rng.normal(size=(2, 3)), rng.normal(size=(3, 4)), rng.normal(size=3)
    for a, b in ((x, y), (v, y), (x, v), (v, v), (x, rng.normal(size=(5, 3, 2)))):
        check("dot", a, b)
        compare(ours(a).dot(ours(b)), a.dot(b))
    check("inner", x, y.T)
    check("vdot", x + 1j, x * 2)
    check("outer", x, v)
    for a, b in ((x, y), (v, x), (x, v), (v, v)):
        check("kron", a, b)
    check("trace", rng.normal(size=(3, 4, 2)), 1, 1, 0)
    check("diagonal", rng.normal(size=(3, 4, 2)), -1, 1, 0)
    for k in (-1, 0, 2):
        check("diag", v, k)
        check("diag", x, k)


SUMS = ["ij,jk->ik", "ij,jk", "ii->i", "ii", "ij->", "ij,ij->", "i,j->ij", "bij,bjk->bik"]
SUMS += ["...ij,...jk->...ik", "ij,jk,kl->il", "ij,kj,ki->i", "i...->...", "ijk,ijk->ik", "ij->ji"]
SUMS += ["ij,i->j", "bij,kj->bki", "...,...", "ij, kl", "abi,i->ba", "ijj->ji"]


@pytest.mark.parametrize("dtype", ["float64", "complex64", "int32"])
@pytest.mark.parametrize("text", SUMS)
def test_einstein_sums(text, dtype):
    rng = np.random.default_rng(6)
    operands = []
    for term in text.replace(" ", "").split("->")[0].split(","):
        letters = term.replace("...", "yz")
        operands.append(rng.integers(-4, 5, [3] * len(letters)).astype(dtype))
    wanted = np.einsum(text, *operands)
    check("einsum", text, *operands, tolerance=1e-5)
    compare(by_pairs(text, [ours(x) for x in operands], "greedy"), np.asarray(wanted), 1e-5)


def test_einstein_sums_that_broadcast_or_do_not_fit():
    x, y = np.arange(6.0).reshape(1, 2, 3), np.arange(24.0).reshape(4, 3, 2)
    wanted = np.einsum("...ij,...jk->...ik", x, y)
    compare(by_pairs("...ij,...jk->...ik", [ours(x), ours(y)], "greedy"), wanted)
    for text in ("ij,jk", "ijk,jkl->q", "ijk,jkl->ii"):
        with pytest.raises(ValueError, match="einsum"):
            by_pairs(text, [ours(x), ours(y)], "greedy")


# ---- Shapes --------------------------------------------------------------------------------------


@given(
    x=of_numpy.arrays("int64", st.sampled_from([(3,), (2, 3), (2, 3, 4)])),
    width=st.sampled_from([0, 2, (1, 2)]),
    mode=st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]),
)
def test_padding(x, width, mode):
    check("pad", x, width, mode=mode)


def test_padding_of_some_dimensions():
    x = np.arange(6.0).reshape(2, 3)
    check("pad", x, ((0, 1), (2, 0)), constant_values=((1, 2), (3, 4)))
    compare(xp.pad(ours(x), {1: (2, 1)}), np.pad(x, ((0, 0), (2, 1))))
    y = ours(x)
    assert xp.pad(y, 0).data_ptr != y.data_ptr
    for call in (lambda: xp.pad(y, -1), lambda: xp.pad(y, 1, "mode")):
        with pytest.raises(ValueError, match="pad"):
            call()


def test_joined_parted_and_turned():
    x, v = np.arange(12).reshape(3, 4), np.arange(4)
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        for a in (np.array(3), v, x, x[None]):
            check(name, a)
    for name in ("vstack", "hstack", "dstack", "column_stack"):
        for a in (x, v):
            compare(getattr(xp, name)([ours(a), ours(a)]), getattr(np, name)([a, a]))
            compare(getattr(np, name)([ours(a), a]), getattr(np, name)([a, a]))
    check("append", x, v)
    check("append", x, x, axis=1)
    for parts in (2, 3, [1, 3]):
        check("array_split", x, parts, axis=1)
    check("split", x, 3)
    for name in ("fliplr", "flipud", "ravel"):
        check(name, x)
    check("swapaxes", x, 0, 1)
    for k in range(-1, 5):
        check("rot90", x, k)
    for name in ("logspace", "geomspace"):
        compare(getattr(xp, name)(1.0, 3.0, 7, device="cpu"), getattr(np, name)(1.0, 3.0, 7))
    compare(xp.geomspace(-8, -1, 4, device="cpu"), np.geomspace(-8, -1, 4))
    compare(xp.identity(3, device="cpu"), np.identity(3))
    for call in (
        lambda: xp.split(ours(x), 2),
        lambda: xp.geomspace(0, 1),
        lambda: xp.diag(ours(x[None])),
    ):
        with pytest.raises(ValueError, match="expected"):
            call()
