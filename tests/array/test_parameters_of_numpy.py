# SPDX-License-Identifier: Apache-2.0
"""Parameters and arguments of NumPy functions that the standard does not have."""

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp
from same_as_numpy import check, compare, ours

X = np.array([[3.0, np.nan, 2.0], [np.nan, 7.0, 1.0]])
N = np.array([5, 1, 5, 3, 9])
S = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(
    "name",
    [
        *("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nanargmax"),
        *("nanargmin", "nancumsum", "nancumprod"),
    ],
)
def test_results_that_ignore_nan_in_given_arrays(name):
    wanted = getattr(np, name)(X, axis=1)
    out = cuplug.empty(wanted.shape, wanted.dtype, "cpu")
    assert getattr(np, name)(ours(X), axis=1, out=out) is out
    compare(out, wanted)
    with pytest.raises((ValueError, TypeError), match="out: got"):
        getattr(np, name)(ours(X), axis=1, out=cuplug.empty(7, wanted.dtype, "cpu"))


def test_sums_in_the_dtype_of_the_array_given():
    x = np.array([True, False, True])
    for name in ("sum", "prod", "cumsum", "cumprod"):
        for dtype in ("bool", "int8", "float32"):
            wanted = getattr(np, name)(
                x,
                out=np.empty(x[: 3 * ("cum" in name)].shape[:1], dtype)
                if "cum" in name
                else np.empty((), dtype),
            )
            out = cuplug.empty(wanted.shape, dtype, "cpu")
            assert getattr(np, name)(ours(x), out=out) is out
            compare(out, wanted)


def test_sets():
    other = np.array([9, 5, 2])
    check("intersect1d", N, other, return_indices=True)
    check("setdiff1d", N, other, assume_unique=True)
    check("setdiff1d", N.reshape(1, 5), other)
    compare(np.intersect1d(ours(N), ours(other + 0.5)), np.intersect1d(N, other + 0.5))


def test_truth_of_numbers_in_ufuncs():
    x, y = np.array([0.0, 2.0, np.nan]), np.array([0, 0, 3])
    for name in ("logical_and", "logical_or", "logical_xor"):
        compare(getattr(np, name)(ours(x), ours(y)), getattr(np, name)(x, y))
        compare(getattr(np, name)(ours(x), 1.5), getattr(np, name)(x, 1.5))
    compare(np.logical_not(ours(x)), np.logical_not(x))


def test_bools():
    x = np.array([[True, False], [True, True], [False, False]])
    check("diff", x)
    check("fix", x)
    for name in ("ceil", "floor", "trunc", "round"):
        compare(getattr(np, name)(ours(x)), getattr(np, name)(x))
    check("repeat", N[:3], np.array([True, False, True]))
    check("vdot", x, x)


def test_differences_with_numbers_at_the_ends():
    for n in (0, 1, 2):  # nothing is joined for n = 0
        compare(np.diff(ours(S), n, 0, 5, ours(S[:1])), np.diff(S, n, 0, 5, S[:1]))


def test_bins_with_nan():
    x = np.array([0.5, 2.5, np.nan, np.inf])
    for bins in ([np.nan, 3.0, 2.0], [1.0, 2.0, np.nan], [np.nan, np.nan], [2.0, 2.0], [3.0, 1.0]):
        for right in (False, True):
            check("digitize", x, np.array(bins), right=right)


def test_gradients_have_the_dtype_of_the_array():
    x = S.astype("float32")
    for spacing in (np.float64(2), np.array([0.0, 1, 3, 4])):
        check("gradient", x, spacing, axis=1, tolerance=1e-6)
    with pytest.raises(TypeError, match="gradient: x: got bool"):
        np.gradient(ours(S > 0))


def test_numbers_next_to_arrays():
    for name in ("append", "kron"):
        compare(getattr(np, name)(2, ours(N)), getattr(np, name)(2, N))
        compare(getattr(np, name)(ours(N), 2.5), getattr(np, name)(N, 2.5))
    compare(np.atleast_2d(1, ours(N)), np.atleast_2d(1, N))


