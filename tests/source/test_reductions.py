# SPDX-License-Identifier: Apache-2.0
"""Reductions from expressions, against NumPy."""

import itertools
import pickle
import re

import cuplug
import hypothesis.extra.numpy as arrays_of
import numpy as np
import pytest
from backends import COMPLEX, FLOAT8, FLOATING, SIGNED, UNSIGNED, assert_same, dtype_of
from cuplug.source import reductions
from expressions import sliced, values
from hypothesis import given, settings
from hypothesis import strategies as st

TOTAL = cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0")
MEAN = cuplug.reduction("mean(x: T) -> T", reduce="a + b", post="a / n", identity="0")
LARGEST = cuplug.reduction("largest(x: T) -> T", reduce="max(a, b)")
DISTANCE = cuplug.reduction(
    "distance(x: T[...], y: T[...], scale: float = 1.0) -> float64[...]",
    map="scale * (x - y) * (x - y)",
    reduce="a + b",
    post="sqrt(a)",
    identity="0",
)

SHAPES = [(), (1,), (5,), (3, 4), (40, 50, 6), (1, 7), (2000, 3), (3, 2000), (0, 3), (3, 0)]


def axes_of(ndim):
    pairs = itertools.combinations(range(ndim), 2)
    return [None, (), *range(-ndim, ndim), *pairs, tuple(range(ndim))]


def exact_sum(x, **keywords):
    """Sum in float64 or 64-bit integers, rounded once."""
    wide = x.astype("f8") if x.dtype.name in FLOATING else x
    return np.asarray(wide.sum(**keywords)).astype(x.dtype)


@pytest.mark.sanitizer
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_axes(backend, shape):
    x = values(shape, "float32")
    for axis, keep in itertools.product(axes_of(x.ndim), (False, True)):
        got = TOTAL(backend.put(x), axis=axis, keepdims=keep, **backend.keywords)
        assert_same(np.asarray(backend.take(got)), exact_sum(x, axis=axis, keepdims=keep))
    assert cuplug.last_call().device == backend.device


