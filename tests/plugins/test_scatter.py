# SPDX-License-Identifier: Apache-2.0
"""Elements along an axis: taken, put and added, and their gradients, compared with NumPy."""

import cuplug
import numpy as np
import pytest
from backends import COMPLEX, FLOATING, SIGNED, UNSIGNED, assert_same, dtype_of
from cuplug.ops import (
    put,
    put_along_axis,
    scatter,
    scatter_add,
    scatter_add_backward,
    scatter_backward,
    take_along_axis,
    take_along_axis_backward,
)
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = ["bool", *SIGNED, *UNSIGNED, *FLOATING, *COMPLEX]
SHAPES = [((9,), 0, 5), ((3, 50), 1, 40), ((40, 7), 0, 3), ((2, 30, 3), -2, 10), ((3, 4), 1, 0)]


def numbers(shape, dtype, seed=0) -> np.ndarray:
    """Return small whole numbers, whose sums are exact."""
    dtype = dtype_of(dtype)
    x = np.random.default_rng(seed).integers(0 if dtype.kind in "bu" else -9, 10, shape)
    return np.asarray(x + 1j * (x % 3) if dtype.kind == "c" else x, dtype)


def places(shape, axis, n, dtype="int64") -> np.ndarray:
    """Return n indices for each line, without repetition; half of them count from the end."""
    random = np.random.default_rng(n)
    order = np.argsort(random.random(shape), axis)
    index = np.take(order, range(n), axis)
    from_end = random.random(index.shape) < 0.5
    return (index - from_end * shape[axis]).astype(dtype)


def added(x, indices, values, axis):
    out, at = x.copy(), list(np.indices(indices.shape, sparse=True))
    at[axis] = indices
    np.add.at(out, tuple(at), values)
    return out


def check(backend, x, indices, axis):
    """Compare all operators along an axis, without repeated positions."""
    values = numbers(indices.shape, x.dtype.name, 1)
    assert_same(backend(take_along_axis, x, indices, axis), np.take_along_axis(x, indices, axis))
    wanted = x.copy()
    np.put_along_axis(wanted, indices, values, axis)
    assert_same(backend(scatter, x, indices, values, axis), wanted)
    assert_same(backend(put_along_axis, x.copy(), indices, values, axis), wanted)
    if x.dtype.kind != "b":
        wanted = added(x, indices, values, axis)
        assert_same(backend(scatter_add, x, indices, values, axis), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis", "n"), SHAPES, ids=str)
def test_every_dtype(backend, dtype, shape, axis, n):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    check(backend, numbers(shape, dtype), places(shape, axis, n), axis)


def test_indices_of_32_bits(backend):
    check(backend, numbers((5, 60), "float32"), places((5, 60), 1, 9, "int32"), 1)
    check(backend, numbers((60, 5), "float32"), places((60, 5), 0, 9, "int32"), 0)


@pytest.mark.sanitizer
@settings(max_examples=30)
@given(
    shape=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    dtype=st.sampled_from(["int8", "float16", "float32", "complex64", "complex128"]),
    data=st.data(),
)
def test_shapes_and_axes(backend, shape, dtype, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    n = data.draw(st.integers(0, shape[axis]))
    check(backend, numbers(shape, dtype), places(tuple(shape), axis, n), axis)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "float32", "int64", "complex64"])
@pytest.mark.parametrize(("shape", "axis", "n"), [((7,), 0, 20_000), ((5, 3), 0, 4000)])
def test_many_values_for_one_place_are_all_added(backend, dtype, shape, axis, n):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    random, lines = np.random.default_rng(0), [*shape]
    lines[axis] = n
    indices = random.integers(-shape[axis], shape[axis], lines)
    x, values = np.zeros(shape, dtype), (random.random(lines) < 0.02).astype(dtype)
    wanted = added(x, indices, values, axis)
    assert_same(backend(scatter_add, x, indices, values, axis), wanted)
    if x.dtype.kind in "fc":
        assert_same(backend(take_along_axis_backward, values, indices, x, axis), wanted)


def test_large(backend):
    check(backend, numbers((300, 1000), "float32"), places((300, 1000), 1, 500), 1)
    check(backend, numbers((1000, 300), "float32"), places((1000, 300), 0, 500), 0)
    check(backend, numbers((200_000,), "float32"), places((200_000,), 0, 100_000), 0)
    check(backend, numbers((7, 50, 33), "float32"), places((7, 50, 33), 1, 31), 1)


def test_gradients(backend):
    shape, axis = (3, 30), 1
    indices = places(shape, axis, 11)
    x, grad = numbers(shape, "float32"), numbers(shape, "float32", 1)
    put_back, values = np.zeros_like(x), np.take_along_axis(grad, indices, axis)
    np.put_along_axis(put_back, indices, values, axis)
    assert_same(backend(take_along_axis_backward, values, indices, x, axis), put_back)
    for operator, grad_x in ((scatter_backward, grad - put_back), (scatter_add_backward, grad)):
        results = operator(backend.put(grad), backend.put(indices), axis, **backend.keywords)
        assert_same(backend.take(results.grad_x), grad_x)
        assert_same(backend.take(results.grad_values), values)


def test_of_values_for_one_place_one_has_the_gradient(backend):
    grad, indices = np.array([5.0, 7.0]), np.array([1, 1, -1])
    moved = [backend.put(x) for x in (grad, indices)]
    results = scatter_backward(*moved, **backend.keywords)
    assert backend.take(results.grad_x).tolist() == [5, 0]
    assert sorted(backend.take(results.grad_values).tolist()) == [0, 0, 7]


