# SPDX-License-Identifier: Apache-2.0
"""Arrays of positions, choices by positions, and bits: NumPy's values."""

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp
from same_as_numpy import check, compare, ours

V = np.array([5, 7, 11])


@pytest.fixture(autouse=True)
def on_the_host():
    with cuplug.Device("cpu"):
        yield


@pytest.mark.parametrize(
    ("name", "args", "keywords"),
    [
        ("indices", ((2, 3),), {}),
        ("indices", ((2, 3),), {"dtype": "float32", "sparse": True}),
        ("indices", ((),), {}),
        ("tri", (3, 4), {"k": -1, "dtype": "int32"}),
        ("tril_indices", (3,), {"k": 1, "m": 5}),
        ("triu_indices", (4,), {"k": -1, "m": 2}),
        ("diag_indices", (3, 3), {}),
    ],
)
def test_made_of_shapes(name, args, keywords):
    compare(getattr(xp, name)(*args, **keywords), getattr(np, name)(*args, **keywords))


@pytest.mark.parametrize("name", ["mgrid", "ogrid"])
def test_grids(name):
    mine, theirs = getattr(xp, name), getattr(np, name)
    for key in (np.s_[2:5], np.s_[0:1:4j], np.s_[0:2, 1:8:3], np.s_[0:2, 0:1:3j, -1:1]):
        compare(mine[key], theirs[key])


@pytest.mark.parametrize("name", ["r_", "c_"])
def test_joined_between_brackets(name):
    mine, theirs = getattr(xp, name), getattr(np, name)
    matrix = np.arange(6.0).reshape(3, 2)
    for key in (
        (V, 0, V),
        (V, 2.5, slice(0, 3)),
        (matrix, matrix),
        ("0,2", V, V),
        ("1,3,0", V, V),
        slice(0, 1, 5j),
    ):
        if name == "c_" and isinstance(key, tuple) and 0 in [np.ndim(k) for k in key]:
            continue  # of another size along the first dimension
        own = tuple(map(_ours, key)) if isinstance(key, tuple) else key
        compare(mine[own], theirs[key])
    for bad in ("r", "0,2"):
        with pytest.raises(TypeError, match="got"):
            mine[bad]


def _ours(x):
    return ours(x) if isinstance(x, np.ndarray) else x


def test_keys_of_lines():
    x = np.arange(12).reshape(3, 4)
    lines = np.array([0, 2]), np.array([True, False, True, True])
    compare(xp.ix_(*map(ours, lines)), np.ix_(*lines))
    compare(ours(x)[np.ix_(*map(ours, lines))], x[np.ix_(*lines)])
    check("diag_indices_from", np.ones((3, 3)))
    for bad in (lambda: np.ix_(ours(x)), lambda: np.diag_indices_from(ours(x))):
        with pytest.raises(ValueError, match="expected"):
            bad()


@pytest.mark.parametrize("mode", ["wrap", "clip"])
@pytest.mark.parametrize("dtype", ["int64", "int8"])
def test_positions_out_of_range(mode, dtype):
    x, places = np.arange(12.0).reshape(3, 4), np.array([-20, -1, 3, 100], dtype)
    for axis in (None, 0, 1):
        check_method("take", x, places, axis=axis, mode=mode)
    wanted, seen = x.copy(), ours(x)
    np.put(wanted, places, [-1, -2], mode=mode)
    np.put(seen, ours(places), [-1, -2], mode=mode)
    compare(seen, wanted)
    choices = [x, -x, x + 100]
    numbers = np.array([[-4, 0, 1, 7]] * 3, dtype)
    compare(
        np.choose(ours(numbers), [*map(ours, choices)], mode=mode),
        np.choose(numbers, choices, mode=mode),
    )


def check_method(name, x, *args, **keywords):
    mine = [ours(a) if isinstance(a, np.ndarray) else a for a in args]
    compare(getattr(ours(x), name)(*mine, **keywords), getattr(x, name)(*args, **keywords))


def test_chosen():
    x = np.arange(6).reshape(2, 3)
    numbers, out = np.array([1, 0, 1]), cuplug.empty((2, 3), "int64")
    compare(ours(numbers).choose([ours(x), 9], out), numbers.choose([x, 9]))
    compare(out, numbers.choose([x, 9]))
    compare(np.choose(ours(numbers), ours(x)), np.choose(numbers, x))
    for bad in ([2, 0, 0], [-1, 0, 0]):
        with pytest.raises(ValueError, match="out of range"):
            np.choose(ours(np.array(bad)), [ours(x), ours(x)])
    with pytest.raises(ValueError, match="mode"):
        ours(numbers).take([0], mode="other")


@pytest.mark.parametrize("order", ["big", "little"])
def test_bits(order):
    bits = np.random.default_rng(3).integers(0, 2, (3, 11))
    for axis in (None, 0, 1):
        check("packbits", bits, axis=axis, bitorder=order)
        check("packbits", bits > 0, axis=axis, bitorder=order)
        packed = np.packbits(bits, axis)
        for count in (None, 11, 3, -5, 100):
            check("unpackbits", packed, axis=axis, count=count, bitorder=order)
    check("packbits", bits[:0], axis=1)
    for call in (lambda: xp.packbits(ours(bits / 2)), lambda: xp.unpackbits(ours(bits))):
        with pytest.raises(TypeError, match="expected"):
            call()
    with pytest.raises(ValueError, match="bitorder"):
        xp.packbits(ours(bits), bitorder="middle")


def test_a_function_of_numbers_is_called_for_each():
    def larger(a, b):
        return a if a > b else b

    x = np.array([[1.0, 5.0], [7.0, 2.0]])
    compare(xp.vectorize(larger)(ours(x), 3), np.vectorize(larger)(x, 3))
    pair = xp.vectorize(lambda a: (a, -a), otypes="fi")(ours(x))
    compare(pair, np.vectorize(lambda a: (a, -a), otypes="fi")(x))


def test_distances_of_arrays_of_bounds():
    low, high = np.array([0.0, 1.0]), np.array([[4.0, 8.0], [2.0, 3.0]])
    for keywords in ({}, {"endpoint": False, "axis": 1}, {"retstep": True}, {"dtype": "int32"}):
        compare(
            np.linspace(ours(low), ours(high), 5, **keywords),
            np.linspace(low, high, 5, **keywords),
        )
    compare(np.logspace(ours(low), 2, 3, axis=-1), np.logspace(low, 2, 3, axis=-1))
    compare(xp.linspace(0, 1, retstep=True), np.linspace(0, 1, retstep=True))
