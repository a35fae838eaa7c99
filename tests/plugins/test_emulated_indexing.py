# SPDX-License-Identifier: Apache-2.0
"""CUDA entries of the plugin `indexing` on the emulated driver, compared with the host."""

import pytest

pytestmark = pytest.mark.slow  # other tests have small parts of it


def test_scatter(run_plugins):
    run_plugins("""
build_plugin("indexing")
for shape, axis, n in (((2100,), 0, 2049), ((3, 500), 1, 401), ((130, 7), 0, 33),
                       ((2, 30, 3), 1, 20), ((3, 4), 1, 0), ((5,), 0, 1)):
    for dtype in ("int8", "int16", "float32", "float64", "complex128"):
        order = np.argsort(random.random(shape), axis)
        index = np.take(order, range(n), axis)
        index -= (random.random(index.shape) < 0.5) * shape[axis]
        x, values = (random.integers(0, 9, s).astype(dtype) for s in (shape, index.shape))
        for indices in (index, index.astype("int32")):
            same(ops.take_along_axis, x, indices, axis=axis)
            same(ops.put_along_axis, x, indices, values, axis=axis)
            same(ops.scatter, x, indices, values, axis=axis)
            same(ops.scatter_add, x, indices, values, axis=axis)
            if dtype[0] in "fc":
                same(ops.scatter_backward, x, indices, axis=axis)
                same(ops.scatter_add_backward, x, indices, axis=axis)
                same(ops.take_along_axis_backward, values, indices, x, axis=axis)
for row in ((), (1,), (3, 5), (0,)):
    index = random.permutation(1500)[:1030]
    same(ops.put, np.zeros((1500, *row)), index, random.random((1030, *row)))
    same(ops.put_backward, random.random((1500, *row)), index)
x, index = np.zeros((3, 1500)), np.zeros((3, 1500), int)
index[1, 3] = 1500
text = fails(IndexError, ops.take_along_axis, x, index)
assert "index 1500 at position 1503 is out of bounds for size 1500" in text, text
x, index = np.zeros(600), np.arange(600)
index[[40, 40 + 256]] = -601, 600  # of one thread, which reports one of them
text = fails(IndexError, ops.scatter_add, x, index, np.ones(600))
assert "index -601 at position 40 " in text or "index 600 at position 296 " in text, text
""")


def test_index(run_plugins):
    run_plugins("""
build_plugin("indexing")
for shape, n_axes, n in (((40, 30), 2, (1100,)), ((4, 5, 6), 2, (3, 5)), ((9,), 1, (4,)),
                         ((3, 2, 2), 3, (0,)), ((3, 0), 1, (2,))):
    sizes = shape[:n_axes]
    numbers = random.permutation(int(np.prod(sizes)))[:int(np.prod(n))].reshape(n)
    places = np.unravel_index(numbers, sizes)
    rows = [k - (random.random(n) < 0.5) * m for k, m in zip(places, sizes)]
    for dtype in ("int8", "float32", "complex128"):
        x = random.integers(0, 9, shape).astype(dtype)
        for kind in ("int32", "int64"):
            key = [k.astype(kind) for k in rows]
            values = random.integers(0, 9, (*n, *shape[n_axes:])).astype(dtype)
            same(lambda x, v, *k: ops.index(x, list(k)), x, values, *key)
            same(lambda x, v, *k: ops.index_put(x, list(k), v), x, values, *key)
            same(lambda x, v, *k: ops.index_put(x, list(k), v), x, np.array(7, dtype), *key)
            if dtype != "int8":
                same(lambda x, v, *k: ops.index_backward(v, list(k), x), x, values, *key)
                for given in (values, np.ones(1, dtype)):
                    same(lambda x, v, *k: ops.index_put_backward(x, list(k), v), x, given, *key)
x, key = np.zeros((3, 4)), [np.zeros(1500, int), np.zeros(1500, int)]
key[1][1234] = 4
for call in (lambda x, *k: ops.index(x, list(k)),
             lambda x, *k: ops.index_put(x, list(k), cuplug.asarray(np.ones(1500), device="cuda"))):
    text = fails(IndexError, call, x, *key)
    assert "indices[1]: index 4 at position 1234 is out of bounds for size 4" in text, text
    cuplug.synchronize()
""")


