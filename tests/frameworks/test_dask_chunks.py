# SPDX-License-Identifier: Apache-2.0
"""Reductions and scans of dask arrays that are split along the axes, compared with whole arrays."""

import pickle

import cuplug
import numpy as np
import pytest
from cuplug._source.expressions.chunked import chunked
from hypothesis import given, settings
from hypothesis import strategies as st

da = pytest.importorskip("dask.array")

FIELDS = {"reduce": "s = a.s + b.s; q = a.q + b.q", "accumulate": "s: float64, q: float64"}
REDUCTIONS = [
    cuplug.reduction("chunks_total(x: T) -> T", reduce="a + b", identity="0"),
    cuplug.reduction("chunks_most(x: T) -> T", reduce="max(a, b)"),
    cuplug.reduction("chunks_first(x: T) -> int64", choose="b > a", post="i"),
    cuplug.reduction("chunks_end(x: T) -> (v: T, k: int64)", choose="b > a", post="v = a; k = i"),
    cuplug.reduction("chunks_any(x: T) -> bool", map="x > 6", reduce="a || b", identity="0"),
    cuplug.reduction("chunks_mean(x: T) -> T", reduce="a + b", identity="0", post="a / n"),
    cuplug.reduction(
        "chunks_var(x: T) -> T",
        map="s = x; q = (double)x * x",
        post="a.q / n - (a.s / n) * (a.s / n)",
        **FIELDS,
    ),
    cuplug.reduction(
        "chunks_both(x: T) -> (s: float64, q: float64)", map="s = x; q = (double)x * x", **FIELDS
    ),
    cuplug.reduction(
        "chunks_typed(x: T) -> T", map="half_of(x)", reduce="a + (T)1 * b", identity="(T)0",
        preamble="static T half_of(T x) { return x / 2; }",
    ),
]  # fmt: skip
SCANS = [
    cuplug.scan("chunks_running(x: T) -> T", reduce="a + b"),
    cuplug.scan("chunks_before(x: T) -> T", reduce="a + b", identity="0", exclusive=True),
    cuplug.scan("chunks_means(x: T) -> float64", reduce="a + b", post="(double)a / n"),
    cuplug.scan(
        "chunks_best(x: T) -> T",
        map="value = x; other = -x",
        reduce="b.value > a.value ? b : a",
        accumulate="value: T, other: T",
        post="a.other",
    ),
    cuplug.scan(  # which is not commutative
        "chunks_affine(x: T) -> (p: T, q: T)",
        map="p = x; q = 1",
        reduce="p = a.p * b.p; q = a.q * b.p + b.q",
        accumulate="p: T, q: T",
    ),
]
DTYPES = ["int8", "uint16", "float16", "float32", "float64"]


def compare(operator, x, split, **keywords):
    """Compare each output of a call in chunks with the output for the whole array."""
    seen, expected = operator(split, **keywords), operator(x, **keywords)
    if not isinstance(expected, tuple):
        seen, expected = (seen,), (expected,)
    assert type(seen) is type(expected)
    for lazy, wanted in zip(seen, expected, strict=True):
        computed = lazy.compute(scheduler="synchronous")
        assert (lazy.shape, lazy.dtype) == (wanted.shape, wanted.dtype)
        assert (computed.shape, computed.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(computed, wanted, rtol=1e-12)


def split_array(data, dtype):
    """Draw an array of small integers, whose sums are exact, and how it is split."""
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    x = np.random.default_rng(data.draw(st.integers(0, 9))).integers(0, 8, shape)
    x = x.astype(dtype)
    return x, da.from_array(x, chunks=tuple(data.draw(st.integers(1, n)) for n in shape))


@pytest.mark.sample(15)
@pytest.mark.filterwarnings("ignore::dask.array.PerformanceWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", REDUCTIONS, ids=lambda x: x.name)
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_reductions_do_not_depend_on_chunks(operator, dtype, data):
    x, split = split_array(data, dtype)
    one = st.integers(-x.ndim, x.ndim - 1)
    several = st.lists(st.integers(0, x.ndim - 1), unique=True, min_size=1).map(tuple)
    axis, keepdims = data.draw(st.none() | one | several), data.draw(st.booleans())
    compare(operator, x, split, axis=axis, keepdims=keepdims)


@pytest.mark.sample(12)
@pytest.mark.filterwarnings("ignore::dask.array.PerformanceWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", SCANS, ids=lambda x: x.name)
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_scans_do_not_depend_on_chunks(operator, dtype, data):
    x, split = split_array(data, dtype)
    compare(operator, x, split, axis=data.draw(st.integers(-x.ndim, x.ndim - 1)))
    assert operator(split)[0].ndim in (x.ndim, x.ndim - 1)


def test_several_arrays_are_split_in_the_same_places():
    dot = cuplug.reduction("chunks_dot(x: T, y: T) -> T", map="x * y", reduce="a + b")
    x, y = np.arange(12.0).reshape(3, 4), np.arange(4.0)
    seen = dot(da.from_array(x, chunks=(2, 3)), da.from_array(y, chunks=2), axis=-1)
    np.testing.assert_array_equal(seen.compute(), x @ y)
    np.testing.assert_array_equal(dot(da.from_array(x, chunks=2), y, axis=1).compute(), x @ y)


def test_scalars_reach_every_task():
    norm = cuplug.reduction(
        "chunks_norm(x: T, p: float) -> T", map="pow(x, p)", reduce="a + b", post="pow(a, 1 / p)"
    )
    x = np.arange(1.0, 8)
    seen = norm(da.from_array(x, chunks=2), 3.0).compute()
    np.testing.assert_allclose(seen, (x**3).sum() ** (1 / 3))
    with pytest.raises(ValueError, match="got 4 blocks along dimension 0"):
        norm(da.from_array(x, chunks=2), da.from_array(x, chunks=7).max())  # not known yet


def test_chunks_of_unknown_sizes_and_without_elements():
    total, most, first, mean = REDUCTIONS[0], REDUCTIONS[1], REDUCTIONS[2], REDUCTIONS[5]
    x = da.arange(10.0, chunks=3)
    assert most(x[x > 4]).compute() == 9
    assert mean(x[x > 6]).compute() == 8
    assert total(x[x > 99]).compute() == 0
    with pytest.raises(ValueError, match="chunks_most: got nothing along axis"):
        most(x[x > 99]).compute()
    with pytest.raises(ValueError, match="chunks_first: x: got 4 blocks along dimension 0"):
        first(x[x > 4])
    np.testing.assert_array_equal(SCANS[0](x[x > 4]).compute(), np.cumsum(np.arange(5.0, 10)))


def test_a_tree_has_steps_of_a_few_values():
    x = da.ones(64, chunks=1)
    seen = REDUCTIONS[0](x)
    assert seen.compute() == 64
    longest = max(len(task) for task in map(str, seen.__dask_graph__().values()))
    assert longest < 3000  # and not one task with 64 values


def test_sums_of_elements_and_of_sums_are_one_program():
    found = chunked(REDUCTIONS[0], ("float64", "float64"))
    texts = [
        (x.signatures, {**x.__reduce__()[0].keywords, "post": "a"})
        for x in (found.chunk, found.combine, found.aggregate)
    ]
    assert texts[0] == texts[1] == texts[2]


def test_tasks_travel():
    x = da.arange(20.0, chunks=6)
    for operator in (REDUCTIONS[0], REDUCTIONS[2], SCANS[1]):
        seen, expected = operator(x), operator(x.compute())
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(seen)).compute(), expected)
        assert operator(x).name == seen.name  # so a cluster computes it once


