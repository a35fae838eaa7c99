# SPDX-License-Identifier: Apache-2.0
"""CUDA entries of stock plugins on the emulated driver, compared with the host."""

import pytest

pytestmark = pytest.mark.slow


def test_sorting(run_plugins):
    run_plugins("""
build_sorting()
for operator in (ops.sort, ops.argsort):
    same(operator, np.array(2.5), axis=0)


def values(dtype, *shape):
    x = random.integers(0, 90, shape).astype(dtype)
    if dtype[0] == "f":
        x.flat[::7], x.flat[3::11], x.flat[5::13] = np.nan, -0.0, -np.nan
    return x


for dtype in ("float16", "int64", "bool", "int8", "uint32", "float32", "float64"):
    for shape, axis in (((0,), 0), ((1,), 0), ((1024,), 0), ((1100,), 0), ((2, 700), 1),
                        ((7, 33), 1), ((30, 41), 0), ((2, 2, 5), 1), ((2, 1100), 1),
                        ((200, 7), 1), ((3, 140, 50), 1), ((2, 300), 0)):
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
    for shape, axis in (((4200,), 0), ((3, 9000), 1), ((16_385, 2), 0), ((2, 4097, 5), 1),
                        ((1, 1, 40), 1)):
        x = values(dtype, *shape)
        same(ops.sort, x, axis=axis)
        same(ops.argsort, x, axis=axis, descending=True)
        same(ops.sort_by, np.arange(x.size).reshape(shape), x, axis=axis)
        same(ops.sort_backward, np.arange(x.size, dtype="float32").reshape(shape), x, axis=axis)
    for n in (0, 1, 2, 33, 1000, 1024, 1025, 4096, 4500):
        x = values(dtype, n)
        same(ops.unique_values, x)
        same(ops.unique, x)
    for m in (0, 1, 2, 700):
        for side in ("left", "right"):
            for n in (1000, 20_000):
                same(ops.searchsorted, ops.sort(values(dtype, m)), values(dtype, n), side=side)
for side in ("left", "right"):
    wide = ops.sort(values("float64", 6500) * values("float64", 6500))
    same(ops.searchsorted, wide, values("float64", 3_300_000) ** 2, side=side)
for dtype, shape, axis in (("int8", (65, 4200), 1), ("bool", (4097, 70), 0),
                           ("int16", (64, 8200), 1), ("uint32", (2, 33_000), 1)):  # by digits
    x = random.integers(-(2**15), 2**15, shape).astype(dtype)
    same(ops.sort, x, axis=axis)
    same(ops.argsort, x, axis=axis)
for dtype in ("bool", "float16", "float32", "int64"):  # chosen, by a block for each line
    same(ops.topk, values(dtype, 3, 700), k=40, axis=1)
    same(ops.topk, values(dtype, 3, 5000), k=70, axis=1)
    same(ops.topk, values(dtype, 9000, 2), k=2200, axis=0)
for k in (1, 30_000):  # and by several
    same(ops.topk, random.standard_normal((2, 140_000)).astype("float32"), k=k, axis=1)
    same(ops.topk, random.integers(-9, 9, (1, 70_000)) << 40, k=k // 2, axis=1, largest=False)
for dtype in ("bool", "int64", "int8", "uint16", "int32", "uint64"):  # few values, or not
    for n_values in (1, 3, 200, 600, 1024, 1100):
        x = random.choice(random.integers(0, 9999, n_values), 5000).astype(dtype)
        same(ops.unique_values, x)
        if dtype != "bool":
            x[::4], x[1::4] = np.iinfo(dtype).min, np.iinfo(dtype).max
            same(ops.unique_values, x)
same(ops.unique_values, random.choice(np.array([7, -1, -(2**40)]), 1 << 22))
""")


