# SPDX-License-Identifier: Apache-2.0
"""Rotary embeddings in place, and the choice of experts, compared with NumPy in float64."""

import cuplug
import ml_dtypes
import numpy as np
import pytest
from backends import dtype_of
from cuplug.ops import (
    rotary,
    rotary_backward,
    topk_softmax,
    topk_softmax_backward,
)

with_dtypes = pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
with_layouts = pytest.mark.parametrize("interleaved", [False, True])
with_positions = pytest.mark.parametrize("index", ["int32", "int64"])


def draw(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype_of(dtype))


def skip_unless_supported(backend, dtype):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")


def angles(m, r):
    found = np.arange(m)[:, None] / 10000 ** (np.arange(r) / max(r, 1))
    return np.cos(found).astype(np.float32), np.sin(found).astype(np.float32)


def rotated(x, cos, sin, positions, interleaved):
    x, r = x.astype(np.float64), cos.shape[1]
    c, s = (each[positions][:, None].astype(np.float64) for each in (cos, sin))
    first, second = (
        (np.s_[..., : 2 * r : 2], np.s_[..., 1 : 2 * r : 2])
        if interleaved
        else (np.s_[..., :r], np.s_[..., r : 2 * r])
    )
    found = x.copy()
    found[first] = x[first] * c - x[second] * s
    found[second] = x[second] * c + x[first] * s
    return found


def check(found, wanted):
    bound = 2 * float(ml_dtypes.finfo(found.dtype).eps) * max(1, np.abs(wanted).max(initial=0))
    assert (np.abs(found.astype(np.float64) - wanted) <= bound).all()


@pytest.mark.sanitizer
@with_dtypes
@with_layouts
@pytest.mark.parametrize(
    ("n", "heads", "d", "r"),
    [(5, 2, 8, 4), (3, 4, 64, 32), (7, 3, 10, 3), (2, 1, 6, 0), (0, 2, 8, 4)],
)
def test_rotary(backend, dtype, interleaved, n, heads, d, r):
    """Slices of one buffer are rotated, and rotated back."""
    skip_unless_supported(backend, dtype)
    cos, sin = angles(9, r)
    positions = np.random.default_rng(1).integers(0, 9, n)
    whole = draw((n, 3 * heads + 1, d), dtype)
    there = backend.put(whole.copy())
    q, k = there[:, :heads], there[:, heads : 3 * heads]
    given = [backend.put(each) for each in (cos, sin, positions)]
    rotary(q, *given, k, interleaved, **backend.keywords)
    wanted = rotated(whole, cos, sin, positions, interleaved)
    wanted[:, 3 * heads :] = whole[:, 3 * heads :]
    check(backend.take(there), wanted)
    rotary_backward(q, *given, k, interleaved, **backend.keywords)
    eps = float(ml_dtypes.finfo(dtype_of(dtype)).eps)
    back = backend.take(there).astype(np.float64)
    np.testing.assert_allclose(back, whole.astype(np.float64), rtol=0, atol=16 * eps)


@with_positions
@pytest.mark.parametrize("part", [np.s_[:, ::2], np.s_[:, :, 1:7], np.s_[:, 1:, ::2], np.s_[::-1]])
def test_rotary_of_queries_alone_with_any_strides(backend, part, index):
    if backend.name == "torch" and part == np.s_[::-1]:
        pytest.skip("PyTorch has no negative strides")
    cos, sin = angles(4, 3)
    positions = np.array([3, 1, 0, 2, 2], index)
    whole = draw((5, 6, 12), "float32")
    there = backend.put(whole.copy())
    given = [backend.put(each) for each in (cos, sin, positions)]
    rotary(there[part], *given, **backend.keywords)
    wanted = whole.astype(np.float64)
    wanted[part] = rotated(whole[part], cos, sin, positions, False)
    check(backend.take(there), wanted)


