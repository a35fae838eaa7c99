# SPDX-License-Identifier: Apache-2.0
"""CUDA entries of stock plugins on the emulated driver, beside what the host computes."""

import pytest
from cuplug.compilers import toolkit

HEAD = """
import numpy as np
import cuplug
from cuplug import ops
from emulation import FIXTURES, build_plugin, build_sorting, install_expressions

install_expressions()
random = np.random.default_rng(0)


def same(operator, *arrays, **keywords):
    "Compare results, and arrays that are written to, on the host and on the emulated GPU."
    own = [np.array(x) for x in arrays]
    wanted = operator(*own, **keywords)
    there = [cuplug.asarray(x, device="cuda") for x in arrays]
    got = operator(*there, **keywords)
    cuplug.synchronize()
    pairs = list(zip(there, own))
    results = zip(got, wanted) if isinstance(wanted, tuple) else [(got, wanted)]
    pairs += [pair for pair in results if wanted is not None]
    for x, y in pairs:
        np.testing.assert_array_equal(np.asarray(x.numpy()), np.asarray(y))


def fails(error, operator, *arrays, **keywords):
    try:
        operator(*(cuplug.asarray(x, device="cuda") for x in arrays), **keywords)
        cuplug.synchronize()
    except error as seen:
        return str(seen)
    raise AssertionError("no error")
"""


@pytest.fixture
def run(run_emulated, emulated_cuda):
    """Return a function that runs Python text where stock plugins are emulated."""
    if not toolkit.find_nvcc():
        pytest.skip("needs the headers of nvcc")
    return lambda text: run_emulated(HEAD + text, LD_LIBRARY_CUPLUG_PATH=str(emulated_cuda))


def test_scatter(run):
    run("""
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
x, index = np.zeros((3, 1500)), np.zeros((3, 1500), int)
index[1, 3] = 1500
text = fails(IndexError, ops.take_along_axis, x, index)
assert "index 1500 at position 1503 is out of bounds for size 1500" in text, text
x, index = np.zeros(600), np.arange(600)
index[[40, 40 + 256]] = -601, 600  # of one thread, which reports one of them
text = fails(IndexError, ops.scatter_add, x, index, np.ones(600))
assert "index -601 at position 40 " in text or "index 600 at position 296 " in text, text
""")


def test_index(run):
    run("""
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
x, key = np.zeros((3, 4)), [np.zeros(1500, int), np.zeros(1500, int)]
key[1][1234] = 4
for call in (lambda x, *k: ops.index(x, list(k)),
             lambda x, *k: ops.index_put(x, list(k), cuplug.asarray(np.ones(1500), device="cuda"))):
    text = fails(IndexError, call, x, *key)
    assert "indices[1]: index 4 at position 1234 is out of bounds for size 4" in text, text
    cuplug.synchronize()
""")


def test_keys_of_arrays(run):
    """Wrong positions are told of later, once, and nothing is written for them."""
    run("""
from cuplug.array_api import indexing

build_plugin("gather"), build_plugin("indexing")
indexing.stock = lambda name: getattr(ops, name.split(".")[1])  # the emulated ones
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
np.testing.assert_array_equal(x.numpy(), changed)
""")


def test_histogram(run):
    run("""
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
assert "high: seen a distance from low that is not finite" in text, text
for dtype in ("int64", "int16"):
    same(ops.bincount, random.integers(0, 40, 3000).astype(dtype), size=40)
    same(ops.bincount, random.integers(0, 9000, 3000).astype(dtype), size=9000)
    text = fails(IndexError, ops.bincount, np.array([1, 2, 7], dtype), size=7)
    assert "index 7 at position 2" in text, text
""")