def test_sorting_keeps_bits(run_plugins):
    """Signs of zeros and bits of NaNs: few lines, many, by merged parts, by digits, whole lines."""
    run_plugins("""
import ml_dtypes
build_sorting()


def drawn(dtype, shape, n_picked):
    x = random.integers(-9, 9, shape).astype(dtype)
    bits = x.view(f"u{x.dtype.itemsize}")
    sign = 1 << 8 * x.dtype.itemsize - 1
    nan = np.array(np.inf, dtype).view(bits.dtype)[()] + 1
    picked = np.array([0, sign, nan, nan | sign, nan + 1], bits.dtype)[: max(n_picked, 1)]
    is_picked = random.random(shape) < (0.4 if n_picked else 0)
    bits[is_picked] = random.choice(picked, int(is_picked.sum()))
    return x


def bits_of(x):
    return x.view(f"u{x.dtype.itemsize}")


def check(operator, x, **keywords):
    wanted = operator(x, **keywords, device="cpu")
    got = operator(cuplug.asarray(x, device="cuda"), **keywords)
    several = isinstance(wanted, tuple)
    for own, other in zip(got if several else [got], wanted if several else [wanted]):
        np.testing.assert_array_equal(bits_of(own.numpy()), bits_of(other))


shapes = [((40,), 0), ((900,), 0), ((3, 300), 1), ((300, 3), 0), ((2, 1100), 1), ((1100, 2), 0),
          ((4500,), 0), ((2, 4500), 1), ((4500, 2), 0), ((2, 9000), 1), ((70_000, 1), 1),
          ((2, 33_000), 1)]
for dtype in ("float16", ml_dtypes.bfloat16, "float32", "float64"):
    for n_picked in (0, 1, 2, 5):
        for shape, axis in shapes:
            for descending in (False, True):
                x = drawn(dtype, shape, n_picked)
                check(ops.sort, x, axis=axis, descending=descending)
        for n in (1, 40, 1000, 1025, 4500, 9000):
            check(ops.unique_values, drawn(dtype, n, n_picked))
            check(ops.unique, drawn(dtype, n, n_picked))
for at in (0, 5000, 29_999):  # in one of several parts, after zeros of one sign
    for value in (-0.0, np.nan):
        x = np.arange(60_000, dtype="float32").reshape(2, -1) % 3
        x[1, at] = value
        check(ops.sort, x, axis=1)
        check(ops.sort, x.T.copy(), axis=0, descending=True)
        check(ops.unique_values, x)
""")


def test_scan(run_plugins):
    """Long lines in tiles: complete and incomplete, adjacent, reversed, at any address."""
    run_plugins("""
files = ["scan", "single_pass", "columns", "warp_per_line", "products"]
build_plugin("scan", [*files, FIXTURES / "emulated_scan"], OPTIMIZED)


same(ops.cumulative_sum, np.array(2.5), axis=0)


def check(x, axis):
    for initial in (False, True):
        same(ops.cumulative_sum, x, axis=axis, include_initial=initial)
        same(ops.cumulative_prod, x, axis=axis, include_initial=initial)
        if x.dtype.kind in "fc":
            same(ops.cumulative_sum_backward, x, axis=axis, include_initial=initial)


for dtype in ("float16", "float32", "uint64", "complex64"):
    columns = [((300, 40), 0), ((2, 130, 17), 1), ((3, 16), 0), ((130, 4097), 0)]
    rows = [((9, 40), 1), ((40, 9), 1), ((4097, 33), 1)]
    for shape, axis in (((65_541,), 0), ((65_540, 2), 0), ((3, 5000), 0), *rows, *columns):
        x = random.integers(0 if dtype[0] == "u" else -1, 2, shape)
        check(np.asarray(x + 1j * (x == 0) if dtype[0] == "c" else x, dtype), axis)
for dtype in ("float16", "float32", "complex64"):  # small integers, of which most are 1 or -1
    for shape, axis in (((), -1), ((1,), 0), ((300,), 0), ((2, 700), 1), ((513, 3), 0),
                        ((0, 2), 1)):
        x = np.sign(random.integers(-9, 9, shape)).astype(dtype)
        for initial in (False, True) if shape else (False,):
            longer = list(shape)
            if initial:
                longer[axis] += 1
            grad = random.integers(-1, 2, longer).astype(dtype)
            same(ops.cumulative_prod_backward, grad, x, axis=axis, include_initial=initial)
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


def test_relu(run_plugins):
    run_plugins("""
import ml_dtypes
build_plugin("relu")


def values(dtype, n):
    if np.dtype(dtype).kind in "iu":
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


integers = [f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)]
for dtype in ("int8", ml_dtypes.bfloat16, *integers[1:], "float16", "float32", "float64"):
    x, grad = values(dtype, 9000), values(dtype, 9000)
    d, g = (cuplug.asarray(each, device="cuda") for each in (x, grad))
    for n in (0, 1, 15, 16, 33, 4097, 8960):
        for first in range(0, 18 if n < 100 else 3):
            cut = np.s_[first : first + n]
            check(ops.relu, (d[cut],), (x[cut],))
            check(ops.relu_backward, (g[cut], d[cut]), (grad[cut], x[cut]))
            if dtype not in integers:
                check(ops.leaky_relu, (d[cut],), (x[cut],))
    for cut in (np.s_[8999:90:-1], np.s_[5:8000:3]):
        check(ops.relu, (d[cut],), (x[cut],))
    rows, on_device = x[:8970].reshape(30, 13, 23), cuplug.array_api.reshape(d[:8970], (30, 13, 23))
    for cut in (np.s_[:, 1:, :], np.s_[:, :, 1:], np.s_[:, :-2, 2:20], np.s_[..., ::2]):
        equal(ops.relu(on_device[cut]), ops.relu(rows[cut]))
    turned = cuplug.array_api.permute_dims(on_device, (2, 1, 0))
    equal(ops.relu(turned), ops.relu(rows.transpose(2, 1, 0)))