def test_keys_of_arrays(run_plugins):
    """Wrong positions are raised later, and nothing is written for them."""
    run_plugins("""
from cuplug.array_api import indexing, methods

build_plugin("gather"), build_plugin("indexing")
indexing.stock = methods.stock = lambda name: getattr(ops, name.split(".")[1])  # the emulated ones
X = random.integers(0, 99, (6, 5, 4)).astype("float32")
rows, columns = np.array([[1, -2], [0, 5]]), np.array([3, -1])
for key in ((rows,), (slice(None), columns), (rows, columns), (slice(1, None), columns, columns),
            (0, slice(None), columns), (..., columns), (rows[:, :1], slice(2), columns)):
    x = cuplug.asarray(X, device="cuda", copy=True)
    own = tuple(cuplug.asarray(k, device="cuda") if isinstance(k, np.ndarray) else k for k in key)
    np.testing.assert_array_equal(x[own].numpy(), X[key])
    changed = X.copy()
    changed[key] = 7
    x[own] = 7
    np.testing.assert_array_equal(x.numpy(), changed)
x = cuplug.asarray(X, device="cuda", copy=True)
for write in (lambda: x.__setitem__(([0, 6], [0, 0], [0, 0]), 5), lambda: x.__setitem__([9], 5)):
    write()
    try:
        cuplug.synchronize()
    except IndexError as error:
        assert "is out of bounds for size 6" in str(error), error
    else:
        raise AssertionError("no error")
    cuplug.synchronize()
changed = X.copy()
changed[0, 0, 0] = 5
seen = cuplug.from_pointer(x.data_ptr, x.shape, x.dtype, x.device, owner=[x])
np.testing.assert_array_equal(seen.numpy(), changed)
""")


def test_histogram(run_plugins):
    run_plugins("""
build_plugin("indexing")
for dtype in ("int8", "uint64", "float16", "float32", "float64"):
    for n in (0, 1, 513, 2500):
        x = (random.integers(0, 31, n) * (0.1 if dtype[0] == "f" else 1)).astype(dtype)
        for bins, low, high in ((10, 0, 3), (1, -5, 5), (300, -1, 30), (9000, 0, 3)):
            same(ops.histogram, x, bins=bins, low=float(low), high=float(high))
        same(ops.histogram, x, np.array([0, 1, 2, 2, 3], dtype))
x = np.array([np.nan, np.inf, -np.inf, 1e-310, 5e-310, 1e300, -1e308, 0, 1], "float64")
for low, high in ((0.0, 1e-309), (-8e307, 8e307), (-1e308, 5e307), (1.0, 1.0000000000000004)):
    same(ops.histogram, x, bins=7, low=low, high=high)
text = fails(ValueError, ops.histogram, x, bins=7, low=-1e308, high=1e308)
assert "high: got a distance from low that is not finite" in text, text
for dtype in ("int64", "int16"):
    same(ops.bincount, random.integers(0, 40, 3000).astype(dtype), size=40)
    same(ops.bincount, random.integers(0, 9000, 3000).astype(dtype), size=9000)
    text = fails(IndexError, ops.bincount, np.array([1, 2, 7], dtype), size=7)
    assert "index 7 at position 2" in text, text
""")


def test_selection(run_plugins):
    run_plugins("""
import ml_dtypes

build_plugin("indexing")
for shape in ((0,), (1,), (4095,), (4096,), (4097,), (3, 1500), (2, 3, 5), (9001,)):
    for dtype in ("bool", "int16", "float32", "complex64", "complex128"):
        for share in (0, 0.3, 1):
            x = (random.integers(1, 9, shape) * (random.random(shape) < share)).astype(dtype)
            mask = random.random(shape) < share
            same(ops.select, x, mask)
            same(ops.nonzero, x)
            same(ops.select_backward, x[mask], mask)
for n in (1, 15, 16, 17, 4111, 8192):
    x, mask = random.integers(-128, 128, n).astype("int8"), random.random(n) < 0.5
    x[random.random(n) < 0.5] = 0
    x[::5], x[1::7] = -128, 1
    same(ops.nonzero, x)
    same(ops.nonzero, np.where(x > 0, -0.0, x).astype(ml_dtypes.float8_e4m3fn))
    there = [cuplug.asarray(np.append(y[:1], y), device="cuda")[1:] for y in (x, mask)]
    np.testing.assert_array_equal(ops.select(*there).numpy(), x[mask])  # between packs
x = np.zeros(4096 * 1030, "int8")  # more tiles than threads add up
x[::40_000] = 1
same(ops.nonzero, x)
mask = np.ones(5000, bool)
fails(IndexError, ops.select_backward, np.ones(4999), mask)
fails(IndexError, ops.select_backward, np.ones(5001), mask)
""")


