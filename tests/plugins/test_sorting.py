# SPDX-License-Identifier: Apache-2.0
"""sort, argsort, sort_by, topk and their gradients compared with NumPy's stable sort."""

import cuplug
import ml_dtypes
import numpy as np
import pytest
from backends import FLOATING, SIGNED, UNSIGNED, assert_same, dtype_of
from cuplug.ops import (
    argsort,
    sort,
    sort_backward,
    sort_by,
    topk,
    topk_backward,
    topk_backward_backward,
)
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = ["bool", *SIGNED, *UNSIGNED, *FLOATING]
SHAPES = [(0,), (1,), (41,), (3, 0, 2), (7, 300), (3, 5, 401), (2, 1100)]


def numbers(shape, dtype, seed=0) -> np.ndarray:
    """Return numbers of which many are equal, with NaN, infinities and both zeros."""
    random = np.random.default_rng(seed)
    dtype = dtype_of(dtype)
    if dtype.kind in "biu":
        low = -100 if dtype.kind == "i" else 0
        return random.integers(low, 100, shape).astype(dtype)
    x = random.integers(-50, 50, shape) * np.float32(0.25)
    for value in (np.nan, -np.nan, np.inf, -np.inf, -0.0):
        x[random.random(shape) < 0.02] = value
    return x.astype(dtype)


def wanted_order(x, axis, descending) -> np.ndarray:
    """Return the positions in stable order; NaN is larger than all numbers."""
    x = x.astype(np.float64) if x.dtype == ml_dtypes.bfloat16 else x
    if not descending:
        return np.argsort(x, axis, kind="stable")
    turned = np.argsort(np.flip(x, axis), axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - turned, axis)


def put_back(grad, index, x, axis):
    out = np.zeros(x.shape, grad.dtype)
    np.put_along_axis(out, index, grad, axis)
    return out


def check(backend, x, axis, descending):
    """Compare all operators that sort along an axis."""
    index = wanted_order(x, axis, descending)
    ordered = np.take_along_axis(x, index, axis)
    source = np.arange(x.size, dtype=np.float32).reshape(x.shape)
    assert_same(backend(argsort, x, axis, descending), index)
    assert_same(backend(sort, x, axis, descending), ordered)
    by_x = backend(sort_by, source, x, axis, descending)
    assert_same(by_x, np.take_along_axis(source, index, axis))
    back = backend(sort_backward, source, x, axis, descending)
    assert_same(back, put_back(source, index, x, axis))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_dtype(backend, dtype, shape):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    for axis in range(-1, len(shape) - 1):
        for descending in (False, True):
            check(backend, numbers(shape, dtype), axis, descending)


@pytest.mark.gpu
@pytest.mark.slow
def test_more_lines_than_are_sorted_at_once():
    x = np.random.default_rng(0).integers(0, 256, (300, 250_000), np.uint8)
    ordered = sort(cuplug.asarray(x, device="cuda"), -1, False).numpy()
    np.testing.assert_array_equal(ordered, np.sort(x, -1))


