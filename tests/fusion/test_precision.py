# SPDX-License-Identifier: Apache-2.0
"""Narrow floats in fused functions: only results are rounded to them, reduced ones in between are
float32."""

import cuplug
import ml_dtypes
import numpy as np
import pytest
from cuplug import array_api as xp
from hypothesis import given, settings
from hypothesis import strategies as st

NARROW = ["float16", "bfloat16"]


def rms_norm(x):
    return x / xp.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)


def layer_norm(x):
    mean = x.mean(axis=-1, keepdims=True)
    return (x - mean) / xp.sqrt(xp.var(x, axis=-1, keepdims=True) + 1e-5)


def softmax(x):
    powers = xp.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def log_softmax(x):
    away = x - x.max(axis=-1, keepdims=True)
    return away - xp.log(xp.exp(away).sum(axis=-1, keepdims=True))


def standard(x):
    return (x - x.mean()) / x.std(), x.mean(), x.sum(axis=0) / x.std(axis=0, keepdims=True)


def several(x):
    mean = x.mean(axis=-1, keepdims=True)
    spread = xp.var(x, axis=-1)
    return mean, x - mean, spread, xp.sqrt(spread), mean


FUNCTIONS = [rms_norm, layer_norm, softmax, log_softmax, standard, several]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def check_rounded_once(function, x):
    """Compare results with float64: the error is half a step of the dtype, plus float32's error.

    Differences of numbers of the size of `x` keep errors of that size.
    """
    with np.errstate(all="ignore"):
        found = cuplug.fuse(function)(x)
        wanted = cuplug.fuse(function)(x.astype("float64"))
    if not isinstance(found, tuple):
        found, wanted = (found,), (wanted,)
    finfo = ml_dtypes.finfo(x.dtype)
    size = float(np.abs(x.astype("float64")).max())
    for ours, exact in zip(found, wanted, strict=True):
        assert ours.dtype == x.dtype
        assert ours.shape == exact.shape
        step = np.maximum(np.abs(exact) * float(finfo.eps), float(finfo.smallest_subnormal))
        near = 0.51 * step + 2e-6 * (1 + size + np.abs(exact))
        is_finite = np.abs(exact) <= float(finfo.max)
        away = np.abs(ours.astype("float64")[is_finite] - exact[is_finite])
        assert np.all(away <= near[is_finite]), (function.__name__, ours, exact)
        assert not np.isnan(ours.astype("float64")).any()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_squares_and_sums_beyond_the_range_of_the_dtype(function, dtype):
    check_rounded_once(function, np.array([[300, 400], [-250, 512]], dtype_of(dtype)))
    check_rounded_once(function, np.array([[-1000, 1000, 500]], dtype_of(dtype)))


@pytest.mark.sample(4)
@pytest.mark.parametrize("given", ["float32", "float64", "int64", "bfloat16", "float16"])
@pytest.mark.parametrize("dtype", [*NARROW, "float8_e4m3fn", "float8_e5m2"])
def test_a_conversion_rounds_where_it_stands(dtype, given):
    """As in fake quantization: the store of a result does not replace it."""
    edges = [0, 1 / 3, 1, 17, 447.9, 463.9, 464.1, 65519.9, 65520.1, 6e4, 3e38, 1e-3, 3e-8, 1e-40]
    values = np.array([*edges, *np.geomspace(1e-9, 1e6, 5000), np.inf, np.nan])
    with np.errstate(all="ignore"):
        wide = np.concatenate([values, -values])
        x = (np.nan_to_num(wide) % 2**40 if given == "int64" else wide).astype(dtype_of(given))
        narrow = dtype_of(dtype)
        wanted = x.astype(narrow).astype("float32")
        twice = wanted * np.float32(2)
        found = cuplug.fuse(lambda x: x.astype(narrow).astype("float32"))(x)
        both = cuplug.fuse(lambda x: (x.astype(narrow), x.astype(narrow).astype("float32") * 2))(x)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]))
    np.testing.assert_array_equal(both[0].astype("float32"), wanted)
    np.testing.assert_array_equal(both[1], twice)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [*NARROW, "float8_e4m3fn", "float8_e5m2"])
def test_conversions_round_on_a_gpu_as_on_the_host(dtype):
    narrow = dtype_of(dtype)
    bits = np.arange(0, 1 << 32, 9973, dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    f = cuplug.fuse(lambda x: x.astype(narrow).astype("float32"))
    found = f(cuplug.asarray(x).to_device("cuda:0")).numpy()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, x.astype(narrow).astype("float32"))
    np.testing.assert_array_equal(found, f(x))