def test_written_where_a_mask_is_true():
    x, seen = S.copy(), ours(S)
    for where in (S > 4, True, 0, np.array([True, False, True, True])):
        np.copyto(x, -S, where=where)
        np.copyto(seen, ours(-S), where=ours(where) if isinstance(where, np.ndarray) else where)
        compare(seen, x)
    with pytest.raises(TypeError, match="where"):
        np.copyto(seen, 1, where=ours(S))
    with pytest.raises(ValueError, match="expected at least one"):
        np.place(seen, ours(S > 0), [])
    with pytest.raises(ValueError, match="mask"):
        np.place(seen, ours(N > 0), [1])


def test_lines_are_contiguous():
    x = ours(S)[:, ::2]
    for view in (x, xp.broadcast_to(x[:1], (3, 2)), ours(N)[::2]):
        line = view.ravel()
        assert line.flags.c_contiguous
        compare(line, view.numpy().ravel())
    assert ours(S).ravel().base is not None


def test_arrays_without_dimensions():
    zero = np.array(3)
    check("convolve", zero, N)
    for name, axis in (("squeeze", 0), ("squeeze", -1), ("argsort", -1), ("argsort", 0)):
        compare(getattr(np, name)(ours(zero), axis), getattr(np, name)(zero, axis))
    compare(np.argwhere(ours(zero)), np.argwhere(zero))
    compare(np.sort(ours(S[::-1]), axis=None), np.sort(S[::-1], axis=None))
    places = np.array([3, 0])
    compare(np.take_along_axis(ours(S), ours(places), None), np.take_along_axis(S, places, None))


@pytest.mark.parametrize("dtype", ["int16", "float32", "float64", "complex64", "uint8"])
def test_bytes_in_reverse_order(dtype):
    x = (S + 0.5 * S[::-1]).astype(dtype)
    for view, theirs in ((ours(x), x), (ours(x)[:, ::2], x[:, ::2]), (ours(x).T, x.T)):
        compare(view.byteswap(), theirs.byteswap())
        wanted = theirs.byteswap()
        assert view.byteswap(inplace=True) is view
        compare(view, wanted)


def test_parts_of_complex_numbers_are_assigned():
    x = ours(S + 1j)
    x.real, x.imag = ours(-S), 2
    compare(x.conjugate(), -S - 2j)
    y = ours(S)
    y.real = 3
    compare(y, np.full_like(S, 3))
    with pytest.raises(TypeError, match="imag"):
        y.imag = 1
    with pytest.raises(AttributeError, match="read-only"):
        y.flags.c_contiguous = False


# ---- Linear algebra ------------------------------------------------------------------------------


def test_sums_of_products_of_one_array_are_views():
    x = ours(S)
    for text in ("ij->ji", "ij", "...j->j...", "ij->ij"):
        found = np.einsum(text, x)
        assert found.data_ptr == x.data_ptr
        compare(found, np.einsum(text, S))
    np.einsum("ii->i", x[:, :3])[:] = -1
    assert x.tolist()[1][1] == -1
    compare(np.einsum("ij->i", ours(S)), np.einsum("ij->i", S))


def test_sums_of_products_by_numbers():
    for given in (([0, 1], [1, 0]), ([0, ...], [..., 0]), ([0, 1],), ([0, 1], [0])):
        compare(np.einsum(ours(S), *given), np.einsum(S, *given))
    compare(
        np.einsum(ours(S), [0, 1], ours(S), [2, 1], [0, 2]),
        np.einsum(S, [0, 1], S, [2, 1], [0, 2]),
    )
    compare(np.einsum(",i", 2, ours(N)), np.einsum(",i", 2, N))
    for bad in (("...->", ours(S)), ("ij...j...", ours(S)), (ours(S), [0, 99])):
        with pytest.raises(ValueError, match="einsum"):
            np.einsum(*bad)
    with pytest.raises(TypeError, match="einsum"):
        np.einsum(ours(S), 3)


