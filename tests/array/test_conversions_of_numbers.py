# SPDX-License-Identifier: Apache-2.0
"""Elements written from numbers and arrays of other dtypes: every function follows one rule."""

import cuplug
import ml_dtypes
import numpy as np
import pytest
from cuplug import array_api as xp

INTEGERS = ["int8", "uint8", "int32", "uint32", "int64", "uint64"]
FLOATS = [300.7, -1.5, float("nan"), -1e30, 1e30, float("inf"), float("-inf"), 0.0, 126.9]


def limited(values, dtype):
    """Return floats truncated to zero; NaN becomes 0, and values out of range the limit."""
    limits = np.iinfo(dtype)
    cut = [0 if x != x else x if abs(x) == float("inf") else int(x) for x in map(float, values)]
    return np.array([int(min(max(x, limits.min), limits.max)) for x in cut], dtype)


def empty(dtype):
    return cuplug.empty(len(FLOATS), dtype, "cpu")


def by_numbers(write):
    def written(dtype):
        x = empty(dtype)
        for k, value in enumerate(FLOATS):
            write(x, k, value)
        return x

    return written


def by_array(write):
    def written(dtype):
        x = empty(dtype)
        write(x)
        return x

    return written


def assigned(x, key, value):
    x[key] = value


FLOAT32 = np.array(FLOATS, "float32")
PATHS = {
    "set": by_array(lambda x: x.set(np.array(FLOATS))),
    "set of a list": by_array(lambda x: x.set(FLOATS)),
    "set of float32": by_array(lambda x: x.set(FLOAT32)),
    "NumPy assigned": by_array(lambda x: assigned(x, slice(None), np.array(FLOATS))),
    "a list assigned": by_array(lambda x: assigned(x, ..., FLOATS)),
    "an array assigned": by_array(lambda x: assigned(x, ..., cuplug.asarray(FLOATS, device="cpu"))),
    "arrays without dimensions": by_numbers(lambda x, k, v: assigned(x, k, np.array(v))),
    "lists at positions": by_numbers(lambda x, k, v: assigned(x, [k], [v])),
    "astype": lambda dtype: cuplug.asarray(FLOATS, device="cpu").astype(dtype),
    "asarray": lambda dtype: cuplug.asarray(np.array(FLOATS), dtype, device="cpu"),
    "asarray of a list": lambda dtype: cuplug.asarray(FLOATS, dtype, device="cpu"),
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("path", PATHS)
def test_floats_become_integers_alike(path, dtype):
    values = FLOAT32 if path == "set of float32" else FLOATS
    seen = PATHS[path](dtype)
    assert seen.dtype == dtype
    np.testing.assert_array_equal(seen.numpy(), limited(values, dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_halves_become_integers_as_floats_do(dtype):
    values = np.array([300, -1.5, np.nan, 6e4, np.inf, -np.inf], "float16")
    for each in (values, values.astype(ml_dtypes.bfloat16)):
        x = cuplug.empty(len(each), dtype, "cpu")
        x.set(each)
        np.testing.assert_array_equal(x.numpy(), limited(each, dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_numbers_beyond_floats_are_infinite(dtype):
    x = cuplug.empty(3, dtype, "cpu")
    for value in (1e300, -1e300, 2**200, np.float64(1e300)):
        with np.errstate(over="ignore"):
            wanted = np.asarray(float(value)).astype(dtype)
        x[...] = value
        assert (x.numpy() == wanted).all()
        x[0] = value
        x.fill(value)
        x[[1]] = value
        assert (x.numpy() == wanted).all()
    x.set([1e300, 0, 1])
    assert np.isinf(x.numpy()[0])


@pytest.mark.parametrize("value", [300, -200, 2**70, 300.7, float("nan"), np.int64(300)])
def test_numbers_have_to_be_in_the_range_of_integers(value):
    x = xp.zeros(2, dtype="int8", device="cpu")
    writes = [
        lambda: x.fill(value),
        lambda: assigned(x, 0, value),
        lambda: assigned(x, [0], value),
        lambda: xp.full((2,), value, dtype="int8", device="cpu"),
    ]
    if type(value) is int:
        writes += [lambda: assigned(x, ..., [value, 1]), lambda: x.set([value, 1])]
    for write in writes:
        with pytest.raises((ValueError, TypeError)):
            write()
    assert x.tolist() == [0, 0]


def test_integers_of_arrays_wrap():
    x = xp.zeros(3, dtype="uint8", device="cpu")
    for value in (np.array(300), np.array([300])):
        x[...] = value
        assert x.tolist() == [44] * 3
        x[[0]] = value
        assert x.tolist() == [44] * 3
        x[...] = 0


def test_leading_ones_of_what_is_assigned_are_left_out():
    x, theirs = xp.zeros(4, device="cpu"), np.zeros(4)
    for shape in ((1, 4), (1, 1, 4), (1, 1), (1,)):
        values = np.arange(np.prod(shape), dtype=float).reshape(shape) + 1
        x[:] = cuplug.asarray(values, device="cpu")
        theirs[:] = values
        np.testing.assert_array_equal(x.numpy(), theirs)
        x[:] = values.astype("float32")
        np.testing.assert_array_equal(x.numpy(), theirs)
    with pytest.raises(ValueError, match="x: got shape"):
        x[:] = cuplug.asarray(np.zeros((2, 4)), device="cpu")


def test_arrays_whose_elements_share_memory_are_not_written():
    windows = np.lib.stride_tricks.sliding_window_view
    host = np.zeros(6, "float32")
    for shared in (
        np.lib.stride_tricks.as_strided(host, (4,), (0,)),
        windows(host, 3, writeable=True),
        np.lib.stride_tricks.as_strided(host, (2, 3), (4, 4)),
    ):
        for wrapper in (cuplug.Out, cuplug.InOut):
            with pytest.raises(ValueError, match=r"elements share memory, .* pass a copy"):
                wrapper(shared)
        cuplug.In(shared)
        x = cuplug.asarray(shared, device="cpu")
        with pytest.raises(ValueError, match="share memory"):
            x.set(np.ones(shared.shape, "float32"))
        with pytest.raises(ValueError, match="share memory"):
            x[...] = cuplug.asarray(np.ones(shared.shape, "float32"), device="cpu")
    matrix = np.zeros((4, 6), "float32")
    for plain in (matrix, matrix.T, matrix[::2, ::-1], matrix[:, :1], matrix[:0], matrix[:, ::3].T):
        cuplug.InOut(plain)
        cuplug.asarray(plain, device="cpu").set(np.ones(plain.shape, "float32"))
    assert (matrix == 1).all()