""")


def test_rows_far_apart(run_plugins):
    run_plugins("""
build_plugin("indexing")
wide = cuplug.empty((3, 1 << 26), "uint8", device="cuda")
for far in (wide[:, :21], wide[:, 5:26], wide[:, :: 1 << 22], wide[::-1, :2]):
    x = random.integers(0, 99, far.shape).astype("uint8")
    far[...] = cuplug.asarray(x, device="cuda")
    for n in (2, 3, 4):
        np.testing.assert_array_equal(ops.join(*[far] * n).numpy(), np.tile(x, (1, n)))
    np.testing.assert_array_equal(ops.repeat(far, 3).numpy(), np.tile(x, (1, 3)))
""")


def test_functions_of_arrays(run_plugins):
    """Functions that call the operators, with any layout, with single launches or several."""
    run_plugins("""
from cuplug import array_api as xp
from cuplug._engine.lookup import find
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


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_rows(run_plugins, dtype):
    """Rows for a warp, a block and a cluster, and beyond registers; with unaligned addresses."""
    run_plugins(
        f"""
import ml_dtypes
dtype = np.dtype("{dtype}")
"""
        + """
build_plugin("rows", options=CLUSTERS)


def near(operator, *arrays, **keywords):
    # Results, and what is changed in place.
    inputs = [x.copy() for x in arrays]
    wanted = results(operator(*inputs, device="cpu", **keywords), inputs)
    there = [cuplug.asarray(x, device="cuda") for x in arrays]
    got = results(operator(*there, **keywords), there)
    for each, expected in zip(got, wanted):
        assert each.dtype == expected.dtype
        if each.dtype.kind == "i":
            np.testing.assert_array_equal(each, expected)
            continue
        expected = expected.astype("f8")
        bound = 4 * float(ml_dtypes.finfo(each.dtype).eps) * max(1, abs(expected).max(initial=0))
        np.testing.assert_allclose(each.astype("f8"), expected, rtol=0, atol=bound)
    for first in (1, 3):
        parts = []
        for x in arrays:
            padded = np.concatenate([np.zeros(first, x.dtype), x.ravel()])
            whole = cuplug.asarray(padded, device="cuda")
            at = whole.data_ptr + first * x.itemsize
            parts.append(cuplug.from_pointer(at, x.shape, x.dtype, "cuda", owner=whole))
        for each, expected in zip(results(operator(*parts, **keywords), parts), got):
            np.testing.assert_array_equal(each.view("u1"), expected.view("u1"))


def results(found, inputs):
    found = found if isinstance(found, tuple) else () if found is None else (found,)
    return [np.array(x if isinstance(x, np.ndarray) else x.numpy()) for x in (*found, *inputs)]


long = [(1, 65_544), (1, 131_080)] if dtype == "float32" else [(1, 33_032)]
for shape in ((1, 1), (9, 7), (5, 64), (3, 300), (2, 2050), (3, 4104), (2, 12_296), (3, 16_512),
              (0, 4), (4, 0), *long):
    x, grad = (random.standard_normal(shape).astype(dtype) for _ in "xg")
    for name in ("softmax", "log_softmax"):
        near(getattr(ops, name), x)
        near(getattr(ops, name + "_backward"), grad, getattr(ops, name)(x))
    weight, bias = (random.standard_normal(shape[1]).astype(dtype) for _ in "wb")
    near(ops.rms_norm, x, weight, eps=0.1)
    near(ops.layer_norm, x, weight, bias, eps=0.1)
    near(ops.add_rms_norm, x, grad, weight, eps=0.1)
    near(ops.add_layer_norm, x, grad, weight, bias, eps=0.1)
    near(ops.rms_norm_backward, grad, x, weight, eps=0.1)
    near(ops.layer_norm_backward, grad, x, weight, eps=0.1)
    more = [random.standard_normal(shape).astype(dtype) for _ in range(2)]
    near(ops.add_rms_norm_backward, *more, x, grad, weight, eps=0.1)
    near(ops.add_layer_norm_backward, *more, x, grad, weight, eps=0.1)
    twice = random.standard_normal((shape[0], 2 * shape[1])).astype(dtype)
    for name, how in (("silu_and_mul", {}), ("gelu_and_mul", {"approximate": "none"}),
                      ("gelu_and_mul", {"approximate": "tanh"})):
        near(getattr(ops, name), twice, **how)
        near(getattr(ops, name + "_backward"), grad, twice, **how)
    if shape[1]:
        target = random.integers(0, shape[1], shape[0]).astype(random.choice(["i4", "i8"]))
        target[1::3] = -100
        masked = np.where(np.arange(shape[1]) % 40 < 33, -np.inf, x).astype(dtype)
        masked[:, 0], zeros = 1, np.zeros(shape[0], "i4")
        near(ops.cross_entropy, masked, zeros)
        for smoothing in (0, 0.25):
            near(ops.cross_entropy, x, target, label_smoothing=smoothing)
            own = random.standard_normal(shape[0]).astype("f4")
            near(ops.cross_entropy_backward, own, x, target, label_smoothing=smoothing)
    k = min(3, shape[1])
    near(ops.topk_softmax, x, k=k, renormalize=True)
    own = random.standard_normal((shape[0], k)).astype("f4")
    for renormalize in (False, True):
        chosen = ops.topk_softmax(x, k, renormalize)
        near(ops.topk_softmax_backward, own, *chosen, x, renormalize=renormalize)
    for name in ("quantize_int8", "quantize_float8"):
        got = getattr(ops, name)(cuplug.asarray(x, device="cuda"))
        for each, wanted in zip(got, getattr(ops, name)(x)):
            steps = each.numpy().view("u1").astype("i8") - wanted.view("u1")
            assert (steps != 0).sum() <= 0.01 * steps.size, (name, dtype, shape)
for r, interleaved in ((4, False), (4, True), (3, False), (3, True)):
    q = random.standard_normal((5, 2, 8)).astype(dtype)
    k = random.standard_normal((5, 3, 8)).astype(dtype)
    cos, sin = (random.standard_normal((6, r)).astype("f4") for _ in "cs")
    positions = random.integers(0, 6, 5).astype(random.choice(["i4", "i8"]))
    near(ops.rotary, q, cos, sin, positions, k, interleaved=interleaved)
    near(ops.rotary_backward, q, cos, sin, positions, interleaved=interleaved)
"""
    )


def test_long_rows_on_a_gpu_that_runs_ptx_of_an_earlier_one(run_plugins):
    """Such code has no clusters, though the GPU has."""
    run_plugins("""
import os

os.environ["EMULATED_ARCHITECTURE"] = "80"
build_plugin("rows", options=CLUSTERS)
for n in (16_512, 65_544):
    x = random.standard_normal((2, n)).astype("float32")
    got = ops.softmax(cuplug.asarray(x, device="cuda")).numpy()
    np.testing.assert_allclose(got, ops.softmax(x), rtol=1e-5)
""")
