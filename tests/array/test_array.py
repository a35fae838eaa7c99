# SPDX-License-Identifier: Apache-2.0
"""cuplug.Array equals NumPy, on the host and on a GPU: views, keys, functions, other libraries."""

import copy
import io
import math
import pickle

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def same(array, wanted):
    assert isinstance(array, cuplug.Array)
    assert array.dtype == wanted.dtype
    np.testing.assert_array_equal(array.numpy(), wanted)


def basic_keys(shape):
    return hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True, max_dims=6)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_views_are_those_of_numpy(data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    x = np.arange(math.prod(shape)).reshape(shape)
    ours = cuplug.asarray(x, device="cpu")
    for _ in range(2):  # also a view of a view
        key = data.draw(basic_keys(x.shape))
        key = key if isinstance(key, tuple) else (key,)
        x, ours = x[key if ... in key else (*key, ...)], ours[key]
        same(ours, x)
        assert np.shares_memory(np.asarray(ours), x) or not x.size


@pytest.mark.parametrize("rows", [[1, 2], [[1, 2], [3, 4]], ([0.5], [2]), [], [[], []]])
def test_lists_of_arrays_without_dimensions(rows, device):
    def arrays(x):
        is_list = isinstance(x, list | tuple)
        return type(x)(map(arrays, x)) if is_list else xp.asarray(x, device=device)

    same(xp.asarray(arrays(rows), device=device), np.asarray(rows))
    same(xp.asarray([arrays(rows), rows], dtype="float32"), np.asarray([rows] * 2, "float32"))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_keys_with_arrays_are_those_of_numpy(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    x = np.arange(float(math.prod(shape))).reshape(shape)
    kinds = st.sampled_from(["slice", "int", "positions"])
    key = [data.draw(kinds) for _ in shape]
    key[data.draw(st.integers(0, len(key) - 1))] = "positions"
    n = data.draw(st.integers(0, 3))

    def item(kind, size):
        if kind == "slice":
            return data.draw(st.slices(size))
        if kind == "int":
            return data.draw(st.integers(-size, size - 1))
        return np.array(
            data.draw(st.lists(st.integers(-size, size - 1), min_size=n, max_size=n)), int
        )

    theirs = tuple(map(item, key, shape))
    ours = cuplug.asarray(x, device="cpu", copy=True)
    same(ours[theirs], x[theirs])
    values = np.arange(x[theirs].size, dtype=float).reshape(x[theirs].shape) + 100
    x[theirs] = values
    ours[theirs] = values
    if len(np.unique(x)) == x.size:  # no element was named twice
        same(ours, x)


def test_the_places_of_the_greatest_and_the_least(device):
    x = np.array([[3.0, 7, 7, 1], [9, np.nan, 4, np.nan], [2, 2, 5, 5]], np.float32)
    ours = cuplug.asarray(x, device=device, copy=True)
    for name in ("argmax", "argmin"):
        for axis, keep in ((None, False), (None, True), (0, False), (-1, True)):
            wanted = getattr(np, name)(x, axis=axis, keepdims=keep)
            same(getattr(xp, name)(ours, axis=axis, keepdims=keep), wanted)
    assert int(xp.argmax(xp.asarray(5, device=device))) == 0
    with pytest.raises(TypeError, match="argmin: x: got complex64, expected real numbers"):
        xp.argmin(ours * 1j)
    with pytest.raises(ValueError, match="argmax: got nothing along axis, expected at least one"):
        xp.argmax(ours[:0])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_greatest_and_the_least_of_bools(device, share):
    x = np.random.default_rng(1).random((40, 3000)) < share
    ours = xp.asarray(x, device=device)
    for name in ("max", "min"):
        for axis in (None, 0, 1, (0, 1)):
            got, wanted = getattr(xp, name)(ours, axis=axis), getattr(x, name)(axis)
            assert got.dtype == np.bool_
            assert np.array_equal(got.numpy(), wanted)
        with pytest.raises(ValueError, match=f"{name}: got nothing along axis"):
            getattr(xp, name)(ours[:0], axis=0)


def test_masks(device):
    x = np.arange(-6.0, 6).reshape(3, 4)
    ours = cuplug.asarray(x, device=device, copy=True)
    same(ours[ours > 1], x[x > 1])
    same(ours[ours[:, 0] > -3], x[x[:, 0] > -3])
    ours[ours < 0] = 0
    same(ours, np.maximum(x, 0))
    ours[ours > 2] = xp.asarray([1.0, 2, 3], device=device)
    same(ours, np.where(x > 2, np.cumsum(x > 2).reshape(x.shape), np.maximum(x, 0)).astype(float))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (3, "index 3 is out of bounds for dimension 0 of size 3"),
        ((0, -5), "index -5 is out of bounds for dimension 1 of size 4"),
        ((0, 0, 0), "got 3 indices, expected at most 2"),
        ((..., ...), "several '...'"),
        ([3], "index 3 at position 0 is out of bounds for size 3"),
        (np.array([True, False]), r"a mask of shape \(2,\), expected \(3,\)"),
        (np.array([0.5]), "got an index of dtype float64"),
    ],
)
def test_keys_that_are_refused(key, message):
    x = xp.zeros((3, 4), device="cpu")
    with pytest.raises(IndexError, match=message):
        x[key]
    with pytest.raises(IndexError, match=message):
        x[key] = 1