def test_joins(run_plugins):
    run_plugins("""
build_plugin("indexing")
for dtype in ("uint8", "int16", "float32", "float64", "complex128"):
    for n, widths in ((700, (1, 1)), (333, (1, 1, 1)), (200, (3, 1, 2, 5)), (9, (300, 301)),
                      (1, (1001, 999)), (3, (0, 4)), (0, (1, 1)), (2, (1030, 1, 70, 5))):
        parts = [random.integers(0, 99, (n, width)).astype(dtype) for width in widths]
        same(ops.join, *parts)
        if dtype[0] in "fc":
            same(ops.join_backward, np.concatenate(parts, axis=1), *parts)
        whole = np.concatenate(parts, axis=1)
        there = cuplug.asarray(whole, device="cuda")
        at = widths[0]
        halves = there[:, at:], there[:, :at]
        got = ops.join(*halves).numpy()
        np.testing.assert_array_equal(got, np.roll(whole, -at, axis=1))
        wider = cuplug.asarray(np.pad(whole, ((0, 0), (2, 4))), device="cuda")
        for first, end in ((2, -4), (1, -5)):  # at even places, and at odd ones
            part = wider[:, first:end]
            got, own = ops.join(part, part).numpy(), part.numpy()
            np.testing.assert_array_equal(got, np.concatenate([own, own], axis=1))
            np.testing.assert_array_equal(ops.repeat(part, 3).numpy(), np.tile(own, (1, 3)))
        turned = there[::-1, ::-1], cuplug.asarray(whole.T.copy(), device="cuda").T
        got = ops.join(*turned, there, there[:, ::2]).numpy()
        wanted = np.concatenate([whole[::-1, ::-1], whole, whole, whole[:, ::2]], axis=1)
        np.testing.assert_array_equal(got, wanted)
    for width, times in ((1, 2), (3, 5), (64, 3), (1, 40), (0, 2), (2, 0)):
        x = random.integers(0, 99, (301, width)).astype(dtype)
        same(ops.repeat, x, times=times)
        if dtype[0] in "fc":
            same(ops.repeat_backward, np.tile(x, (1, times)), x, times=times)
        got = ops.repeat(cuplug.asarray(x, device="cuda")[::-2, ::-1], times).numpy()
        np.testing.assert_array_equal(got, np.tile(x[::-2, ::-1], (1, times)))
    out = cuplug.empty(701, dtype, device="cuda")[1:].reshape(350, 2)  # misaligned
    x, y = (random.integers(0, 99, (350, 1)).astype(dtype) for _ in range(2))
    ops.join(cuplug.asarray(x, device="cuda"), cuplug.asarray(y, device="cuda"), out=out)
    np.testing.assert_array_equal(out.numpy(), np.concatenate([x, y], axis=1))
""")


def test_triangles(run_plugins):
    run_plugins("""
build_plugin("indexing")
for dtype in ("uint8", "int16", "float32", "float64", "complex128"):
    for shape in ((1, 1), (3, 3, 3), (40, 33), (33, 64), (5, 300), (0, 3), (2, 7, 1, 9), (900, 1)):
        x = random.integers(1, 99, shape).astype(dtype)
        for k in (-40, -1, 0, 1, 7, 64, -(2**63), 2**63 - 1):
            same(ops.tril, x, k=k)
            same(ops.triu, x, k=k)
    x = random.integers(1, 99, 35 * 33 + 1).astype(dtype)
    there = cuplug.asarray(x, device="cuda")[1:].reshape(35, 33)  # misaligned
    np.testing.assert_array_equal(ops.tril(there, 2).numpy(), np.tril(x[1:].reshape(35, 33), 2))
""")