def test_products_have_the_dtype_of_the_array_given():
    with pytest.raises(ValueError, match="dot: out"):
        np.dot(ours(S), ours(S.T), out=cuplug.empty((3, 3), "float32", "cpu"))


@pytest.mark.parametrize("sizes", [(3, 3), (3, 2), (2, 3)])
def test_cross_products(sizes):
    rng = np.random.default_rng(5)
    a, b = (rng.normal(size=(4, n)) for n in sizes)
    compare(np.cross(ours(a), ours(b)), _cross(a, b))
    compare(np.cross(ours(a.T), ours(b), axisa=0, axisc=0), _cross(a, b).T)


def _cross(a, b):
    """Return the products with vectors of 2 elements, extended since newer NumPy rejects them."""
    wide = [np.pad(x, ((0, 0), (0, 3 - x.shape[1]))) for x in (a, b)]
    return np.cross(*wide)


def test_cross_products_in_the_plane():
    a, b = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    compare(np.cross(ours(a), ours(b)), np.array(-1.0))
    with pytest.raises(ValueError, match="expected 2 or 3"):
        np.cross(ours(S), ours(S))


def test_singular_matrices():
    x = np.array([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]])
    for p in ("fro", 1, -1, np.inf):
        compare(np.linalg.cond(ours(x), p), np.linalg.cond(x, p))
    assert np.linalg.cond(ours(x[2])).item() == np.inf
    for call in (
        lambda: np.linalg.cond(ours(x[0, :0])),
        lambda: np.linalg.det(ours(S)),
        lambda: xp.linalg.matrix_power(ours(S), 2),
    ):
        with pytest.raises(np.linalg.LinAlgError, match="expected"):
            call()


def test_ranks():
    compare(np.linalg.lstsq(ours(S), ours(N[:3] / 2), None)[2], np.int32(2))


def test_probabilities_have_two_dimensions_at_most():
    with pytest.raises(ValueError, match="2"):
        np.quantile(ours(S), np.zeros((1, 1, 1)))


# ---- Polynomials ---------------------------------------------------------------------------------


def test_polynomials():
    a, b = np.array([0.0, 2.0, -1.0, 3.0]), np.array([1.0, 4.0])
    for name in ("polyadd", "polysub", "polymul"):
        for pair in ((a, b), (b, a), (a, a)):
            check(name, *pair)
    compare(np.polymul(ours(a * 0), 3), np.polymul(a * 0, 3))
    for coefficients in (a, b, np.array([2.0, 0.0, 1.0, 0.0])):
        check("roots", coefficients)
    check("poly", np.array([1.0, 2.0, -3.0]))


@pytest.mark.parametrize("shape", [(9,), (9, 2)])
def test_fitted_polynomials(shape):
    rng = np.random.default_rng(2)
    x, y, w = rng.normal(size=9), rng.normal(size=shape), rng.uniform(1, 2, 9)
    for cov in (False, True, "unscaled"):
        check("polyfit", x, y, 2, cov=cov, tolerance=1e-9)
    compare(np.polyfit(ours(x), ours(y), 3, w=ours(w)), np.polyfit(x, y, 3, w=w), tolerance=1e-9)
    found, wanted = np.polyfit(ours(x), ours(y), 3, full=True), np.polyfit(x, y, 3, full=True)
    for k in (0, 1, 3):
        compare(found[k], wanted[k], tolerance=1e-9)
    assert (int(found[2]), found[4]) == (wanted[2], wanted[4])
    with pytest.warns(np.exceptions.RankWarning):
        np.polyfit(ours(np.ones(3)), ours(np.ones(3)), 2)
    square = np.ones((9, 2))
    for bad, error in (
        ((x, y[:4], 2), TypeError),
        ((square, y, 1), TypeError),
        ((x, y, -1), ValueError),
    ):
        with pytest.raises(error, match="polyfit"):
            np.polyfit(*map(_ours, bad))


