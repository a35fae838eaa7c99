# SPDX-License-Identifier: Apache-2.0
"""select, its gradient and nonzero, compared with NumPy's x[mask] and nonzero."""

import cuplug
import numpy as np
import pytest
from backends import COMPLEX, FLOAT8, FLOATING, SIGNED, UNSIGNED, assert_same, dtype_of
from cuplug.ops import nonzero, select, select_backward
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = ["bool", *SIGNED, *UNSIGNED, *FLOATING, *COMPLEX, *FLOAT8]
SHAPES = [(0,), (1,), (3, 0, 2), (7, 11), (16384,), (3, 5, 4001)]


def numbers(shape, dtype, seed=0) -> np.ndarray:
    """Return small whole numbers, a third of them 0, some of these negative zeros."""
    x = np.random.default_rng(seed).integers(-1, 2, shape).astype(np.float32)
    x[x == 0] *= -1
    dtype = dtype_of(dtype)
    return np.abs(x).astype(dtype) if dtype.kind in "bu" else x.astype(dtype)


def put_back(grad, mask):
    """Return zeros with the elements of grad where mask is true."""
    out = np.zeros(mask.shape, grad.dtype)
    out[mask] = grad
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_dtype(backend, dtype, shape):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    x, mask = numbers(shape, dtype), np.random.default_rng(1).random(shape) < 0.3
    assert_same(backend(select, x, mask), x[mask])
    assert_same(backend(nonzero, x), np.stack(np.nonzero(x)))
    assert_same(backend(select_backward, x[mask], mask), put_back(x[mask], mask))


@pytest.mark.sanitizer
@settings(max_examples=40)
@given(
    shape=st.lists(st.integers(0, 5), max_size=4),
    share=st.sampled_from([0, 0.1, 0.5, 1]),
    dtype=st.sampled_from(["uint8", "float16", "float32", "complex64", "complex128"]),
)
def test_shapes_and_masks(backend, shape, share, dtype):
    x = np.asarray(numbers(tuple(shape) or (1,), dtype).reshape(shape))
    mask = np.asarray(np.random.default_rng(2).random(shape) < share)
    assert_same(backend(select, x, mask), x[mask])
    assert_same(backend(select_backward, x[mask], mask), put_back(x[mask], mask))
    if shape:
        assert_same(backend(nonzero, x), np.stack(np.nonzero(x)))


@pytest.mark.sanitizer
def test_masks_that_begin_anywhere(backend):
    """Elements before and after complete packs of a mask are also counted."""
    if backend.name == "staged":
        pytest.skip("arrays of the host are copied")
    mask = np.random.default_rng(4).random(70_100) < 0.3
    x, moved = np.arange(mask.size), backend.put(mask)
    for begin, n in [(0, 5), (3, 9), (1, 31), (15, 16), (7, 70_001), (16, 65_536), (1, 1)]:
        part = moved[begin : begin + n]
        got = backend.take(select(backend.put(x[:n]), part))
        assert_same(got, x[:n][mask[begin : begin + n]])


def test_strided_arrays(backend):
    x, mask = numbers((60, 70), "float32"), np.random.default_rng(3).random((60, 70)) < 0.5
    x, mask = x.T[::2, ::-3], mask.T[::2, ::-3]
    assert_same(backend(select, x, mask), x[mask])
    assert_same(backend(nonzero, x), np.stack(np.nonzero(x)))


def test_nan_is_other_than_zero(backend):
    x = np.array([0.0, -0.0, np.nan, np.inf, 5e-324])
    assert backend(nonzero, x).tolist() == [[2, 3, 4]]


def test_large(backend):
    """More than one thread, and some chunks without selected elements."""
    n = 300_001
    x, mask = np.arange(n), np.arange(n) % 100_000 > 70_000
    assert_same(backend(select, x, mask), x[mask])
    assert_same(backend(nonzero, mask)[0], np.flatnonzero(mask))
    assert_same(backend(select_backward, x[mask], mask), np.where(mask, x, 0))


@pytest.mark.parametrize("share", [1e-4, 0.01, 0.06, 0.07, 0.3, 1])
@pytest.mark.parametrize("shape", [(2, 40_000), (40_000, 2), (9, 1, 7_001), (3, 50, 70, 2)])
def test_masks_sparse_and_dense(backend, shape, share):
    """More than one chunk, with few or all elements selected, in short and long rows."""
    mask = np.random.default_rng(6).random(shape) < share
    x = np.arange(mask.size).reshape(shape)
    assert_same(backend(select, x, mask), x[mask])
    assert_same(backend(nonzero, mask), np.stack(np.nonzero(mask)))


def test_another_shape_is_refused():
    with pytest.raises(ValueError, match="select: "):
        select(np.ones((2, 3)), np.ones((3, 2), bool))
    with pytest.raises(ValueError, match="nonzero: "):
        nonzero(np.ones(()))


@pytest.mark.parametrize("n", [1, 3])
def test_another_number_of_gradients_is_refused(n):
    message = rf"grad: got {n} elements, expected 2, as many as mask has true ones"
    with pytest.raises(ValueError, match=message):
        select_backward(np.ones(n), np.array([True, False, True]))


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1, 3])
def test_another_number_of_gradients_is_a_fault(n):
    mask = cuplug.asarray(np.array([True, False, True]), device="cuda")
    with pytest.raises(IndexError, match="select_backward"):
        select_backward(cuplug.asarray(np.ones(n), device="cuda"), mask).numpy()
