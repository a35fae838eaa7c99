# SPDX-License-Identifier: Apache-2.0
"""Rows that are joined or repeated, and triangles, compared with NumPy."""

import numpy as np
import pytest
from cuplug import ops
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = ("bool", "uint8", "int16", "float32", "complex64", "complex128")


def matrices(dtype, n, widths):
    """Return matrices of n rows and these widths."""
    random = np.random.default_rng(0)
    return [random.integers(0, 99, (n, width)).astype(dtype) for width in widths]


def laid(x, layout):
    """Return the same elements in another layout."""
    if layout == "reversed":
        return x[::-1, ::-1].copy()[::-1, ::-1]
    if layout == "columns":
        return x.T.copy().T
    if layout == "apart":
        wide = np.zeros((2 * x.shape[0], 3 * x.shape[1] + 1), x.dtype)
        wide[::2, 1::3] = x
        return wide[::2, 1::3]
    if layout in ("near", "at odd places"):
        first, n = (2, x.shape[1] + 2) if layout == "near" else (1, x.shape[1] + 1)
        wide = np.zeros((x.shape[0], n + n % 2), x.dtype)
        wide[:, first : first + x.shape[1]] = x
        return wide[:, first : first + x.shape[1]]
    return x


EACH = ("plain", "reversed", "columns", "apart", "near", "at odd places")
LAYOUTS = st.sampled_from(EACH)


def test_empty():
    for shapes in (((0, 2), (0, 3)), ((3, 0), (3, 0))):
        x, y = map(np.ones, shapes)
        assert ops.join(x, y).shape == (shapes[0][0], shapes[0][1] + shapes[1][1])
    assert ops.repeat(np.ones((2, 3)), 0).shape == (2, 0)
    assert ops.repeat(np.ones((0, 3)), 2).shape == (0, 6)
    for shape in ((0, 3), (3, 0), (0, 2, 2)):
        assert ops.tril(np.ones(shape)).shape == ops.triu(np.ones(shape)).shape == shape


@settings(deadline=None)
@given(
    st.sampled_from(DTYPES),
    st.integers(1, 700),
    st.lists(
        st.tuples(st.integers(0, 40) | st.sampled_from((1, 300)), LAYOUTS), min_size=2, max_size=4
    ),
)
def test_join(dtype, n, parts):
    given_ = matrices(dtype, n, [width for width, _ in parts])
    given_ = [laid(x, layout) for x, (_, layout) in zip(given_, parts, strict=True)]
    np.testing.assert_array_equal(ops.join(*given_), np.concatenate(given_, axis=1))


@settings(deadline=None)
@given(
    st.sampled_from(("float16", "float32", "complex128")),
    st.integers(0, 700),
    st.lists(st.integers(0, 40) | st.sampled_from((1, 300)), min_size=2, max_size=4),
    LAYOUTS,
)
def test_gradients_of_join(dtype, n, widths, layout):
    parts = matrices(dtype, n, widths)
    grad = laid(*matrices(dtype, n, [sum(widths)]), layout)
    wanted = np.split(grad, np.cumsum(widths)[:-1], axis=1)
    for seen, part in zip(ops.join_backward(grad, *parts), wanted, strict=True):
        np.testing.assert_array_equal(seen, part)


@settings(deadline=None)
@given(
    st.sampled_from(("float16", "float32", "float64", "complex64")),
    st.integers(0, 700),
    st.integers(0, 40),
    st.integers(0, 10),
)
def test_the_gradient_of_repeat(dtype, n, width, times):
    """Small integers, whose sums are exact."""
    x, grad = (y % 9 for y in matrices("int16", n, [width, times * width]))
    wanted = grad.reshape(n, times, width).sum(1)
    seen = ops.repeat_backward(grad.astype(dtype), x.astype(dtype), times)
    np.testing.assert_array_equal(seen, wanted.astype(dtype))


@settings(deadline=None)
@given(
    st.sampled_from(DTYPES), st.integers(1, 700), st.integers(0, 40), st.integers(0, 30), LAYOUTS
)
def test_repeat(dtype, n, width, times, layout):
    x = laid(*matrices(dtype, n, [width]), layout)
    np.testing.assert_array_equal(ops.repeat(x, times), np.tile(x, (1, times)))


@settings(deadline=None)
@given(
    st.sampled_from(DTYPES),
    st.tuples(st.integers(1, 4), st.integers(1, 90), st.integers(1, 300)),
    st.integers(-310, 310) | st.sampled_from((-(2**63), 2**63 - 1)),
)
def test_triangles(dtype, shape, k):
    x = np.random.default_rng(0).integers(1, 99, shape).astype(dtype)
    seen = min(max(k, -1000), 1000)
    np.testing.assert_array_equal(ops.tril(x, k), np.tril(x, seen))
    np.testing.assert_array_equal(ops.triu(x, k), np.triu(x, seen))


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_large(dtype):
    n = 9_000_001  # larger than the caches, which it bypasses
    a, b = (np.arange(n) % 251).astype(dtype), (np.arange(n) % 127).astype(dtype)
    columns = [a[:, None], b[:, None]]
    np.testing.assert_array_equal(ops.join(*columns), np.stack([a, b], axis=1))
    np.testing.assert_array_equal(ops.join(a[None], b[None])[0], np.concatenate([a, b]))
    np.testing.assert_array_equal(ops.repeat(a[:, None], 3).reshape(-1), np.repeat(a, 3))
    matrix = a[:9_000_000].reshape(-1, 1000)
    np.testing.assert_array_equal(ops.tril(matrix, 3), np.tril(matrix, 3))
    np.testing.assert_array_equal(ops.triu(matrix, 3), np.triu(matrix, 3))


def test_bad_input():
    x = np.ones((2, 3))
    with pytest.raises(ValueError, match="join: b: "):
        ops.join(x, np.ones((3, 3)))
    with pytest.raises(TypeError, match="join: b: "):
        ops.join(x, x.astype("float32"))
    with pytest.raises(ValueError, match="got times = -1, expected times >= 0"):
        ops.repeat(x, -1)
    with pytest.raises(ValueError, match="tril: x: "):
        ops.tril(np.ones(3))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_on_gpu(dtype):
    for n, widths in ((5000, (1, 1)), (999, (1, 1, 1)), (3000, (3, 1, 2, 5)), (70, (300, 301))):
        for layout in EACH:
            given_ = [laid(x, layout) for x in matrices(dtype, n, widths)]
            got = ops.join(*given_, device="cuda")
            np.testing.assert_array_equal(got, np.concatenate(given_, axis=1))
    for width, times in ((1, 2), (3, 5), (64, 3), (1, 40)):
        (x,) = matrices(dtype, 3001, [width])
        np.testing.assert_array_equal(ops.repeat(x, times, device="cuda"), np.tile(x, (1, times)))
    x = np.random.default_rng(0).integers(1, 99, (3, 90, 257)).astype(dtype)
    for k in (-100, -1, 0, 5, 300):
        np.testing.assert_array_equal(ops.tril(x, k, device="cuda"), np.tril(x, k))
        np.testing.assert_array_equal(ops.triu(x, k, device="cuda"), np.triu(x, k))
