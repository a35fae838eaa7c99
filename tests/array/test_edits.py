# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy that remove, insert, place and order elements: NumPy's values."""

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp
from same_as_numpy import check, compare, ours

RNG = np.random.default_rng(7)
X = RNG.normal(size=(4, 5))
N = RNG.integers(0, 9, (4, 5))
Z = X + 1j * X[::-1]


def check_written(name, x, *args, **keywords):
    """Compare an array after a function has written to it."""
    wanted, seen = x.copy(), ours(x)
    getattr(np, name)(wanted, *args, **keywords)
    mine = [ours(a) if isinstance(a, np.ndarray) else a for a in args]
    keywords = {k: ours(v) if isinstance(v, np.ndarray) else v for k, v in keywords.items()}
    assert getattr(np, name)(seen, *mine, **keywords) is None
    compare(seen, wanted)


def check_error(name, *args, **keywords):
    """Check that both raise, and cuplug an error of NumPy's type."""
    with pytest.raises(Exception) as wanted:  # noqa: PT011
        getattr(np, name)(*args, **keywords)
    with pytest.raises(wanted.type):
        getattr(np, name)(*(ours(x) if isinstance(x, np.ndarray) else x for x in args), **keywords)


@pytest.mark.parametrize(
    "obj", [1, -2, [0, 2], slice(1, 3), slice(None, None, -2), [], np.array([2])], ids=str
)
def test_removed_and_inserted(obj):
    for axis in (0, 1, None):
        check("delete", X, obj, axis=axis)
        check("insert", N, obj, 3, axis=axis)
    check("delete", X, np.array([True, False, True, True]), axis=0)
    if np.ndim(obj) == 0 and not isinstance(obj, slice):
        check("insert", X, obj, np.arange(4.0), axis=1)
        check("insert", X, obj, np.ones((3, 5)), axis=0)
    for name, given in (("delete", ()), ("insert", (1,))):
        check_error(name, X, 9, *given, axis=0)
    check_error("delete", X, 1.5, axis=0)


def test_inserted_at_several_places():
    check("insert", X, [1, 3, 0], np.arange(15.0).reshape(3, 5), axis=0)
    check("insert", X, [1], np.arange(4.0)[:, None], axis=1)


def test_resized():
    for shape in ((3, 9), 7, 0, (2, 2)):
        check("resize", X, shape)
    check("resize", X[:0], 3)
    check_error("resize", X, (-1, 2))


@pytest.mark.parametrize("trim", ["f", "b", "fb"])
def test_trimmed(trim):
    inner = np.zeros((4, 5))
    inner[1, 2] = inner[2, 3] = 1
    for x in (np.array([0, 0, 1, 2, 0, 3, 0]), np.zeros(3), inner):
        check("trim_zeros", x, trim)
    check("trim_zeros", inner, trim, axis=1)
    check_error("trim_zeros", inner, "x")


def test_split_and_moved():
    cube = RNG.normal(size=(2, 3, 4))
    check("hsplit", X, [2])
    check("hsplit", X[0], [2])
    check("vsplit", X, 2)
    check("dsplit", cube, 2)
    check_error("dsplit", X, 2)
    check_error("vsplit", X[0], 2)
    for axis, start in ((2, 0), (0, 3), (1, -1), (-1, 1)):
        check("rollaxis", cube, axis, start)
    compare(ours(cube).T, cube.T)
    compare(ours(X[0]).T, X[0])


def test_chosen_and_written():
    check("extract", X > 0, X)
    check_written("place", X, X > 0, np.arange(3.0))
    check_written("putmask", X, X > 0, np.arange(3.0))
    check_written("put_along_axis", X, N % 4, 7.0, axis=0)
    check_written("put_along_axis", X, N[0] + 1, 7.0, axis=None)
    for shape in ((4, 5), (9, 3), (3, 3, 3)):
        for wrap in (False, True):
            check_written("fill_diagonal", np.zeros(shape), np.array([1.0, 2, 3]), wrap=wrap)
    check_error("fill_diagonal", X[0], 1)
    check_written("copyto", X, np.ones(5), where=X > 0)
    check_written("copyto", N, 2)
    check_error("copyto", N, 1.5)
    check_error("copyto", N.astype("uint8"), -4)
    check("diagflat", X, 1)