def test_arithmetic_of_the_tutorials(device):
    x = np.linspace(-2, 2, 12).reshape(3, 4)
    ours = cuplug.asarray(x, device=device)
    same(2 * ours, 2 * x)
    same(1 - ours / 4, 1 - x / 4)
    same(ours.T + 1, x.T + 1)
    same(abs(-ours), abs(x))
    same((ours > 0) & (ours < 1), (x > 0) & (x < 1))
    centred = ours - xp.mean(ours, axis=0)
    np.testing.assert_allclose(centred.numpy(), x - x.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(xp.std(ours, axis=1).numpy(), x.std(axis=1), rtol=1e-14)
    ours = cuplug.asarray(x, device=device, copy=True)
    ours += 1
    ours *= ours
    same(ours, (x + 1) * (x + 1))
    same(xp.where(ours > 2, ours, 0), np.where((x + 1) ** 2 > 2, (x + 1) * (x + 1), 0))


def test_new_arrays(device):
    same(xp.arange(5, device=device), np.arange(5))
    same(xp.arange(2.0, -1, -0.5, device=device), np.arange(2.0, -1, -0.5))
    same(xp.eye(3, 4, k=1, device=device), np.eye(3, 4, k=1))
    same(xp.full((2, 3), 7, device=device), np.full((2, 3), 7))
    same(xp.linspace(0, 1, 5, device=device), np.linspace(0, 1, 5))
    same(xp.tril(xp.ones((2, 3, 3), device=device), k=-1), np.tril(np.ones((2, 3, 3)), -1))
    assert str(cuplug.empty((2, 0), device=device).device).startswith(device)


def test_shapes(device):
    x = np.arange(24).reshape(2, 3, 4)
    ours = cuplug.asarray(x, device=device)
    same(xp.reshape(ours, (6, -1)), x.reshape(6, -1))
    same(xp.reshape(xp.permute_dims(ours, (2, 0, 1)), (-1,)), x.transpose(2, 0, 1).reshape(-1))
    same(xp.concat([ours, ours[:, :1]], axis=1), np.concatenate([x, x[:, :1]], axis=1))
    same(xp.stack([ours, ours], axis=-1), np.stack([x, x], axis=-1))
    same(xp.roll(ours, (1, -1), axis=(0, 2)), np.roll(x, (1, -1), axis=(0, 2)))
    same(xp.flip(ours, axis=1), np.flip(x, 1))
    same(xp.tile(ours, (2, 1)), np.tile(x, (2, 1)))
    same(xp.broadcast_to(ours[:, :1], (5, 2, 3, 4)), np.broadcast_to(x[:, :1], (5, 2, 3, 4)))


def test_other_libraries_share_the_memory():
    x = xp.arange(6.0, device="cpu")
    for seen in (np.asarray(x), np.from_dlpack(x), np.asarray(memoryview(x))):
        seen[0] += 1
    assert x.numpy()[0] == 3
    theirs = np.arange(3.0)
    ours = cuplug.asarray(theirs, device="cpu")
    theirs[1] = 9
    assert float(ours[1]) == 9
    with pytest.raises(ValueError, match=r"expected None or True \(ndarray must be copied"):
        cuplug.asarray(np.frombuffer(bytes(9), "float64", 1, 1), device="cpu", copy=False)
    pointer = cuplug.from_pointer(ours.data_ptr, (3,), "float64", "cpu", theirs)
    same(pointer, theirs)


def test_memory_is_pickled_out_of_band():
    """As in transfers of Ray and Dask. `copy.copy` creates its own memory."""
    x, buffers = xp.zeros((3, 2)), []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    shared = pickle.loads(data, buffers=buffers)
    copies = copy.copy(x), copy.deepcopy(x), pickle.loads(data, buffers=[bytearray(buffers[0])])
    shared[0, 0] = 7
    assert x.data_ptr == shared.data_ptr
    assert float(x[0, 0]) == 7
    for one in copies:
        one += 1
        assert float(one[0, 0]) == 1


def test_values_go_in_and_out(device):
    x = xp.zeros((3, 2), dtype="float32", device=device)
    x.T.set(np.arange(6).reshape(2, 3))
    out = np.empty((3, 2), np.float32)
    assert x.numpy(out=out) is out
    np.testing.assert_array_equal(out, [[0, 3], [1, 4], [2, 5]])
    for protocol in (4, 5):
        same(pickle.loads(pickle.dumps(x, protocol)), out)
    file = io.BytesIO()
    np.save(file, x if device == "cpu" else x.numpy())
    file.seek(0)
    same(cuplug.asarray(np.load(file), device=device), out)
    with pytest.raises(ValueError, match=r"^set: values: got shape \(3,\), expected \(3, 2\)"):
        x.set(np.zeros(3))
    with pytest.raises(ValueError, match="^numpy: out: got float64 of shape"):
        x.numpy(out=np.empty((3, 2)))


def test_what_is_shown():
    assert (
        repr(xp.asarray([1.5, 2], device="cpu")) == "Array([1.5, 2. ], dtype=float64, device='cpu')"
    )
    long = repr(xp.reshape(xp.arange(10**6, device="cpu"), (1000, 1000)))
    assert "999999" in long
    assert long.count("...") == 7


def test_numbers():
    x = xp.asarray([2, 3], device="cpu")
    assert (int(x[0]), float(x[1]), bool(x[0]), complex(x[1]), [5, 6, 7][x[0]]) == (
        2,
        3.0,
        True,
        3,
        7,
    )
    with pytest.raises(TypeError, match=r"^cuplug.Array: int: got shape \(2,\), expected "):
        int(x)
    with pytest.raises(TypeError, match="no common dtype"):
        xp.astype(x, "float16") + xp.astype(x, "bfloat16")
    with pytest.raises(
        TypeError, match="^logical_not: got int64, expected numbers of the kind bool"
    ):
        xp.logical_not(x)


@pytest.mark.parametrize(
    ("call", "exception", "message"),
    [
        (lambda x: xp.arange(0, 1, math.nan), ValueError, "^arange: got start, stop and step"),
        (lambda x: xp.arange(0, math.inf), ValueError, "expected finite numbers$"),
        (lambda x: xp.arange("a"), ValueError, "expected finite numbers$"),
        (lambda x: x["a"], IndexError, "got an index of type str, expected integers$"),
        (lambda x: x[1.5], IndexError, "got an index of type float, expected integers$"),
        (lambda x: xp.concat([x, np.ones(2)]), TypeError, "^concat: arrays: got ndarray, expected"),
        (lambda x: xp.sum(np.ones(2)), TypeError, "^sum: x: got ndarray, expected a cuplug.Array"),
        (lambda x: xp.max(3), TypeError, "^max: x: got int, expected a cuplug.Array"),
        (lambda x: xp.mean([1.0]), TypeError, "^mean: x: got list, expected a cuplug.Array"),
        (
            lambda x: cuplug.from_pointer(-8, 1, "int8", "cpu"),
            ValueError,
            "got -8, expected",
        ),
    ],
)
def test_what_is_refused(call, exception, message):
    with pytest.raises(exception, match=message):
        call(xp.ones(2, device="cpu"))


def test_arrays_are_changed_in_place_where_views_of_them_overlap():
    x = xp.asarray(np.arange(8, dtype=np.float32), device="cpu")
    whole = x
    x[1:] += x[:-1]
    x += x
    assert x is whole
    np.testing.assert_array_equal(np.asarray(x), 2 * np.array([0, 1, 3, 5, 7, 9, 11, 13]))
    x[::-1] -= x
    with pytest.raises(ValueError, match="broadcast_to: shape: got"):
        x += xp.ones((2, 8), dtype="float32", device="cpu")


def test_sizes_are_kept_by_their_array():
    x = xp.empty((70000, 3), dtype="int8", device="cpu")
    for _ in range(3):
        views = [x[k:] for k in range(100)]
        assert [view.shape for view in views] == [(70000 - k, 3) for k in range(100)]
        assert xp.permute_dims(x, (1, 0)).shape == xp.reshape(x, (3, 70000)).shape == (3, 70000)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_numpy_sees_dtypes_of_ml_dtypes(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = cuplug.asarray(np.arange(4).astype(getattr(ml_dtypes, name)), device="cpu")
    seen = np.asarray(x)
    assert seen.dtype == x.dtype
    assert seen.astype(int).tolist() == [0, 1, 2, 3]
    assert np.shares_memory(seen, x.__array__())