def test_a_converted_array_is_summed_as_it_was_rounded():
    x = np.full(1000, 1 + 2.0**-12, "float32")
    found = cuplug.fuse(lambda x: x.astype("float16").sum(dtype="float32"))(x)
    assert found == 1000


@pytest.mark.slow
@pytest.mark.parametrize("dtype", NARROW)
def test_the_sum_of_a_softmax_beyond_the_range_of_the_dtype(dtype):
    x = np.full((1, 100_000), 11, dtype_of(dtype))
    check_rounded_once(softmax, x)
    check_rounded_once(log_softmax, x)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", NARROW)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_results_are_rounded_once(dtype, data):
    seed = data.draw(st.integers(0, 1000))
    shape = (data.draw(st.integers(1, 3)), data.draw(st.integers(2, 70)))
    scale = data.draw(st.sampled_from([0.1, 1.0, 30.0, 200.0]))
    x = np.random.default_rng(seed).normal(scale, scale, shape).astype(dtype_of(dtype))
    for function in FUNCTIONS[:4]:
        check_rounded_once(function, x)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_bytes(dtype):
    x = np.array([[24, 32, 448, 448]], dtype_of(dtype))
    deviations = cuplug.fuse(lambda x: (x - x.sum(axis=-1, keepdims=True)).astype("float32"))
    np.testing.assert_array_equal(deviations(x), x.astype("f4") - x.astype("f4").sum())


@pytest.mark.slow
def test_converting_what_was_reduced():
    """The result of a reduction that continues in float32 is not rounded in between."""
    x = np.full(100_000, 11, "float16")
    assert cuplug.fuse(lambda x: x.sum().astype("float32") / 2)(x) == 550_000
    assert np.isinf(cuplug.fuse(lambda x: x.sum())(x))


def test_what_is_a_result_and_read_again_is_reduced_once(monkeypatch):
    calls = []
    calling = cuplug._source.fusion.plan.Step

    class Counted(calling):
        def __init__(self, text, call, fixed=None):
            def counted(*args, **keywords):
                calls.append(fixed is not None)
                return call(*args, **keywords)

            super().__init__(text, counted, fixed)

    monkeypatch.setattr(cuplug._source.fusion.plan, "Step", Counted)

    def centred(x):
        mean = x.mean()
        return mean, x - mean

    mean, rest = cuplug.fuse(centred)(np.array([1000, 1002.0, 1003], "float16"))
    assert calls.count(True) == 1
    assert mean == np.float16(1001.6667)
    np.testing.assert_array_equal(rest, np.float16([-1.66667, 0.33333, 1.33333]))


@cuplug.fuse
def spreads(x):
    return xp.var(x), xp.std(x, axis=0), xp.var(x, axis=-1, keepdims=True) * 2 + 1


def check_spreads(x, device, rtol):
    wide = x.astype("complex128" if x.dtype.kind == "c" else "float64")
    wanted = np.var(wide), np.std(wide, axis=0), np.var(wide, axis=-1, keepdims=True) * 2 + 1
    for seen, expected in zip(spreads(cuplug.asarray(x, device=device)), wanted, strict=True):
        np.testing.assert_allclose(seen.numpy(), expected, rtol=rtol, atol=1e-12)


@pytest.mark.sample(4)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_spread_far_from_zero(device, dtype):
    """The mean is rounded to its dtype, which must not widen the spread."""
    random = np.random.default_rng(0)
    for shape in ((4, 5), (700, 300), (3, 20_000), (20_000, 3)):
        for mean in (0, 1e4, 1e6, -1e6):
            x = random.normal(mean, 1, shape)
            x = x + 1j * random.normal(mean, 1, shape) if dtype[0] == "c" else x
            check_spreads(x.astype(dtype), device, 3e-6)


@pytest.mark.sample(8)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16"])
def test_spread_of_equal_numbers_and_of_others(dtype):
    x = np.full((7, 3), 0.1, dtype)
    for seen in spreads(x)[:2]:
        np.testing.assert_allclose(seen, 0, atol=1e-8)
    x[2, 1] = np.nan
    assert np.isnan(spreads(x)[0])
    np.testing.assert_array_equal(np.isnan(spreads(x)[1]), [False, True, False])
    x[2, 1] = np.inf
    assert np.isnan(spreads(x)[0])
