# SPDX-License-Identifier: Apache-2.0
"""Arrays that are joined, repeated and reversed, compared with NumPy."""

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)
DTYPES = st.sampled_from(("bool", "int16", "float32", "complex64", "complex128"))
LARGE = 300_001  # elements: more than are copied at once


def pair(shape, dtype, device="cpu"):
    x = np.random.default_rng(0).integers(0, 99, shape).astype(dtype)
    return x, cuplug.asarray(x, device=device)


def same(seen, wanted):
    assert seen.dtype == wanted.dtype
    np.testing.assert_array_equal(seen.numpy(), wanted)


@settings(deadline=None)
@given(DTYPES, SHAPES, st.integers(-3, 3), st.integers(1, 5), st.booleans())
def test_concat_and_stack(dtype, shape, axis, n, turned):
    x, ours = pair(shape, dtype)
    if turned:
        x, ours = x[::-1], ours[::-1]
    if -x.ndim <= axis < x.ndim:
        same(xp.concat([ours] * n, axis=axis), np.concatenate([x] * n, axis=axis))
    same(xp.concat([ours] * n, axis=None), np.concatenate([x] * n, axis=None))
    if -x.ndim - 1 <= axis <= x.ndim:
        same(xp.stack([ours] * n, axis=axis), np.stack([x] * n, axis=axis))


@settings(deadline=None)
@given(DTYPES, SHAPES, st.integers(-(10**19), 10**19) | st.integers(-9, 9), st.integers(-3, 2))
def test_roll(dtype, shape, shift, axis):
    x, ours = pair(shape, dtype)
    by = shift % max(x.size, 1)
    same(xp.roll(ours, shift), np.roll(x, by))
    if -x.ndim <= axis < x.ndim:
        same(xp.roll(ours, shift, axis=axis), np.roll(x, shift % max(x.shape[axis], 1), axis))
        same(
            xp.roll(ours, (shift, 1), axis=(axis, 0)),
            np.roll(np.roll(x, shift % max(x.shape[axis], 1), axis), 1, 0),
        )


@settings(deadline=None)
@given(DTYPES, SHAPES, st.integers(0, 7), st.integers(-3, 2))
def test_repeat(dtype, shape, times, axis):
    x, ours = pair(shape, dtype)
    same(xp.repeat(ours, times), np.repeat(x, times))
    if -x.ndim <= axis < x.ndim:
        same(xp.repeat(ours, times, axis=axis), np.repeat(x, times, axis=axis))
        same(xp.repeat(ours[::-1], times, axis=axis), np.repeat(x[::-1], times, axis=axis))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
def test_large(device, dtype):
    x, ours = pair(LARGE, dtype, device)
    for n in (2, 3, 4, 5):
        for axis in (0, 1):
            same(xp.stack([ours] * n, axis=axis), np.stack([x] * n, axis=axis))
        same(xp.concat([ours] * n), np.concatenate([x] * n))
        same(xp.repeat(ours, n), np.repeat(x, n))
    same(xp.stack([ours, ours[::-1]], axis=1), np.stack([x, x[::-1]], axis=1))
    same(xp.stack([ours[1::2], ours[:-1:2]], axis=1), np.stack([x[1::2], x[:-1:2]], axis=1))
    for shift in (1, -7, 1001):
        same(xp.roll(ours, shift), np.roll(x, shift))
    matrix, our = x[:300_000].reshape(-1, 250), ours[:300_000].reshape(-1, 250)
    for wanted, seen in ((matrix, our), (matrix.T, our.T), (matrix[::-1, 3:], our[::-1, 3:])):
        for k in (-40, 0, 3):
            same(xp.tril(seen, k=k), np.tril(wanted, k))
            same(xp.triu(seen, k=k), np.triu(wanted, k))
        same(xp.roll(seen, 3, axis=1), np.roll(wanted, 3, axis=1))
        same(xp.repeat(seen, 3, axis=1), np.repeat(wanted, 3, axis=1))


@pytest.mark.parametrize("shape", [(3, 4), (3, 0)])
@pytest.mark.parametrize(
    ("shift", "axis", "error", "says"),
    [
        (1.5, 1, TypeError, "roll: shift: got 1.5, expected an integer"),
        ("a", 1, TypeError, "roll: shift: got 'a', expected an integer"),
        (1, "a", TypeError, "roll: axis: got 'a', expected an integer"),
        (1, 2, IndexError, "roll: axis: got 2, expected -2 <= axis < 2 \\(out of range\\)"),
        ((1, 2), (0,), ValueError, "roll: shift: got 2 numbers, expected 1, as axes"),
    ],
)
def test_what_roll_refuses(shape, shift, axis, error, says):
    with pytest.raises(error, match=f"^{says}$"):
        xp.roll(xp.zeros(shape), shift, axis=axis)
    with pytest.raises(TypeError, match="^roll: x: got ndarray, expected a cuplug.Array"):
        xp.roll(np.zeros(shape), 1)
