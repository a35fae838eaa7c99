# SPDX-License-Identifier: Apache-2.0
"""Rows by positions along several axes: taken, put and added, compared with NumPy."""

import cuplug
import numpy as np
import pytest
from backends import COMPLEX, FLOATING, SIGNED, UNSIGNED, assert_same, dtype_of
from cuplug.ops import index, index_backward, index_put, index_put_backward, put, put_backward
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = ["bool", *SIGNED, *UNSIGNED, *FLOATING, *COMPLEX]


def numbers(shape, dtype, seed=0) -> np.ndarray:
    """Return small whole numbers, whose sums are exact."""
    dtype = dtype_of(dtype)
    x = np.random.default_rng(seed).integers(0 if dtype.kind in "bu" else -9, 10, shape)
    return np.asarray(x + 1j * (x % 3) if dtype.kind == "c" else x, dtype)


def positions(sizes, shape, dtype="int64") -> list[np.ndarray]:
    """Return an array of positions for each size, without repetition; half count from the end."""
    random, n = np.random.default_rng(len(shape)), int(np.prod(shape))
    places = np.unravel_index(random.permutation(int(np.prod(sizes)))[:n], sizes)
    return [
        (k - (random.random(n) < 0.5) * size).astype(dtype).reshape(shape)
        for k, size in zip(places, sizes, strict=True)
    ]


def check(backend, x, indices):
    """Compare all operators with NumPy, without repeated positions."""
    key, changed = tuple(indices), x.copy()
    assert_same(backend(index, x, indices), x[key])
    values = numbers(x[key].shape, x.dtype.name, 1)
    changed[key] = values
    assert_same(backend(index_put, x.copy(), indices, values), changed)
    if x.dtype.kind in "fc" or x.dtype.name == "bfloat16":
        added = np.zeros_like(x)
        added[key] = values
        assert_same(backend(index_backward, values, indices, x), added)
        check_gradients(backend, x, indices, values)


def check_gradients(backend, grad, indices, values):
    """The gradient of x is 0 at written positions; the gradients of values are grad there."""
    key, rest = tuple(indices), grad.copy()
    rest[key] = 0
    found = backend(index_put_backward, grad, indices, values)
    assert_same(found[0], rest)
    assert_same(found[1], grad[key])
    found = backend(index_put_backward, grad, indices, values.ravel()[:1])
    assert_same(found[0], rest)
    if values.size:
        assert_same(found[1], grad[key].sum(dtype=grad.dtype).reshape(1))
    if len(indices) == 1 and indices[0].ndim == 1:
        found = backend(put_backward, grad, indices[0])
        assert_same(found[0], rest)
        assert_same(found[1], grad[key])


def test_the_gradient_of_one_value_for_many(backend):
    """Each position counts once; sums of halves are rounded once."""
    grad, at = np.ones(5000, "float16"), np.arange(5000) // 2
    found = backend(index_put_backward, grad, [at], np.ones(1, "float16"))
    assert_same(found[1], np.full(1, 2500, "float16"))
    found = backend(index_put_backward, grad, [at[:0]], np.ones(1, "float16"))
    assert_same(found[1], np.zeros(1, "float16"))
    assert_same(found[0], grad)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_axes", [1, 2, 3])
def test_every_dtype(backend, dtype, n_axes):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    shape = (7, 6, 5)
    check(backend, numbers(shape, dtype), positions(shape[:n_axes], (2, 3)))


@pytest.mark.sanitizer
@settings(max_examples=30)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    rest=st.lists(st.integers(0, 5), max_size=2),
    dtype=st.sampled_from(["int8", "float16", "float32", "complex64", "complex128"]),
    data=st.data(),
)
def test_shapes(backend, sizes, rest, dtype, data):
    n = data.draw(st.integers(0, int(np.prod(sizes))))
    kind = data.draw(st.sampled_from(["int32", "int64"]))
    check(backend, numbers((*sizes, *rest), dtype), positions(sizes, (n,), kind))


def test_large(backend):
    check(backend, numbers((400, 900), "float32"), positions((400, 900), (150_000,), "int32"))
    check(backend, numbers((50, 60, 70), "float64"), positions((50, 60), (40, 50)))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)], ids=str)
@pytest.mark.parametrize("n", [4, 3000])
def test_one_value_for_all_places(backend, shape, n):
    x, indices = numbers((70, 80, 2), "float32"), positions((70, 80), (n,))
    wanted = x.copy()
    wanted[tuple(indices)] = 77
    assert_same(backend(index_put, x, indices, np.full(shape, 77, np.float32)), wanted)