def test_fused_functions_with_reductions():
    @cuplug.fuse
    def standardized(x):
        return (x - x.mean(axis=0)) / (1 + x.std(axis=0))

    @cuplug.fuse
    def soft(x):
        exponential = np.exp(x - x.max(axis=-1, keepdims=True))
        return exponential / exponential.sum(axis=-1, keepdims=True)

    x = np.random.default_rng(0).normal(size=(7, 6))
    split = da.from_array(x, chunks=(2, 4))
    for function in (standardized, soft):
        np.testing.assert_allclose(function(split).compute(), function(x), rtol=1e-12)


@pytest.mark.gpu
def test_chunks_on_a_gpu():
    x = np.arange(24.0).reshape(4, 6)
    split = da.from_array(x, chunks=(2, 4)).map_blocks(
        cuplug.asarray, device="cuda", dtype=x.dtype, meta=np.empty((0, 0))
    )
    for operator, keywords in ((REDUCTIONS[5], {"axis": 0}), (REDUCTIONS[2], {"axis": (0, 1)})):
        seen = operator(split, **keywords).compute(scheduler="synchronous")
        assert isinstance(seen, cuplug.Array)
        np.testing.assert_array_equal(np.asarray(seen.to_device("cpu")), operator(x, **keywords))
    seen = SCANS[2](split, axis=1).compute(scheduler="synchronous")
    np.testing.assert_array_equal(np.asarray(seen.to_device("cpu")), SCANS[2](x, axis=1))


class Stock:
    sort, argsort = cuplug.find("sorting.sort"), cuplug.find("sorting.argsort")
    topk, take = cuplug.find("sorting.topk"), cuplug.find("indexing.take_along_axis")
    sums, products = cuplug.find("scan.cumulative_sum"), cuplug.find("scan.cumulative_prod")


def test_operators_with_an_axis_are_split_along_the_others():
    x = np.random.default_rng(0).normal(size=(4, 5, 6))
    for axis in (0, 1, -1):
        split = da.from_array(x, chunks=tuple(-1 if k == axis % 3 else 2 for k in range(3)))
        indices = np.argsort(x, axis)
        for seen, expected in (
            (Stock.sort(split, axis=axis), np.sort(x, axis)),
            (Stock.argsort(split, axis=axis), indices),
            (Stock.sums(split, axis=axis), np.cumsum(x, axis)),
            (Stock.products(split, axis=axis), np.cumprod(x, axis)),
            (
                Stock.take(split, da.from_array(indices, chunks=split.chunks), axis=axis),
                np.take_along_axis(x, indices, axis),
            ),
            (Stock.topk(split, 2, axis=axis).values, np.take(-np.sort(-x, axis), [0, 1], axis)),
        ):
            assert np.prod(seen.numblocks) > 3
            assert seen.shape == expected.shape
            computed = seen.compute(scheduler="synchronous")
            assert computed.shape == seen.shape
            np.testing.assert_allclose(computed, expected)
    with pytest.raises(ValueError, match=r"sort: x: got 3 blocks along dimension 2 of .*{2: -1}"):
        Stock.sort(da.from_array(x, chunks=(4, 5, 2)))