def test_parameters_by_name():
    check("delete", X, obj=1, axis=0)
    check("insert", X, obj=1, values=2.0, axis=0)
    check("resize", X, new_shape=(2, 3))
    check("rollaxis", X, axis=1, start=0)
    check("hsplit", X, indices_or_sections=[2])
    check("unravel_index", N, shape=(3, 3))
    check_written("putmask", X, mask=X > 0, values=3.0)
    check_written("place", X, mask=X > 0, vals=[1.0, 2.0])
    check_written("put_along_axis", X, indices=N % 4, values=7.0, axis=0)
    check_written("fill_diagonal", X, val=3.0, wrap=True)


def test_flat_assignments_repeat_values():
    wanted, seen = np.zeros((3, 4)), ours(np.zeros((3, 4)))
    for x, a in ((wanted, np.array), (seen, ours)):
        x.flat[1:7] = a([1.0, 2, 3, 4])
        x.flat[[0, 9, 11]] = a([5.0, 6])
    compare(seen, wanted)


def test_functions_of_lines():
    for axis in (0, 1):
        seen = np.apply_along_axis(lambda v: v[:2] * v.sum(), axis, ours(X))
        compare(seen, np.apply_along_axis(lambda v: v[:2] * v.sum(), axis, X))
    compare(xp.apply_along_axis(xp.sum, 1, ours(X)), X.sum(1))


@pytest.mark.parametrize("x", [X, X.astype("float32"), Z, N], ids=lambda x: str(x.dtype))
def test_of_single_elements(x):
    for name in ("angle", "sinc", "isreal", "iscomplex", "real_if_close"):
        check(name, x, tolerance=1e-6 if x.dtype == "float32" else 1e-12)
    check("vander", x[0], 4, tolerance=1e-5 if x.dtype == "float32" else 1e-9)
    check("vander", x[0], increasing=True, tolerance=1e-5 if x.dtype == "float32" else 1e-9)


def test_of_infinities():
    x = np.array([1.5, np.inf, -np.inf, np.nan, -0.0])
    for name in ("isposinf", "isneginf", "fix"):
        check(name, x)
    check("real_if_close", X + 1e-17j)
    check("angle", Z, deg=True)
    check_error("isposinf", Z)


@pytest.mark.parametrize("dtype", "?bBhHiIlLefdFD")
def test_dtypes_of_angles(dtype):
    x = np.arange(4).astype(dtype)
    assert np.angle(ours(x), deg=True).dtype == np.angle(x, deg=True).dtype


def test_unwrapped():
    check("unwrap", np.cumsum(X * 4, axis=1))
    check("unwrap", N * 3, period=7)
    check("unwrap", N * 3, axis=0, period=4)
    check("unwrap", X * 9, discont=5.0)


def test_orders_and_sets():
    check("lexsort", N % 3)
    check("setxor1d", N, N + 3)
    check("ediff1d", X)
    check("ediff1d", N, to_end=[1, 2], to_begin=9)
    check_error("ediff1d", N, to_end=1.5)
    rows = RNG.integers(0, 2, (9, 3))
    for axis in (0, 1, -1):
        wanted = np.unique(rows, True, True, True, axis=axis)
        compare(np.unique(ours(rows), True, True, True, axis=axis), wanted)
    check("unique", rows[:0], axis=0)
    for name in ("partition", "argpartition"):
        check_error(name, N, 9)


def test_positions():
    check("tril_indices_from", X, 1)
    check("triu_indices_from", X, -1)
    for order in "CF":
        check("unravel_index", N, (3, 3), order=order)
        for mode in ("raise", "wrap", "clip", ("wrap", "clip")):
            pair = (N % 4, N)
            wanted = np.ravel_multi_index(pair, (4, 9), mode, order)
            compare(np.ravel_multi_index([*map(ours, pair)], (4, 9), mode, order), wanted)
    for shape in ((2, 2), (0, 3), (2.5, 9), (1 << 33, 1 << 31), (1 << 63,)):
        check_error("unravel_index", N, shape)
    with pytest.raises(ValueError, match=r"shape: got \[8589934592, 2147483648\], expected sizes"):
        xp.unravel_index(ours(N), (1 << 33, 1 << 31))
    with pytest.raises(ValueError, match=r"dims: got \[-4, -9\], expected sizes >= 0"):
        xp.ravel_multi_index([ours(N), ours(N)], (-4, -9))
    with pytest.raises(ValueError, match="beyond 3"):
        xp.ravel_multi_index([ours(N), ours(N)], (3, 9))