def test_of_values_for_one_place_all_are_added(backend):
    rows, columns = np.arange(60_000) % 3, np.arange(60_000) % 5
    values = np.ones(60_000, np.float32)
    added = backend(index_backward, values, [rows, columns], np.zeros((3, 5), np.float32))
    assert_same(added, np.full((3, 5), 4000, np.float32))


def test_the_last_value_stays_on_the_host():
    x = np.zeros((2, 2))
    index_put(x, [np.array([1, 0, 1]), np.array([0, 1, 0])], np.array([5.0, 6.0, 7.0]))
    assert x.tolist() == [[0, 6], [7, 0]]


@settings(max_examples=20)
@given(
    m=st.sampled_from([1, 2, 3, 5, 100]),
    n=st.sampled_from([1, 7, 300]),
    width=st.sampled_from([16, 17, 200, 1500]),
    dtype=st.sampled_from(["int8", "float16", "float32", "complex128"]),
    position=st.sampled_from(["int32", "int64"]),
)
def test_long_rows_on_the_host(m, n, width, dtype, position):
    places = np.random.default_rng(n).integers(-m, m, n).astype(position)
    x, values = numbers((m, 2, width), dtype), numbers((n, 2, width), dtype, 1)
    last = x.copy()
    for place, value in zip(places, values, strict=True):
        last[place] = value
    for put_to in (lambda y: put(y, places, values), lambda y: index_put(y, [places], values)):
        changed = x.copy()
        put_to(changed)
        assert_same(changed, last)
    for one in (np.asarray(7, x.dtype), np.asarray([0], x.dtype)):
        changed, filled = x.copy(), x.copy()
        index_put(changed, [places], one)
        filled[places] = one
        assert_same(changed, filled)
    assert_same(index(x, [places]), x[places])


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("bad", [4, -5, "max", "min"])
@pytest.mark.parametrize("at", [0, 1023, 70_001])
def test_bad_positions(backend, bad, dtype, at):
    limits = np.iinfo(dtype)
    bad = {"max": limits.max, "min": limits.min}.get(bad, bad)
    rows, columns = np.zeros(70_002, dtype), np.zeros(70_002, dtype)
    columns[at] = bad
    x, values = np.zeros((3, 4)), np.ones(70_002)
    message = rf"indices\[1\]: index {bad} at position {at} is out of bounds for size 4"
    for operator, *arrays in (
        (index, x, [rows, columns]),
        (index_put, x, [rows, columns], values),
        (index_backward, values, [rows, columns], x),
    ):
        with pytest.raises(IndexError, match=f"{operator.__name__}: {message}"):
            backend(operator, *arrays)
            cuplug.synchronize()
    cuplug.synchronize()  # nothing is reported twice


def test_a_bad_position_changes_nothing_on_the_host():
    x = np.zeros((3, 4))
    with pytest.raises(IndexError):
        index_put(x, [np.array([0, 3]), np.array([0, 0])], np.ones(2))
    assert not x.any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((3, 4)), []), "indices: got an empty list"),
        ((np.ones(3), [np.array([0])] * 2), r"expected len\(indices\) <= len\(s\)"),
        ((np.ones((3, 4)), [np.array([0]), np.array([0, 1])]), r"item 1: dimensions \*n"),
    ],
    ids=["none", "many", "unlike"],
)
def test_refused(arguments, message):
    with pytest.raises(ValueError, match=f"index: .*{message}"):
        index(*arguments)


def test_values_of_another_number():
    message = "values: got 3 elements, expected 4 for each of 2 positions"
    with pytest.raises(ValueError, match="index_backward: values: got 1 elements, expected 4"):
        index_backward(np.ones(1), [np.array([0, 1])], np.ones((3, 4)))
    with pytest.raises(ValueError, match=f"index_put: {message}"):
        index_put(np.ones((3, 4)), [np.array([0, 1])], np.ones(3))


def test_nothing_of_nothing(backend):
    none = [np.zeros(0, int), np.zeros(0, int)]
    assert_same(backend(index, np.ones((0, 4)), none), np.ones(0))
    with pytest.raises(IndexError, match="index 0 at position 0 is out of bounds for size 0"):
        backend(index, np.ones((0, 4)), [np.zeros(1, int), np.zeros(1, int)])
        cuplug.synchronize()