@pytest.mark.sanitizer
@settings(max_examples=30)
@given(
    shape=st.lists(st.integers(0, 60), min_size=1, max_size=3),
    dtype=st.sampled_from(["int8", "float16", "uint32", "float32", "int64", "float64"]),
    descending=st.booleans(),
    data=st.data(),
)
def test_shapes_and_axes(backend, shape, dtype, descending, data):
    if not backend.supports(dtype_of(dtype)):
        return
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    check(backend, numbers(tuple(shape), dtype), axis, descending)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int16", "float32", "int64"])
def test_long_lines(backend, dtype):
    """Sorted by all threads, or consecutively by CUB; several lines, and along the first axis."""
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    x = np.random.default_rng(0).standard_normal((2, 300_000))
    x = np.abs(x * 1e9) % 251 if dtype == "uint8" else x * (5000 if dtype[-2:] == "16" else 1e9)
    check(backend, x.astype(dtype), 1, False)
    check(backend, np.ascontiguousarray(x.astype(dtype).T), 0, True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_lines_of_few_numbers(backend, dtype):
    """Many equal ones, in ascending and descending order."""
    x = numbers((200_000,), dtype)
    for each in (x, np.sort(x), np.sort(x)[::-1]):
        check(backend, each, 0, False)
        check(backend, each, 0, True)


@pytest.mark.sample(4)
@pytest.mark.parametrize("m", [50, 1000, 300_000])
@pytest.mark.parametrize("low", [1, 2, 2**16, 2**32])
@pytest.mark.parametrize("high", [0, 1, 2**31, 2**62])
def test_wide_numbers_that_are_alike(backend, m, low, high):
    """Few bits differ, the upper ones or the lower ones."""
    random = np.random.default_rng(0)
    x = random.integers(-2, 3, (3, m)) * high + random.integers(0, 3, (3, m)) * low
    check(backend, x, 1, False)
    check(backend, x.astype(np.float64), 1, True)


@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "float32", "float64"])
def test_without_dimensions(backend, dtype):
    x, source = np.array(-1.5).astype(dtype_of(dtype)), np.array(2.5, "float32")
    for axis in (0, -1):
        for descending in (False, True):
            assert_same(backend(sort, x, axis, descending), x)
            assert_same(backend(argsort, x, axis, descending), np.array(0))
            assert_same(backend(sort_by, source, x, axis, descending), source)
            assert_same(backend(sort_backward, source, x, axis, descending), source)
    with pytest.raises(ValueError, match="axis = 1, expected"):
        backend(sort, x, 1)


def test_many_lines(backend):
    check(backend, numbers((30_000, 10), "float32"), 1, False)
    check(backend, numbers((10, 30_000), "float32"), 0, False)