# ---- Parameters of NumPy -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["concatenate", "stack", "vstack", "hstack"])
def test_joined_to_a_dtype(name):
    pair, mine = [N, X], [ours(N), ours(X)]
    join = getattr(np, name)
    compare(join(mine, dtype="float32"), join(pair, dtype="float32"))
    with pytest.raises(TypeError):
        join(mine, dtype="int32")
    if name in ("concatenate", "stack"):
        out = ours(join(pair) * 0)
        assert join(mine, out=out) is out
        compare(out, join(pair))
        with pytest.raises(ValueError, match="out: got shape"):
            join(mine, out=ours(X))


def test_orders_in_memory():
    for x in (X, X.T, RNG.normal(size=(2, 3, 4)).transpose(2, 0, 1)):
        for order in "CFAKfk":
            compare(np.ravel(ours(X[:]), order), np.ravel(X, order))
            view = cuplug.asarray(x, device="cpu")
            compare(view.ravel(order), x.ravel(order))
            compare(view.flatten(order), x.flatten(order))


def test_owners_of_memory():
    x = xp.zeros(4, device="cpu")
    assert x.base is None
    assert x[1:].base is x[1:][1:].base is x
    assert [y.flags.owndata for y in (x, x[1:])] == [True, False]
    assert cuplug.asarray(X, device="cpu").base is not None


def test_repeated_and_rolled():
    check("repeat", X, [1, 2, 0, 1], axis=0)
    check("repeat", X, [2], axis=0)
    compare(np.roll(ours(X), np.array([1, 2]), axis=(0, 1)), np.roll(X, (1, 2), (0, 1)))
    compare(np.roll(ours(X), [1, 2], axis=0), np.roll(X, [1, 2], axis=0))
    compare(np.roll(ours(X), [1, 2]), np.roll(X, 3))
    for keywords in ({"sparse": True}, {"sparse": True, "indexing": "ij"}, {}):
        compare(
            np.meshgrid(ours(X[0]), ours(N[0]), **keywords), np.meshgrid(X[0], N[0], **keywords)
        )
    for name in ("tril", "triu"):
        compare(getattr(np, name)(ours(X[0])), getattr(np, name)(X[0]))
    check_error("expand_dims", X, (0, 0))
    check_error("expand_dims", X, 4)


def test_dtypes_of_ufuncs():
    for dtype in ("int8", "uint8", "int16", "bool", "int32"):
        x = (N % 5 + 1).astype(dtype)
        for f in (np.exp, np.sqrt, np.rint, np.conj, np.arctan2, np.hypot, np.divide):
            given = (x,) * f.nin
            compare(f(*map(ours, given)), f(*given), 1e-3)
    for dtype in ("int8", "int64", "float32"):
        x = np.array([1, 2, -1], dtype)
        compare(np.reciprocal(ours(x)), np.reciprocal(x))


@pytest.mark.parametrize("value", [300, -1, [300], float("nan")])
def test_numbers_that_a_dtype_does_not_have_are_written_nowhere(value):
    small, mask = np.array([3, 1, 2], np.uint8), np.array([True, False, True])
    calls = (
        lambda x, k: np.insert(x, 1, value),
        lambda x, k: np.place(x, k(mask), value),
        lambda x, k: np.putmask(x, k(mask), value),
        lambda x, k: np.put(x, [0], value),
        lambda x, k: np.put_along_axis(x, k(np.array([1])), value, 0),
        lambda x, k: np.fill_diagonal(x.reshape(1, 3), value),
    )
    for call in calls:
        x = ours(small)
        for array, kind in ((small.copy(), np.asarray), (x, ours)):
            with pytest.raises((OverflowError, TypeError, ValueError)):
                call(array, kind)
        np.testing.assert_array_equal(np.asarray(x), small)


def test_putmask_does_not_narrow():
    for kind in (np.asarray, ours):
        x = kind(np.array([3, 1, 2], np.uint8))
        with pytest.raises(TypeError, match="int64"):
            np.putmask(x, kind(np.array([True, False, True])), kind(np.array([300])))
