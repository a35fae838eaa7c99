# SPDX-License-Identifier: Apache-2.0
"""Reductions from expressions, compared with NumPy."""

import itertools
import pickle

import cuplug
import hypothesis.extra.numpy as arrays_of
import numpy as np
import pytest
from backends import COMPLEX, FLOAT8, FLOATING, SIGNED, UNSIGNED, assert_same, dtype_of
from cuplug._source.expressions import reductions
from expression_values import LONG, sliced, values
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

SHAPES = [(), (1,), (5,), (3, 4), (40, 50, 6), (1, 7), (2000, 3), (3, 2000), (0, 3), (3, 0),
          (2100, 2), (2100, 4), (2100, 5)]  # fmt: skip


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


@pytest.mark.sample(3)
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


@pytest.mark.sample(14)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint64"])
@pytest.mark.parametrize("shape", [(3,), (700,), (3, 5000), (5000, 3), (9000, 4)], ids=str)
def test_extremes_of_integers(backend, shape, dtype):
    random = np.random.default_rng(2)
    least, most = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    x = random.integers(least, most, shape, dtype_of(dtype), endpoint=True)
    for reduce, function in (("max(a, b)", np.max), ("min(b,a)", np.min)):
        made = cuplug.reduction("extreme(x: T) -> T", reduce=reduce)
        for axis in (None, 0, -1):
            got = made(backend.put(x), axis=axis, **backend.keywords)
            assert_same(np.asarray(backend.take(got)), np.asarray(function(x, axis=axis)))


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "texts",
    [{"map": "x + 1"}, {"post": "a * a / 100"}, {"identity": "-1000"}, {"stop": "a * a > 10000"}],
    ids=str,
)
def test_extremes_of_what_needs_more_bits(texts):
    made = cuplug.reduction("extreme(x: int8) -> int8", reduce="max(a, b)", **texts)
    x = np.array([127, 3, -128, 100], np.int8)
    mapped = x + np.int64(1) if "map" in texts else x
    most = int(np.max(mapped))
    wanted = most * most // 100 if "post" in texts else most
    assert made(x) == np.int64(wanted).astype(np.int8)
    if "identity" in texts:
        assert made(x[:0]) == np.int64(-1000).astype(np.int8)


@pytest.mark.sample(4)
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


@pytest.mark.sample(4)
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
    """Few outputs are computed in parts."""
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
    with pytest.raises(ValueError, match=r"largest: got nothing along axis, expected at least one"):
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
        with pytest.raises(ValueError, match="^inverse: map: line 1, column 5: got 100 / 0 of int"):
            inverse(x, axis=axis)
    mean = cuplug.reduction("mean(x: T) -> T", reduce="a + b", post="a / n", identity="0")
    with pytest.raises(ValueError, match="^mean: post: line 1, column 3: got 0 / 0 of integers"):
        mean(np.zeros((0, 3), np.int32), axis=0)


def test_out_and_the_argument_axis():
    x, out = values((3, 4), "float32"), np.empty(4, np.float32)
    assert TOTAL(x, axis=(0,), out=out) is out
    assert_same(out, x.sum(axis=0))
    with pytest.raises(ValueError, match="total: out: got|total: output"):
        TOTAL(x, axis=1, out=out)
    for axis in (2, -3, (0, 0), (0, -2)):
        with pytest.raises(ValueError, match=r"total: axis: got .*, expected -2 <= axis < 2"):
            TOTAL(x, axis=axis)
    for axis in ("0", 1.0, (0, None)):
        with pytest.raises(TypeError, match=r"^total: axis"):
            TOTAL(x, axis=axis)


def test_it_is_an_operator():
    assert isinstance(TOTAL, cuplug.Operator)
    assert "axis: int[] = None, keepdims: bool = False" in TOTAL.signatures[0]
    cuplug.prepare(TOTAL)
    assert cuplug.reload(TOTAL) == ()
    x = values((2, 3), "float32")
    assert TOTAL.infer(x, axis=-1).outputs[0].shape == (2,)
    assert_same(TOTAL(x, 0), x.sum(0))
    assert pickle.loads(pickle.dumps(TOTAL)) == TOTAL
    assert cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0") == TOTAL
    assert repr(TOTAL).startswith("<operator source.total")


# ---- Several values, numbers of elements, choices -----------------------------------------------

MINMAX = cuplug.reduction(
    "minmax(x: T) -> (low: T, high: T)",
    reduce="low = min(a.low, b.low); high = max(a.high, b.high)",
)
WELFORD = cuplug.reduction(
    "welford(x: T) -> (mean: float64, var: float64)",
    accumulate="count: float64, mean: float64, m2: float64",
    map="count = 1; mean = x; m2 = 0",
    reduce="""
double d = b.mean - a.mean;
count = a.count + b.count;
mean = a.mean + d * (b.count / count);
m2 = a.m2 + b.m2 + d * d * (a.count * b.count / count)""",
    post="mean = a.mean; var = a.m2 / a.count",
)
LAST = cuplug.reduction(
    "last(x: T) -> int64", map="x != 0 ? i : -1", reduce="max(a, b)", identity="-1"
)