def lengths(shown, others):
    """Return lengths of lines; compute-sanitizer, which takes minutes, runs only the first ones."""
    return [*(pytest.param(m, marks=pytest.mark.sanitizer) for m in shown), *others]


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64"])
@pytest.mark.parametrize(
    "m", lengths([3, 129, 1025], [2, 9, 100, 512, 1023, 1024, 1400, 2049, 4095, 4096])
)
def test_lines_of_all_lengths(backend, dtype, m):
    """By rows and by columns: the size of one block, and one more."""
    for n_lines in (1, 129, 4096 // m + 1):
        x = numbers((n_lines, m), dtype)
        check(backend, x, 1, False)
        check(backend, np.ascontiguousarray(x.T), 0, True)
    check(backend, numbers((3, m, 45), dtype), 1, False)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64"])
@pytest.mark.parametrize("m", lengths([9001], [4097, 8192, 40_000]))
def test_lines_that_no_block_holds(backend, dtype, m):
    """Ascending, descending and random; each pair of parts may have equal elements."""
    for n_lines in (2, 37):
        x = numbers((n_lines, m), dtype)
        x[1] = np.sort(x[1])
        check(backend, x, 1, False)
        check(backend, np.ascontiguousarray(x.T), 0, True)
    wide = (np.random.default_rng(2).permutation(2 * m) % 60_000).astype(dtype).reshape(2, m, 1)
    check(backend, np.concatenate([wide, -wide, wide], 2), 1, False)


@pytest.mark.sanitizer
@pytest.mark.parametrize(
    ("dtype", "m"),
    [("bool", 4097), ("int8", 9001), ("int16", 8193), ("float16", 20_000), ("float32", 33_000)],
)
def test_many_lines_that_no_block_holds(backend, dtype, m):
    x = numbers((66, m), dtype)
    check(backend, x, 1, False)
    check(backend, np.ascontiguousarray(x[::-1].T), 0, True)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_topk_of_many_lines(backend, dtype):
    for shape, axis in [((200, 700), 1), ((700, 150), 0), ((130, 2000), 1), ((2, 900, 70), 1)]:
        for k in (1, 40, shape[axis]):
            check_topk(backend, numbers(shape, dtype), k, axis, True)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
def test_topk_of_few(backend, dtype):
    """Also of lines whose first keys are all read by a few threads, and of equal keys."""
    for shape, k in [((5, 512), 100), ((3, 1025), 7), ((4, 4096), 64), ((130, 9000), 40)]:
        x = numbers(shape, dtype)
        for largest in (True, False):
            check_topk(backend, x, k, -1, largest)
            check_topk(backend, np.where(np.arange(shape[1]) % 512 < 60, x, 0), k, -1, largest)
            check_topk(backend, np.zeros(shape, dtype), k, -1, largest)


def test_strided_arrays(backend):
    x = numbers((60, 70), "float64").T[::2, ::-3]
    assert_same(backend(sort, x, 0), np.sort(x, 0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("largest", [True, False])
def test_topk(backend, dtype, largest):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    for shape, axis, k in [((9,), 0, 4), ((3, 50), 1, 50), ((40, 7), 0, 3), ((2, 9000), -1, 11)]:
        check_topk(backend, numbers(shape, dtype), k, axis, largest)


@pytest.mark.sanitizer
@settings(max_examples=30)
@given(
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    dtype=st.sampled_from(["bool", "float16", "float32", "int64"]),
    largest=st.booleans(),
    data=st.data(),
)
def test_topk_of_shapes_and_axes(backend, shape, dtype, largest, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    k = data.draw(st.integers(0, shape[axis]))
    check_topk(backend, numbers(tuple(shape), dtype), k, axis, largest)


def check_topk(backend, x, k, axis, largest):
    values, indices = topk(backend.put(x), k, axis, largest, **backend.keywords)
    assert cuplug.last_call().device == backend.device
    index = np.take(wanted_order(x, axis, largest), range(k), axis)
    assert_same(backend.take(indices), index)
    assert_same(backend.take(values), np.take_along_axis(x, index, axis))
    if x.dtype.kind == "f":
        grad = np.arange(index.size, dtype=x.dtype).reshape(index.shape)
        back = backend(topk_backward, grad, index, x, axis)
        assert_same(back, put_back(grad, index, x, axis))
        taken = backend(topk_backward_backward, back, index, axis)
        assert_same(taken, grad)


@pytest.mark.sanitizer
@pytest.mark.parametrize(
    "shape", [(1300,), (3, 20_000), (5000, 12), (70, 4100), (2, 140_000)], ids=str
)
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
def test_topk_of_long_lines(backend, dtype, shape):
    """Selected without sorting, by one block or several; many elements equal the last one."""
    axis = int(np.argmax(shape))
    x = numbers(shape, dtype)
    for k in (1, 100, shape[axis] // 4):
        check_topk(backend, x, k, axis, True)
        check_topk(backend, x, k, axis, False)
    wide = np.random.default_rng(1).integers(0, 2**62, shape)
    check_topk(backend, wide, 77, axis, True)


@pytest.mark.parametrize("turned", [1, -1])
def test_topk_where_each_element_is_better_than_those_before(backend, turned):
    x = np.arange(20_000, dtype=np.float32)[::turned]
    for k in (1, 7, 3000):
        check_topk(backend, x, k, 0, True)
        check_topk(backend, x, k, 0, False)


@pytest.mark.parametrize("k", [-1, 4])
def test_a_k_out_of_range_is_refused(k):
    with pytest.raises(ValueError, match="topk: "):
        topk(np.ones(3), k)


def test_complex_numbers_have_no_order():
    with pytest.raises(TypeError, match="sort: x: got complex64"):
        sort(np.ones(3, np.complex64))


@pytest.mark.parametrize("index", [-1, 5])
def test_a_bad_index_of_a_gradient(backend, index):
    arrays = (np.ones(2), np.array([0, index]), np.ones(5))
    with pytest.raises(IndexError, match=rf"indices: index {index} at position 1"):
        backend(topk_backward, *arrays)
        cuplug.synchronize()
    with pytest.raises(IndexError, match=rf"indices: index {index} at position 1"):
        backend(topk_backward_backward, np.ones(5), arrays[1])
        cuplug.synchronize()
