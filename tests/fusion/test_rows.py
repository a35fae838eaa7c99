# SPDX-License-Identifier: Apache-2.0
"""Functions of rows, which fuse into one operator: values, layouts, bits for any neighbors."""

import pickle
import threading

import cuplug
import ml_dtypes
import numpy as np
import pytest
from backends import dtype_of
from cuplug import array_api as xp
from hypothesis import given, settings
from hypothesis import strategies as st

GPU = pytest.param("cuda", marks=pytest.mark.gpu)
DEVICES = ["cpu", GPU]
LAST = {"axis": -1, "keepdims": True}


def softmax(x):
    e = np.exp(x - np.max(x, **LAST))
    return e / np.sum(e, **LAST)


def log_softmax(x):
    away = x - np.max(x, **LAST)
    return away - np.log(np.sum(np.exp(away), **LAST))


def layer_norm(x, w, b):
    away = x - np.mean(x, **LAST)
    return away / np.sqrt(np.var(x, **LAST) + 1e-5) * w + b


def rms_norm(x, residual, w):
    added = x + residual
    return added / np.sqrt(np.mean(added * added, **LAST) + 1e-6) * w, added


def statistics(x):
    mean, var = np.mean(x, **LAST), np.var(x, **LAST)
    return (x - mean) / np.sqrt(var + 1e-5), mean, 1 / np.sqrt(var + 1e-5)


def cross_entropy(x, chosen):
    most = np.max(x, **LAST)
    total = np.sum(np.exp(x - most), **LAST)
    return np.sum(np.where(chosen, np.log(total) + most - x, 0), axis=-1)


def masked(x, mask):
    kept = np.where(mask, x, -1e30)
    e = np.where(mask, np.exp(kept - np.max(kept, **LAST)), 0)
    return e / np.sum(e, **LAST)


def quantized(x):
    scale = np.max(abs(x), **LAST) / 127
    return np.round(x / scale).astype(np.int8), scale


def centred(k):
    return k - np.min(k, **LAST), np.any(k > 90, **LAST), np.count_nonzero(k > 3, axis=-1)


def drawn(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    return rng.normal(0, 2, shape).astype(dtype)


def each(result):
    return result if isinstance(result, tuple) else (result,)


def check(function, *args, device="cpu", near=None, **keywords):
    """Compare a fused function with the function on NumPy float64 arrays."""
    wide = [x.astype("float64") if x.dtype.kind in "fV" else x for x in args]
    with np.errstate(all="ignore"):
        wanted, likes = each(function(*wide)), each(function(*args))
    found = each(cuplug.fuse(function)(*args, device=device, **keywords))
    for ours, exact, like in zip(found, wanted, likes, strict=True):
        assert ours.shape == np.shape(exact)
        is_bfloat16 = args[0].dtype == ml_dtypes.bfloat16  # whose means are float32 in NumPy
        assert ours.dtype == (args[0].dtype if is_bfloat16 else like.dtype)
        if like.dtype.kind in "biu":
            np.testing.assert_array_equal(ours, like)
            continue
        near_of = {2: 0.02, 4: 2e-6, 8: 1e-14}[ours.dtype.itemsize] if near is None else near
        np.testing.assert_allclose(ours.astype("float64"), exact, near_of, near_of)


def of_norm(function, dtype, shape):
    x = drawn(dtype, shape)
    w, b = drawn(dtype, shape[-1:], 1), drawn(dtype, shape[-1:], 2)
    return {"softmax": (x,), "log_softmax": (x,), "layer_norm": (x, w, b), "statistics": (x,)}.get(
        function.__name__, (x, drawn(dtype, shape, 3), w)
    )


FUNCTIONS = [softmax, log_softmax, layer_norm, rms_norm, statistics]
SHAPES = [(3, 1), (4, 7), (1, 64), (5, 1000), (2, 3, 1025), (2, 4097), (0, 5), (9,)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_values(function, dtype, device):
    for shape in SHAPES:
        check(function, *of_norm(function, dtype_of(dtype), shape), device=device)


@pytest.mark.sample(4)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [9000, 40000, 65536, 65537])
def test_long_rows(n, device):
    check(softmax, drawn("float32", (2, n)), device=device)
    check(layer_norm, *of_norm(layer_norm, "float32", (2, n)), device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_losses_masks_and_integers(device):
    x, chosen = drawn("float32", (6, 33)), np.arange(33) == np.arange(6)[:, None]
    check(cross_entropy, x, chosen, device=device)
    check(masked, x, x > -1, device=device)
    check(masked, x, np.arange(33) < 9, device=device)
    check(quantized, drawn("float32", (6, 256)), device=device)
    for dtype in ("int8", "uint16", "int32", "int64"):
        check(centred, drawn(dtype, (5, 70)), device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_arrays_that_broadcast(device):
    x, column, row = drawn("float32", (4, 6)), drawn("float32", (4, 1)), drawn("float32", (6,))

    def scaled(x, y):
        return (x - np.mean(x, **LAST)) * y, np.sum(x * x, **LAST)

    for y in (column, row, drawn("float32", (1, 1)), drawn("float32", (3, 1, 6))):
        check(scaled, x, y, device=device)
    check(scaled, column, row, device=device)  # rows of one element, next to longer ones
    check(scaled, np.broadcast_to(column, (4, 6)), row, device=device)
    check(scaled, x, np.float32(3) + np.zeros((), "float32"), device=device)


@pytest.mark.parametrize("device", DEVICES)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_layouts(device, data):
    shape = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 40)))
    dtype = data.draw(st.sampled_from(["float32", "float64", "float16"]))
    steps = data.draw(st.tuples(*[st.sampled_from([1, 2, -1])] * 3))
    order = data.draw(st.permutations(range(3)))

    def view(seed):
        larger = drawn(dtype, tuple(2 * shape[k] for k in order), seed).transpose(np.argsort(order))
        return larger[tuple(slice(None, None, s) for s in steps)][
            : shape[0], : shape[1], : shape[2]
        ]

    x, w = view(0), view(1)
    check(rms_norm, x, w, drawn(dtype, shape[-1:], 4), device=device, near=0.02)