def test_the_last_value_stays_on_the_host():
    n = 50_000
    result = scatter(np.zeros(3), np.arange(n) % 3, np.arange(float(n)), device="cpu")
    assert result.tolist() == [n - 2, n - 1, n - 3]


@pytest.mark.sample(4)
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(
    ("shape", "n", "dtype"),
    [
        ((1 << 25,), 70_001, "int8"),
        ((9_000_001,), 100_000, "float32"),
        ((1_500_000, 3), 50_000, "complex64"),
        ((2_200_000,), 123_457, "complex128"),
    ],
    ids=str,
)
def test_places_beyond_the_cache(shape, n, dtype, index):
    """The last value for a position remains, and sums do not depend on the threads."""
    m, random = shape[0], np.random.default_rng(n)
    x, values = numbers(shape, dtype), numbers((n, *shape[1:]), dtype, 1)
    indices = random.integers(-m, m, n).astype(index)
    indices[::3] %= 1000
    wanted, got = x.copy(), x.copy()
    wanted[indices] = values
    put(got, indices, values)
    assert_same(got, wanted)
    lines = np.ascontiguousarray(
        np.broadcast_to(indices.reshape(n, *(1,) * (x.ndim - 1)), values.shape)
    )
    assert_same(scatter(x, lines, values, 0), wanted)
    assert_same(scatter_add(x, lines, values, 0), added(x, lines, values, 0))
    if x.dtype.kind in "fc":
        zeros = np.zeros_like(x)
        assert_same(take_along_axis_backward(values, lines, x, 0), added(zeros, lines, values, 0))
        check_gradients_of_scatter(x, lines, values)


def check_gradients_of_scatter(grad, lines, values):
    """The gradient at a written position belongs to its last value."""
    at = (lines % len(grad), *list(np.indices(lines.shape, sparse=True))[1:])
    number = np.full(grad.shape, -1)
    number[at] = np.arange(lines.size).reshape(lines.shape)
    results = scatter_backward(grad, lines, 0)
    assert_same(results.grad_x, np.where(number < 0, grad, 0).astype(grad.dtype))
    is_last = number[at] == np.arange(lines.size).reshape(lines.shape)
    assert_same(results.grad_values, np.where(is_last, grad[at], 0).astype(grad.dtype))


def test_more_values_than_are_sorted_at_once():
    m, n = 1 << 25, (1 << 24) + 5
    indices = np.random.default_rng(0).integers(0, m, n, np.int32)
    values, x, wanted = np.arange(n).astype("int8"), np.zeros(m, "int8"), np.zeros(m, "int8")
    put(x, indices, values)
    wanted[indices] = values
    assert (x == wanted).all()


def test_bad_indices_of_places_beyond_the_cache():
    m, indices = 1 << 23, np.arange(100_000)
    x = np.zeros(m, np.float32)
    for position in (0, 8191, 70_000, 99_999):
        bad = indices.copy()
        bad[position] = m
        message = rf"index {m} at position {position} is out of bounds for size {m}"
        with pytest.raises(IndexError, match=message):
            put(x, bad, np.ones(100_000, np.float32))


@pytest.mark.parametrize("row", [(), (1,), (3, 4), (0,)], ids=str)
def test_put(backend, row):
    x, indices = numbers((50, *row), "int16"), places((50,), 0, 20)
    values, wanted = numbers((20, *row), "int16", 1), x.copy()
    wanted[indices] = values
    assert_same(backend(put, x, indices, values), wanted)


def test_strided_arrays(backend):
    x = numbers((60, 70), "float64").T[::2, ::-3]
    indices = places(x.shape, 0, 9)
    assert_same(backend(take_along_axis, x, indices, 0), np.take_along_axis(x, indices, 0))


@pytest.mark.parametrize("index", [3, -4])
def test_bad_indices(backend, index):
    x, indices, values = np.ones((2, 3)), np.array([[0, 1], [2, index]]), np.ones((2, 2))
    message = rf"indices: index {index} at position 3 is out of bounds for size 3"
    calls = [(take_along_axis, x, indices), (scatter, x, indices, values)]
    calls += [(scatter_add, x, indices, values), (put_along_axis, x.copy(), indices, values)]
    for operator, *arrays in calls:
        with pytest.raises(IndexError, match=message):
            backend(operator, *arrays)
            cuplug.synchronize()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("shape", [(1, 1000), (9, 101), (500, 2), (1000, 1)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_the_first_bad_index_of_many_is_named(shape, axis, dtype):
    x, last = np.ones(shape), np.prod(shape) - 1
    for index in (shape[axis], np.iinfo(dtype).max, np.iinfo(dtype).min):
        for position in (0, 255, 256, 613, last):
            indices = np.zeros(shape, dtype)
            indices.flat[[position, last]] = index, np.iinfo(dtype).min
            message = rf"index {indices.flat[position]} at position {position} is out of bounds"
            with pytest.raises(IndexError, match=message):
                take_along_axis(x, indices, axis)


def test_another_shape_is_refused():
    with pytest.raises(ValueError, match="indices: got size 2 in dimension 0, expected 4"):
        take_along_axis(np.ones((4, 3)), np.zeros((2, 3), int), 1)
    with pytest.raises(ValueError, match="take_along_axis"):
        take_along_axis(np.ones((4, 3)), np.zeros(3, int))