def _ours(x):
    return ours(x) if isinstance(x, np.ndarray) else x


@pytest.mark.parametrize(
    ("call", "args"),
    [
        (np.dot, (S, [1.0, 2, 3, 4])),
        (np.dot, (S.astype("int8"), 1)),
        (np.dot, (np.array(3, "int8"), 300)),
        (np.inner, (S, (1, 2, 3, 4))),
        (np.outer, (N, 2)),
        (np.convolve, (N, [1, 2])),
        (np.correlate, (N, [1, 2], "full")),
        (np.interp, ([1.5, 2], [0, 1, 2], S[0, :3])),
        (np.where, (S > 2, S, [1, 2, 3, 4])),
        (np.where, ([True, False, True, False], S, 0)),
        (np.clip, (S, [0, 1, 2, 3], 4)),
        (np.intersect1d, (N, [9, 5])),
        (np.setdiff1d, (N, 5)),
        (np.linalg.solve, (np.eye(2) * 2, [1.0, 3])),
        (np.add, (S, [1, 2, 3, 4])),
        (np.add, ([[1], [2], [3]], S)),
        (np.matmul, (S, [1.0, 2, 3, 4])),
        (np.multiply.reduceat, (N, [0, 2])),
        (np.subtract.outer, (N, [1, 2])),
    ],
)
def test_lists_and_numbers_next_to_arrays(call, args):
    """They become arrays on the device of the arrays, as in NumPy."""
    given = [ours(x) if isinstance(x, np.ndarray) else x for x in args]
    compare(call(*given), call(*args))


def test_grids_of_arrays_and_numbers():
    compare(np.meshgrid(ours(N), 7, [1, 2]), np.meshgrid(N, 7, [1, 2]))


@pytest.mark.parametrize("name", ["arctan2", "hypot", "copysign", "logaddexp", "divide", "power"])
@pytest.mark.parametrize("other", [2, True, np.int8(2), np.int16(2), 1.5, np.float32(2)])
def test_ufuncs_of_narrow_integers_and_numbers(name, other):
    """The dtypes are NumPy's: float16 for int8, on both sides."""
    call = getattr(np, name)
    for x in (np.array([3, 1, 2], "int8"), np.array([3, 1, 2], "uint16")):
        compare(call(ours(x), other), call(x, other), 2e-3)
        compare(call(other, ours(x)), call(other, x), 2e-3)


def test_bools_are_finite_numbers():
    x = np.array([True, False])
    for name in ("isnan", "isinf", "isfinite"):
        check(name, x)


def test_sets_with_nan():
    x, y = np.array([1.0, np.nan, 2, np.nan]), np.array([np.nan, 2, 5])
    for name in ("union1d", "setdiff1d", "intersect1d", "setxor1d"):
        check(name, x, y)


def test_scans_of_no_dimensions():
    for dtype in ("int8", "int64", "float64"):
        with pytest.raises(np.exceptions.AxisError, match="cumulative_sum: axis: got 0"):
            xp.cumulative_sum(ours(np.array(5, dtype)), axis=0)


def test_fourier_transforms():
    x, whole = np.arange(24.0).reshape(2, 3, 4), np.arange(12).reshape(3, 4)
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        call = getattr(np.fft, name)
        for norm in (None, "ortho"):
            compare(call(ours(x), None, 1, norm), call(x, None, 1, norm))
        compare(call(ours(whole), n=3), call(whole, n=3))
    for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "irfftn"):
        call = getattr(np.fft, name)
        compare(call(ours(x), norm=None), call(x, norm=None))
        compare(call(ours(x), (3, 5), (0, 2)), call(x, (3, 5), (0, 2)))
        compare(call(ours(x), None, (0, 1), None), call(x, None, (0, 1), None))
        compare(call(ours(whole), norm="forward"), call(whole, norm="forward"))
    compare(np.fft.fftshift(ours(whole)), np.fft.fftshift(whole))