@pytest.mark.sanitizer
@pytest.mark.parametrize("dtype", [*FLOATING, *SIGNED, *UNSIGNED, *COMPLEX])
def test_every_dtype(backend, dtype):
    x = np.random.default_rng(0).integers(0, 2, (30, 40)).astype(dtype_of(dtype))
    if not backend.supports(x.dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    for axis in (None, 0, 1):
        got = TOTAL(backend.put(x), axis=axis, **backend.keywords)
        wide = x.astype("c16" if dtype in COMPLEX else "f8")
        expected = np.asarray(wide.sum(axis=axis)).astype(x.dtype)
        assert_same(np.asarray(backend.take(got)), expected)


@pytest.mark.sanitizer
@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8_is_summed_in_float32(backend, dtype):
    x = values((300, 40), dtype)
    if not backend.supports(x.dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    total = cuplug.reduction("total(x: T) -> float32", reduce="a + b", identity="0")
    for axis in (None, 0, 1):
        got = np.asarray(backend.take(total(backend.put(x), axis=axis, **backend.keywords)))
        assert_same(got, np.asarray(x.astype("f4").sum(axis=axis)))
        with np.errstate(over="ignore"):
            narrow = np.asarray(x.astype("f4").sum(axis=axis)).astype(x.dtype)
        got = backend.take(TOTAL(backend.put(x), axis=axis, **backend.keywords))
        assert_same(np.asarray(got), narrow)


@pytest.mark.sanitizer
@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_numbers(backend, dtype):
    random = np.random.default_rng(0)
    x = (random.normal(size=(300, 401)) + 1j * random.normal(size=(300, 401))).astype(dtype)
    dot = cuplug.reduction("dot(x: T, y: T) -> T", map="conj(x) * y", reduce="a + b")
    power = cuplug.reduction(
        "power(x: T) -> float64", map="abs(x) * abs(x)", reduce="a + b", post="a / n"
    )
    near = 1e-4 if dtype == "complex64" else 1e-12
    for axis in (None, 0, 1):
        moved, keywords = backend.put(x), {"axis": axis, **backend.keywords}
        expected = (x.conj() * x[::-1]).sum(axis=axis)
        got = backend.take(dot(moved, backend.put(x[::-1].copy()), **keywords))
        np.testing.assert_allclose(np.asarray(got), expected, rtol=near, atol=100 * near)
        got = backend.take(power(moved, **keywords))
        np.testing.assert_allclose(np.asarray(got), (np.abs(x) ** 2).mean(axis=axis), rtol=near)


@pytest.mark.sanitizer
@pytest.mark.parametrize(
    "shape", [(100_003,), (2, 40_000), (40_000, 2), (300, 401), (5000, 12), (3, 2000, 40)], ids=str
)
def test_many_elements(backend, shape):
    """In parts where outputs are few."""
    x = values(shape, "float32")
    for axis in (None, 0, x.ndim - 1, tuple(range(x.ndim - 1))):
        got = backend.take(TOTAL(backend.put(x), axis=axis, **backend.keywords))
        assert_same(np.asarray(got), exact_sum(x, axis=axis))
        got = backend.take(LARGEST(backend.put(x), axis=axis, **backend.keywords))
        assert_same(np.asarray(got), np.asarray(x.max(axis=axis)))


@settings(max_examples=60)
@given(data=st.data())
def test_any_strides(backend, data):
    shape = data.draw(arrays_of.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9))
    x = sliced(data.draw, values(shape, "float64"))
    axis = data.draw(st.sampled_from(axes_of(x.ndim)))
    got = TOTAL(backend.put(np.asarray(x)), axis=axis, **backend.keywords)
    assert_same(np.asarray(backend.take(got)), np.asarray(x.sum(axis=axis)))


@pytest.mark.sanitizer
def test_several_arrays_and_scalars(backend):
    x, y = values((60, 128), "float32"), values((128,), "float32", 1)
    for axis in (None, 0, 1):
        got = DISTANCE(backend.put(x), backend.put(y), scale=4, axis=axis, **backend.keywords)
        expected = np.sqrt(4 * ((x.astype("f8") - y) ** 2).sum(axis=axis))
        np.testing.assert_allclose(np.asarray(backend.take(got)), expected, rtol=1e-12)


@pytest.mark.sanitizer
def test_nothing(backend):
    x = backend.put(np.zeros((0, 3), np.float32))
    assert backend.take(TOTAL(x, axis=0, **backend.keywords)).tolist() == [0, 0, 0]
    assert backend.take(LARGEST(x, axis=1, **backend.keywords)).shape == (0,)
    with pytest.raises(ValueError, match=r"largest: seen nothing along axis, wanted at least one"):
        LARGEST(x, axis=0, **backend.keywords)


def test_nan_comes_out():
    x = np.array([[1, np.nan], [3, 4]], np.float32)
    assert_same(LARGEST(x, axis=1), x.max(axis=1))
    assert_same(TOTAL(x, axis=0), x.sum(axis=0))


def test_halves_are_summed_in_float32():
    x = np.full(10_000, 0.1, np.float16)
    assert abs(float(TOTAL(x)) - 1000) < 1
    assert_same(
        np.asarray(TOTAL(np.full(300, 100, np.int8))), np.asarray(np.int64(30000)).astype("i1")
    )
    wide = cuplug.reduction("wide(x: float32[...]) -> float64[...]", reduce="a + b")
    assert wide(np.full(1 << 20, 0.1, np.float32)) == pytest.approx(float(np.float32(0.1)) * 2**20)
    narrow = cuplug.reduction("narrow(x: T) -> T", reduce="a + b", accumulate="float64")
    x = np.random.default_rng(0).random(100_000, np.float32)
    assert narrow(x) == np.float32(x.astype("f8").sum())


def test_accuracy():
    x = np.random.default_rng(0).random(3_000_000, np.float32)
    assert float(TOTAL(x)) == pytest.approx(x.astype("f8").sum(), rel=1e-6)
    same = np.broadcast_to(
        np.float32(0.1), 1 << 28
    )  # errors of one sign, in 64 parts of 4096 blocks
    exact = float(np.float32(0.1)) * same.size
    assert float(TOTAL(same)) == pytest.approx(exact, rel=1e-6)


def test_integer_division_without_a_result():
    inverse = cuplug.reduction("inverse(x: T) -> T", map="100 / x", reduce="a + b")
    for shape, axis in (((5,), None), ((300, 500), 0), ((300, 500), 1), ((300_000,), None)):
        x = np.full(shape, 10)
        assert (inverse(x, axis=axis) == 10 * x.sum(axis) // 10).all()
        x.flat[-2] = 0
        with pytest.raises(
            ValueError, match="^inverse: map: line 1, column 5: seen 100 / 0 of int"
        ):
            inverse(x, axis=axis)
    mean = cuplug.reduction("mean(x: T) -> T", reduce="a + b", post="a / n", identity="0")
    with pytest.raises(ValueError, match="^mean: post: line 1, column 3: seen 0 / 0 of integers"):
        mean(np.zeros((0, 3), np.int32), axis=0)


def test_out_and_the_argument_axis():
    x, out = values((3, 4), "float32"), np.empty(4, np.float32)
    assert TOTAL(x, axis=(0,), out=out) is out
    assert_same(out, x.sum(axis=0))
    with pytest.raises(ValueError, match="total: out: seen|total: output"):
        TOTAL(x, axis=1, out=out)
    for axis in (2, -3, (0, 0), (0, -2)):
        with pytest.raises(ValueError, match=r"total: axis: seen .*, wanted different numbers"):
            TOTAL(x, axis=axis)
    for axis in ("0", 1.0, [0], (0, None)):
        with pytest.raises(TypeError, match=r"^total: axis: seen .*, wanted an int, a tuple of"):
            TOTAL(x, axis=axis)


def test_the_operator_behind_it():
    assert TOTAL.operator(values((2, 3), "float32"), axis="0,1", keepdims=True).shape == (1, 1)
    assert pickle.loads(pickle.dumps(TOTAL)) == TOTAL
    assert cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0") == TOTAL
    assert repr(TOTAL).startswith("<reduction source.total")
    with pytest.raises(ValueError, match="total: axis: seen x, wanted different numbers"):
        TOTAL.operator(values((2, 3), "float32"), axis="x")


ILL_FORMED = {
    "f(a: T) -> T": "f: a: the expressions use a, b and n themselves",
    "f(x: T) -> (y: T, z: T)": "wanted arrays and one output",
    "f(x: T[n]) -> T[n]": "wanted arrays T[...]",
}


@pytest.mark.parametrize(("signature", "message"), ILL_FORMED.items(), ids=str)
def test_ill_formed_definitions(signature, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        cuplug.reduction(signature, reduce="a + b")


def test_accumulate_is_checked():
    with pytest.raises(ValueError, match="f: accumulate: seen 'complex', wanted a dtype"):
        cuplug.reduction("f(x: T) -> T", reduce="a + b", accumulate="complex")


def test_compiler_errors_show_the_users_line():
    f = cuplug.reduction("f(x: T) -> T", map="x * wrong", reduce="a + b")
    with pytest.raises(cuplug.CompileError) as raised:
        f(np.zeros(3))
    assert str(raised.value).startswith("f map: line 1: ")
    assert "> 1 | x * wrong" in str(raised.value)


@pytest.mark.gpu
def test_results_on_the_gpu_are_the_same_each_time():
    x = cuplug.asarray(np.random.default_rng(0).random((3000, 1000), np.float32), device="cuda")
    for axis in (None, 0, 1):
        first = TOTAL(x, axis=axis).numpy()
        assert all(np.array_equal(TOTAL(x, axis=axis).numpy(), first) for _ in range(5))


@pytest.mark.gpu
def test_graph_capture():
    torch = pytest.importorskip("torch")
    x = torch.arange(1_000_000, dtype=torch.float32, device="cuda").reshape(1000, 1000) % 7
    out = torch.empty(1000, device="cuda")
    whole = torch.empty((), device="cuda")
    MEAN(x, axis=0, out=out), MEAN(x, out=whole)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        MEAN(x, axis=0, out=out), MEAN(x, out=whole)
    x.add_(1)
    graph.replay()
    torch.testing.assert_close(out, x.mean(0))
    torch.testing.assert_close(whole, x.mean())


def test_the_row_that_is_defined():
    row = reductions._row("norm(x: T, scale: float = 1.0) -> T where T: floating")
    assert row == (
        'norm(x: T[...], scale: float = 1.0, axis: str = "all", keepdims: bool = False) -> T[...] '
        "where T: floating"
    )