def test_selection(run):
    run("""
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


def test_sorting(run):
    run("""
build_sorting()


def values(dtype, *shape):
    x = random.integers(0, 90, shape).astype(dtype)
    if dtype[0] == "f":
        x.flat[::7], x.flat[3::11], x.flat[5::13] = np.nan, -0.0, -np.nan
    return x


for dtype in ("bool", "int8", "float16", "uint32", "float32", "float64", "int64"):
    for shape, axis in (((0,), 0), ((1,), 0), ((1024,), 0), ((1100,), 0), ((2, 700), 1),
                        ((7, 33), 1), ((30, 41), 0), ((2, 2, 5), 1)):
        x = values(dtype, *shape)
        other = random.integers(0, 90, shape).astype("complex64")
        for descending in (False, True):
            same(ops.sort, x, axis=axis, descending=descending)
            same(ops.argsort, x, axis=axis, descending=descending)
            same(ops.sort_by, other, x, axis=axis, descending=descending)
        for k in (0, 1, shape[axis] // 2, shape[axis]):
            if k <= shape[axis]:
                same(ops.topk, x, k=k, axis=axis)
                same(ops.topk, x, k=k, axis=axis, largest=False)
    for n in (0, 1, 2, 33, 1000, 1024, 1025, 4096, 4500):
        x = values(dtype, n)
        same(ops.unique_values, x)
        same(ops.unique, x)
    for m in (0, 1, 2, 700):
        for side in ("left", "right"):
            same(ops.searchsorted, ops.sort(values(dtype, m)), values(dtype, 1000), side=side)
same(ops.topk, values("float32", 3, 5000), k=70, axis=1)  # of chosen keys
for dtype in ("bool", "int8", "uint16", "int32", "uint64", "int64"):  # few values, or not
    for n_values in (1, 3, 200, 600, 1024, 1100):
        x = random.choice(random.integers(0, 9999, n_values), 5000).astype(dtype)
        same(ops.unique_values, x)
        if dtype != "bool":
            x[::4], x[1::4] = np.iinfo(dtype).min, np.iinfo(dtype).max
            same(ops.unique_values, x)
same(ops.unique_values, random.choice(np.array([7, -1, -(2**40)]), 1 << 22))
""")


def test_scan(run):
    """Lines that are long, in tiles: whole and not, side by side, backwards, from anywhere on."""
    run("""
build_plugin("scan", ["scan", "long", "columns", FIXTURES / "emulated_scan"])


def check(x, axis):
    for initial in (False, True):
        same(ops.cumulative_sum, x, axis=axis, include_initial=initial)
        same(ops.cumulative_prod, x, axis=axis, include_initial=initial)
        if x.dtype.kind in "fc":
            same(ops.cumulative_sum_backward, x, axis=axis, include_initial=initial)


for dtype in ("uint64", "float16", "float32", "complex64"):
    columns = [((300, 40), 0), ((2, 130, 17), 1), ((3, 16), 0), ((130, 4097), 0)]
    for shape, axis in (((65_541,), 0), ((65_540, 2), 0), ((9, 40), 1), ((3, 5000), 0), *columns):
        x = random.integers(0 if dtype[0] == "u" else -1, 2, shape)
        check(np.asarray(x + 1j * (x == 0) if dtype[0] == "c" else x, dtype), axis)
for n in (655_361, 1_400_000):  # windows of tiles: one and its last tile, more than two
    same(ops.cumulative_sum, random.integers(-1, 2, n).astype("complex128"))
same(ops.cumulative_sum, random.integers(-1, 2, (3, 70_001)).astype("int32"))
for dtype in ("float16", "float32", "complex64"):
    x = random.integers(-1, 2, 70_020).astype(dtype)
    there = cuplug.asarray(x, device="cuda")
    for first in range(9 if dtype == "float16" else 5):
        for n in (70_000, 69_999 - first):
            part = x[first : first + n]
            got = ops.cumulative_sum(there[first : first + n]).numpy()
            np.testing.assert_array_equal(got, np.cumsum(part, dtype="c8").astype(dtype))
            got = ops.cumulative_sum_backward(there[first : first + n]).numpy()
            wanted = np.cumsum(part[::-1], dtype="c8")[::-1]
            np.testing.assert_array_equal(got, wanted.astype(dtype))
""")


def test_relu(run):
    run("""
import ml_dtypes
build_plugin("relu")


def values(dtype, n):
    if np.dtype(dtype).kind == "i":
        return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, n, dtype, endpoint=True)
    x = random.normal(size=n).astype(dtype)
    x[::7], x[3::11], x[5::13], x[2::17] = 0, -0.0, -np.inf, np.nan
    return x


def equal(got, wanted):
    wide = [x.astype("f4") if x.dtype == ml_dtypes.bfloat16 else x for x in (got.numpy(), wanted)]
    np.testing.assert_array_equal(*wide)


def check(operator, device, host):
    equal(operator(*device), operator(*host))
    n = len(host[0])
    whole = cuplug.asarray(np.full(2 * n + 40, 9, host[0].dtype), device="cuda")
    expected = np.array(whole.numpy())
    for cut in (np.s_[:n], np.s_[3 : n + 3], np.s_[1 : 2 * n + 1 : 2]):
        operator(*device, out=whole[cut])
        expected[cut] = operator(*host)
        equal(whole, expected)


for dtype in ("int8", "int16", "int32", "int64", "float16", "float32", "float64",
              ml_dtypes.bfloat16):
    x, grad = values(dtype, 9000), values(dtype, 9000)
    d, g = (cuplug.asarray(each, device="cuda") for each in (x, grad))
    for n in (0, 1, 15, 16, 33, 4097, 8960):
        for first in range(0, 18 if n < 100 else 3):
            cut = np.s_[first : first + n]
            check(ops.relu, (d[cut],), (x[cut],))
            check(ops.relu_backward, (g[cut], d[cut]), (grad[cut], x[cut]))
            if dtype not in ("int8", "int16", "int32", "int64"):
                check(ops.leaky_relu, (d[cut],), (x[cut],))
    for cut in (np.s_[8999:90:-1], np.s_[5:8000:3]):
        check(ops.relu, (d[cut],), (x[cut],))
    rows, on_device = x[:8970].reshape(30, 13, 23), cuplug.array_api.reshape(d[:8970], (30, 13, 23))
    for cut in (np.s_[:, 1:, :], np.s_[:, :, 1:], np.s_[:, :-2, 2:20], np.s_[..., ::2]):
        equal(ops.relu(on_device[cut]), ops.relu(rows[cut]))
    turned = cuplug.array_api.permute_dims(on_device, (2, 1, 0))
    equal(ops.relu(turned), ops.relu(rows.transpose(2, 1, 0)))
""")


def test_joins(run):
    run("""
build_plugin("indexing")
for dtype in ("uint8", "int16", "float32", "float64", "complex128"):
    for n, widths in ((700, (1, 1)), (333, (1, 1, 1)), (200, (3, 1, 2, 5)), (9, (300, 301)),
                      (1, (1001, 999)), (3, (0, 4)), (0, (1, 1)), (2, (1030, 1, 70, 5))):
        parts = [random.integers(0, 99, (n, width)).astype(dtype) for width in widths]
        same(ops.join, *parts)
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
        got = ops.repeat(cuplug.asarray(x, device="cuda")[::-2, ::-1], times).numpy()
        np.testing.assert_array_equal(got, np.tile(x[::-2, ::-1], (1, times)))
    out = cuplug.empty(701, dtype, device="cuda")[1:].reshape(350, 2)  # misaligned
    x, y = (random.integers(0, 99, (350, 1)).astype(dtype) for _ in range(2))
    ops.join(cuplug.asarray(x, device="cuda"), cuplug.asarray(y, device="cuda"), out=out)
    np.testing.assert_array_equal(out.numpy(), np.concatenate([x, y], axis=1))
""")


def test_rows_far_apart(run):
    run("""
build_plugin("indexing")
wide = cuplug.empty((3, 1 << 26), "uint8", device="cuda")
for far in (wide[:, :21], wide[:, 5:26], wide[:, :: 1 << 22], wide[::-1, :2]):
    x = random.integers(0, 99, far.shape).astype("uint8")
    far[...] = cuplug.asarray(x, device="cuda")
    for n in (2, 3, 4):
        np.testing.assert_array_equal(ops.join(*[far] * n).numpy(), np.tile(x, (1, n)))
    np.testing.assert_array_equal(ops.repeat(far, 3).numpy(), np.tile(x, (1, 3)))
""")


def test_triangles(run):
    run("""
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


def test_functions_of_arrays(run):
    """What is made of the operators, with any layout, by single launches or not."""
    run("""
from cuplug import array_api as xp
from cuplug.lookup import find
build_plugin("indexing")
find.find_stock = lambda name: getattr(ops, name.partition(".")[2])


def views(x):
    return [x, x.T, x[::-1], x[:, ::2], x[:, :1], x[:0], x.reshape(-1), x.reshape(3, 4, 5)[:, 1:3]]


def alike(seen, wanted):
    assert seen.dtype == wanted.dtype
    np.testing.assert_array_equal(seen.numpy(), wanted)


for dtype in ("uint8", "float32", "complex128"):
    x = random.integers(0, 99, (12, 5)).astype(dtype)
    for ours, own in zip(views(cuplug.asarray(x, device="cuda")), views(x)):
        for axis in range(-1, own.ndim):
            for n in (1, 2, 3, 5):
                alike(xp.concat([ours] * n, axis=axis), np.concatenate([own] * n, axis=axis))
                alike(xp.stack([ours] * n, axis=axis), np.stack([own] * n, axis=axis))
                alike(xp.repeat(ours, n, axis=axis), np.repeat(own, n, axis=axis))
            for shift in (0, 3, -1, 10**9 + 1):
                alike(xp.roll(ours, shift, axis=axis), np.roll(own, shift, axis=axis))
        alike(xp.concat([ours, xp.astype(ours, "complex128")]),
              np.concatenate([own, own.astype("complex128")]))
        alike(xp.roll(ours, 2), np.roll(own, 2))
        alike(xp.repeat(ours, 3), np.repeat(own, 3))
        if own.ndim > 1:
            alike(xp.roll(ours, (1, -2), axis=(0, 1)), np.roll(own, (1, -2), axis=(0, 1)))
            alike(xp.tril(ours, k=1), np.tril(own, 1))
            alike(xp.triu(ours, k=-1), np.triu(own, -1))
""")