@pytest.mark.parametrize("device", DEVICES)
def test_outputs(device):
    x = drawn("float32", (5, 70))
    fused, wanted = cuplug.fuse(softmax), softmax(x)
    for out in (np.empty((5, 70), "float32"), np.empty((5, 140), "float32")[:, ::2], x.copy()):
        own = out if out.base is None and (out == x).all() else x
        assert fused(own, out=out, device=device) is out
        np.testing.assert_allclose(out, wanted, 2e-6)
    with pytest.raises(ValueError, match=r"^softmax: out: "):
        fused(x, out=np.empty((5, 71), "float32"), device=device)


def test_without_elements():
    assert cuplug.fuse(lambda x: x - np.sum(x, **LAST))(np.zeros((3, 0))).shape == (3, 0)
    with pytest.raises(ValueError, match="no identity"):
        cuplug.fuse(softmax)(np.zeros((3, 0)))
    with pytest.raises(ValueError, match="axis"):
        cuplug.fuse(softmax)(np.zeros(()))


def test_numbers():
    @cuplug.fuse
    def tempered(x, t):
        e = np.exp((x - np.max(x, **LAST)) / t)
        return e / np.sum(e, **LAST)

    x = drawn("float32", (3, 9))
    for t in (2, 0.5, np.float32(3), float("inf")):
        np.testing.assert_allclose(tempered(x, t), tempered.function(x, np.float32(t)), 2e-6)
    limited = cuplug.fuse(lambda x: np.where(x > 0, x, -np.inf) - np.max(x, **LAST))
    np.testing.assert_array_equal(limited(x), limited.function(x))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [1e-39, 1e-30, 1e-3, 1e30, 3e37])
def test_quotients_of_narrow_numbers(size, device):
    x = (drawn("float64", (4, 70)) * size).astype(ml_dtypes.bfloat16)
    check(lambda x: x / np.max(abs(x), **LAST), x, device=device, near=2**-8)
    zero = cuplug.fuse(lambda x: x / np.max(abs(x), **LAST))(x * 0, device=device)
    assert np.isnan(zero.astype("float32")).all()


def test_nan_and_infinities():
    x = drawn("float32", (6, 80))
    x[0, 3], x[1, 5], x[2, 7], x[3] = np.nan, np.inf, -np.inf, -np.inf
    for function in (softmax, log_softmax):
        with np.errstate(all="ignore"):
            wanted = function(x)
        np.testing.assert_allclose(cuplug.fuse(function)(x), wanted, 2e-6, 2e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("n", [7, 64, 1000, 4096, 9001])
def test_the_bits_of_a_row_depend_on_no_other(n, dtype, device):
    many = drawn(dtype_of(dtype), (67, n))
    for function in (softmax, layer_norm):
        args = of_norm(function, dtype_of(dtype), (1, n))[1:]
        fused = cuplug.fuse(function)
        wanted = fused(many, *args, device=device).view("u1")
        for rows in (slice(0, 1), slice(66, 67), slice(3, 40), slice(None, None, 5)):
            found = fused(many[rows], *args, device=device)
            np.testing.assert_array_equal(found.view("u1"), wanted[rows])
        shifted = np.empty((67, n + 1), many.dtype)[:, 1:]
        shifted[:] = many
        found = fused(shifted, *args, device=device)
        np.testing.assert_array_equal(found.view("u1"), wanted)


def test_threads():
    fused, x = cuplug.fuse(layer_norm), drawn("float32", (300, 700))
    w = drawn("float32", (700,))
    wanted, found = fused(x, w, w), {}

    def work(k):
        found[k] = all((fused(x, w, w) == wanted).all() for _ in range(20))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(4), True)


def test_own_arrays_and_lists_of_results():
    x = cuplug.asarray(drawn("float32", (4, 20)))
    made = cuplug.fuse(lambda x: [x - xp.max(x, **LAST), xp.max(x, **LAST)])(x)
    assert type(made) is list
    np.testing.assert_array_equal(made[0].numpy(), x.numpy() - x.numpy().max(**LAST))
    half = cuplug.fuse(softmax)(x.numpy().astype(ml_dtypes.bfloat16))
    assert half.dtype == ml_dtypes.bfloat16


EMULATED = """
import sys
sys.path.insert(0, {folder!r})
from emulation import install_expressions
install_expressions()
import test_rows as t
for function in t.FUNCTIONS[:{n}]:
    for dtype, shape in (("float32", (3, 70)), ("float64", (2, 3, 33)), ("float32", (2, 4100))):
        t.check(function, *t.of_norm(function, dtype, shape), device="cuda")
t.check(t.softmax, t.drawn("float32", (2, 33000)), device="cuda")
t.check(t.quantized, t.drawn("float32", (3, 96)), device="cuda")
"""


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_the_code_for_gpus(run_emulated, n):
    run_emulated(EMULATED.format(folder=__file__.rpartition("/")[0], n=n))


def test_pickled_operators_are_the_same():
    fused = cuplug.fuse(layer_norm)
    fused(*of_norm(layer_norm, "float32", (3, 8)))
    (operator,) = (plan.direct[0] for plan in fused._plans.values())
    assert pickle.loads(pickle.dumps(operator)) is operator
    again = cuplug.fuse(layer_norm)
    again(*of_norm(layer_norm, "float32", (3, 8)))
    assert next(iter(again._plans.values())).direct[0] is operator