@pytest.mark.sanitizer
@pytest.mark.parametrize("shape", LONG, ids=str)
def test_several_outputs(backend, shape):
    x = values(shape, "float32")
    for axis, keep in itertools.product((None, *range(x.ndim)), (False, True)):
        found = MINMAX(backend.put(x), axis=axis, keepdims=keep, **backend.keywords)
        assert_same(np.asarray(backend.take(found.low)), np.asarray(x.min(axis, keepdims=keep)))
        assert_same(np.asarray(backend.take(found.high)), np.asarray(x.max(axis, keepdims=keep)))
        found = WELFORD(backend.put(x), axis=axis, keepdims=keep, **backend.keywords)
        wanted = x.astype("f8").var(axis, keepdims=keep)
        np.testing.assert_allclose(np.asarray(backend.take(found.var)), wanted, rtol=1e-12)


@pytest.mark.sanitizer
def test_the_number_of_an_element_is_that_in_c_order(backend):
    x = np.zeros((30, 40, 50), np.float32)
    x[3, 20, 7] = x[4, 10, 9] = 1
    for v in (x, x.transpose(2, 0, 1), x[::-1, :, ::2]):
        for axis in (None, 1, (0, 2), (1, 2)):
            got = np.asarray(backend.take(LAST(backend.put(v), axis=axis, **backend.keywords)))
            axes = range(3) if axis is None else np.atleast_1d(axis)
            moved = np.moveaxis(v, sorted(axes), range(3 - len(axes), 3))
            flat = moved.reshape(*moved.shape[: 3 - len(axes)], -1) != 0
            places = np.where(flat, np.arange(flat.shape[-1]), -1)
            assert_same(got, np.asarray(places.max(axis=-1)))


@pytest.mark.sample(24)
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "float16", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(300, 400), (0, 3), (100_000,), (3, 50_000)], ids=str)
def test_any_and_all(shape, dtype):
    some = cuplug.reduction("some(x: T) -> bool", map="x != 0", reduce="a || b", identity="0")
    every = cuplug.reduction("every(x: T) -> bool", map="x", reduce="a && b", identity="1")
    for fill, n_others in itertools.product((0, 1, 3), (0, 1, 2)):
        x = np.full(shape, fill, dtype)
        x.reshape(-1)[-1 : -1 - 17 * n_others : -17] = not fill
        for axis in (None, *range(x.ndim)):
            assert_same(some(x, axis=axis), np.asarray(x.any(axis)))
            assert_same(every(x, axis=axis), np.asarray(x.all(axis)))


@pytest.mark.parametrize("n_late", [0, 1, 3])
def test_rows_that_are_decided_by_their_first_elements(n_late):
    """All rows are decided, or some only by their last element."""
    some = cuplug.reduction("some(x: T) -> bool", map="x != 0", reduce="a || b", identity="0")
    x = np.zeros((6, 40_000), np.int8)
    x[: 6 - n_late, 3] = x[1 : 1 + n_late, -1] = x[6 - n_late : 5, -1] = 1
    assert_same(some(x, axis=1), x.any(1))
    assert_same(some(x), np.asarray(x.any()))


@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_columns_of_which_some_need_not_be_read_to_the_end(dtype):
    """There are enough for each thread to have several, and a part of their elements."""
    some = cuplug.reduction("some(x: T) -> bool", map="x != 0", reduce="a || b", identity="0")
    row = (np.arange(33_797) // 1500 % 3 == 0).astype(dtype)
    x = np.broadcast_to(row, (1000, row.size))
    assert_same(some(x, axis=0), row != 0)


@pytest.mark.parametrize("axis", [0, 1])
def test_what_does_not_matter_is_not_read(axis):
    """A division by zero would show that it was read."""
    some = cuplug.reduction("some(x: T) -> bool", map="100 / x", reduce="a || b")
    least = cuplug.reduction("least(x: T) -> T", map="100 / x", reduce="min(a, b)", stop="a <= 10")
    x = np.full((2000, 16), 1000, np.int32)
    x[1500:] = 0
    given = x if axis == 0 else np.ascontiguousarray(x.T)
    with pytest.raises(ValueError, match="some: map: line 1, column 5: got 100 / 0"):
        some(given, axis=axis)
    x[0] = 10
    given = x if axis == 0 else np.ascontiguousarray(x.T)
    assert some(given, axis=axis).all()
    assert (least(given, axis=axis) == 0).all()


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
    texts = ("a + b", None, None, None, None, None, None, "")
    text = "norm(x: T, scale: float = 1.0) -> T where T: floating"
    row, _code = reductions.code_of_reduction(text, texts)
    assert row == (
        "norm(x: T[...], scale: float = 1.0, axis: int[] = None, keepdims: bool = False) -> T[...] "
        "where T: floating"
    )