def test_angles_and_positions_with_strides(backend):
    cos, sin = angles(8, 6)
    positions, x = np.arange(6), draw((3, 2, 6), "float32")
    wanted = rotated(x, cos[::2, :3], sin[::2, ::2], positions[::2] // 2, False)
    there = [backend.put(each) for each in (x.copy(), cos, sin, positions // 2)]
    given = there[1][::2, :3], there[2][::2, ::2], there[3][::2]
    rotary(there[0], *given, **backend.keywords)
    check(backend.take(there[0]), wanted)


@with_positions
@pytest.mark.parametrize("wrong", [4, -1])
def test_positions_out_of_range(backend, index, wrong):
    cos, sin = angles(4, 2)
    x = draw((3, 1, 4), "float32")
    with pytest.raises(IndexError, match=str(wrong)):
        backend(rotary, x, cos, sin, np.array([0, wrong, 1], index))
        cuplug.synchronize()


def chosen(x, k, renormalize):
    """Return the weights and indices of the k largest."""
    x = x.astype(np.float64)
    index = np.argsort(-x, -1, kind="stable")[..., :k]
    power = np.exp(x - x.max(-1, keepdims=True))
    weights = np.take_along_axis(power, index, -1) / power.sum(-1, keepdims=True)
    return weights / weights.sum(-1, keepdims=True) if renormalize else weights, index


@pytest.mark.sanitizer
@with_dtypes
@pytest.mark.parametrize("renormalize", [False, True])
@pytest.mark.parametrize(
    ("shape", "k"),
    [((8,), 2), ((5, 1), 1), ((3, 7), 7), ((4, 2, 64), 8), ((2, 5000), 3), ((0, 8), 2)],
)
def test_topk_softmax(backend, dtype, renormalize, shape, k):
    skip_unless_supported(backend, dtype)
    x = draw(shape, dtype)
    weights, indices = backend(topk_softmax, x, k, renormalize)
    wanted = chosen(x, k, renormalize)
    assert (weights.dtype, indices.dtype) == (np.float32, np.int64)
    np.testing.assert_array_equal(indices, wanted[1])
    np.testing.assert_allclose(weights, wanted[0], rtol=1e-5)
    grad = draw((*shape[:-1], k), "float32", 1)
    found = backend(topk_softmax_backward, grad, weights, indices, x, renormalize)
    assert (found.dtype, found.shape) == (x.dtype, shape)
    expected = slopes(x, k, renormalize, grad)
    bound = 4 * max(float(ml_dtypes.finfo(x.dtype).eps), 1e-6)
    np.testing.assert_allclose(found.astype("f8"), expected, rtol=0, atol=bound)


def slopes(x, k, renormalize, grad):
    """Return central differences of the weights, times their gradient."""
    x, found = x.astype(np.float64), np.zeros(x.shape)
    index = chosen(x, k, False)[1]

    def total(x):
        power = np.exp(x - x.max(-1, keepdims=True))
        own = np.take_along_axis(power, index, -1)
        every = own.sum(-1, keepdims=True) if renormalize else power.sum(-1, keepdims=True)
        return (grad * own / every).sum(-1)

    for j in range(x.shape[-1]):
        step = np.zeros(x.shape[-1])
        step[j] = 1e-4
        found[..., j] = (total(x + step) - total(x - step)) / 2e-4
    return found


def test_the_gradient_of_topk_softmax_checks_indices():
    three = np.ones((2, 3), np.float32)
    with pytest.raises(IndexError, match="indices: got 3 at position 1, expected 0 <= indices < 3"):
        topk_softmax_backward(three[:, :2], three[:, :2], np.array([[0, 3], [0, 1]]), three)


def test_equal_values_and_what_is_no_number(backend):
    x = np.array([[1, 1, 1, 1], [0.0, -0.0, 0.0, -1], [2, np.nan, 3, 1], [-np.inf, 5, 5, -np.inf]])
    weights, indices = backend(topk_softmax, x.astype(np.float32), 3)
    assert indices[:2].tolist() == [[0, 1, 2], [0, 1, 2]]
    assert indices[2, 0] == 1
    assert np.isnan(weights[2]).all()
    assert indices[3].tolist() == [1, 2, 0]
    assert weights[3].tolist() == [0.5, 0.5, 0]
    assert backend(topk_softmax, np.ones((2, 4), np.float32), 0)[0].shape == (2, 0)
