# SPDX-License-Identifier: Apache-2.0
"""Operators of rows, along the last axis, compared with NumPy in float64."""

import numpy as np
import pytest
from backends import dtype_of
from cuplug.ops import log_softmax, log_softmax_backward, softmax, softmax_backward

# Beyond a block of the host, and beyond the registers of a GPU block: 32 KiB.
SHAPES = [(1,), (5, 1), (3, 7), (2, 3, 64), (2, 1023), (3, 4096), (2, 16_500), (0, 8), (4, 0)]
NEAR = {"float32": 5e-6, "float16": 1e-3, "bfloat16": 8e-3}  # of the largest result of a row
with_dtypes = pytest.mark.parametrize("dtype", NEAR)
with_shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def draw(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype_of(dtype))


def skip_unless_supported(backend, dtype):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")


def check(found, wanted, dtype):
    assert (found.dtype, found.shape) == (dtype_of(dtype), wanted.shape)
    bound = NEAR[dtype] * np.maximum(np.abs(wanted).max(-1, keepdims=True, initial=0), 1e-30)
    assert (np.abs(found.astype(np.float64) - wanted) <= bound).all()


def wide(x):
    return x.astype(np.float64)


def softmax_of(x):
    exponential = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return exponential / exponential.sum(-1, keepdims=True)


@pytest.mark.sanitizer
@with_dtypes
@with_shapes
def test_softmax(backend, dtype, shape):
    skip_unless_supported(backend, dtype)
    x, grad = draw(shape, dtype), draw(shape, dtype, 1)
    y = softmax_of(wide(x))
    check(backend(softmax, x), y, dtype)
    check(backend(log_softmax, x), np.log(y), dtype)
    own = y.astype(dtype_of(dtype))
    g, v = wide(grad), wide(own)
    check(backend(softmax_backward, grad, own), v * (g - (g * v).sum(-1, keepdims=True)) + 0, dtype)
    own = np.log(y).astype(dtype_of(dtype))
    wanted = g - np.exp(wide(own)) * g.sum(-1, keepdims=True)
    check(backend(log_softmax_backward, grad, own), wanted, dtype)


def test_softmax_of_what_is_no_number(backend):
    inf = np.inf
    x = np.array([[0, inf, 1], [0, np.nan, 1], [-inf] * 3], np.float32)
    assert np.isnan(backend(softmax, x)).all()
    assert np.isnan(backend(log_softmax, x)).all()
    x = np.array([[-inf, 0, 0], [3e38] * 3, [-3e38, 0, 88]], np.float32)
    with np.errstate(divide="ignore"):
        wanted = softmax_of(wide(x))
        np.testing.assert_allclose(backend(softmax, x), wanted, rtol=1e-6, atol=1e-37)
        found = backend(log_softmax, x)
        np.testing.assert_allclose(found[:2], np.log(wanted[:2]), rtol=1e-6)
    np.testing.assert_allclose(found[2], [-3e38, -88, 0], rtol=1e-6)


def test_the_gradient_of_large_logarithms(backend):
    """For values that log_softmax never returns, the exponential equals C's."""
    y = np.array([[90, -90, np.nan, 0]], np.float32)
    found = backend(log_softmax_backward, np.ones_like(y), y)
    np.testing.assert_allclose(found[0, 1:], [1, np.nan, -3], rtol=1e-6)
    assert found[0, 0] == -np.inf


@with_dtypes
@pytest.mark.parametrize("n", [5, 64, 1000, 9001])
def test_a_row_does_not_depend_on_others_or_its_place(backend, dtype, n):
    """Nor on whether memory is aligned, or on how many threads there are."""
    skip_unless_supported(backend, dtype)
    x, grad = draw((37, n), dtype), draw((37, n), dtype, 1)
    pairs = [(softmax, softmax_backward), (log_softmax, log_softmax_backward)]
    for forward, backward in pairs:
        whole = backend(forward, x)
        back = backend(backward, grad, whole)
        for row in (0, 1, 35):
            part = np.s_[row : row + 2]
            assert backend(forward, x[part]).tobytes() == whole[part].tobytes()
            assert backend(backward, grad[part], whole[part]).tobytes() == back[part].tobytes()


def test_layouts_and_broadcasting(backend):
    x = draw((4, 6, 10), "float32")
    for part in (x[:, ::2], x[..., ::-1], x.transpose(1, 2, 0), x[:0], x[..., 1:8]):
        check(backend(softmax, part), softmax_of(wide(part)), "float32")
    y, grad = softmax_of(wide(x)), draw(10, "float32", 1)
    wanted = y * (grad - (grad * y).sum(-1, keepdims=True))
    check(backend(softmax_backward, grad, y.astype(np.float32)), wanted, "float32")


def test_what_has_no_rows_is_refused():
    with pytest.raises(TypeError, match=r"softmax: x: got float64\[3\], expected T\[..., n\]"):
        softmax(np.ones(3))
    with pytest.raises((TypeError, ValueError), match="softmax: x: "):
        softmax(np.float32(3))
