# SPDX-License-Identifier: Apache-2.0
"""Cross entropy and quantization of rows, compared with NumPy in float64."""

import cuplug
import ml_dtypes
import numpy as np
import pytest
from backends import contents, dtype_of
from cuplug.ops import (
    cross_entropy,
    cross_entropy_backward,
    quantize_float8,
    quantize_int8,
)

with_dtypes = pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
SHAPES = [(1,), (5, 1), (3, 7), (2, 3, 64), (2, 1023), (3, 4096), (2, 16_500), (0, 8)]
with_shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def draw(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype_of(dtype))


def skip_unless_supported(backend, dtype):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")


def targets(shape, dtype=np.int64):
    """Return a target for each row, of which some are ignored."""
    found = np.random.default_rng(9).integers(0, shape[-1], shape[:-1])
    return np.where(found % 5 == 4, -100, found).astype(dtype)


def loss_of(x, target, smoothing):
    """Return the loss of each row, and the factor of x in its gradient."""
    x = x.astype(np.float64)
    log = x - x.max(-1, keepdims=True)
    log = log - np.log(np.exp(log).sum(-1, keepdims=True))
    wanted = np.full(x.shape, smoothing / x.shape[-1])
    one = np.arange(x.shape[-1]) == target[..., None]
    wanted += (1 - smoothing) * one
    counts = (target != -100)[..., None]
    return -(counts * wanted * log).sum(-1), counts * (np.exp(log) - wanted)


@pytest.mark.sanitizer
@with_dtypes
@with_shapes
@pytest.mark.parametrize("smoothing", [0, 0.25])
def test_cross_entropy(backend, dtype, shape, smoothing):
    skip_unless_supported(backend, dtype)
    x, target = 3 * draw(shape, dtype), targets(shape)
    loss, slope = loss_of(x, target, smoothing)
    found = backend(cross_entropy, x, target, -100, smoothing)
    assert (found.dtype, found.shape) == (np.float32, shape[:-1])
    np.testing.assert_allclose(found, loss, rtol=3e-6, atol=3e-6)
    grad = draw(shape[:-1], "float32", 1)
    found = backend(cross_entropy_backward, grad, x, target, -100, smoothing)
    assert (found.dtype, found.shape) == (dtype_of(dtype), shape)
    bound = 4 * float(ml_dtypes.finfo(x.dtype).eps) * max(1, np.abs(grad).max(initial=0))
    wanted = grad[..., None] * slope
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=0, atol=bound)


@with_dtypes
@pytest.mark.parametrize("n", [7, 64, 4096, 65_536])
def test_cross_entropy_of_masked_elements(backend, dtype, n):
    """Elements that are -inf have probability 0, at any position."""
    skip_unless_supported(backend, dtype)
    x, target = draw((3, n), dtype), np.zeros(3, np.int64)
    x[:, 1 : n - 1] = -np.inf
    x[2] = -np.inf
    wide = x[:2].astype(np.float64)
    wanted = np.log(np.exp(wide).sum(-1)) - wide[:, 0]
    found = backend(cross_entropy, x, target)
    np.testing.assert_allclose(found[:2], wanted, rtol=3e-6, atol=3e-6)
    assert np.isnan(found[2])
    x[1, n // 2] = np.nan
    assert np.isnan(backend(cross_entropy, x, target)[1])


def test_cross_entropy_ignores_what_it_is_told_to(backend):
    x, target = draw((4, 3), "float32"), np.array([0, 2, 1, 2], np.int32)
    whole = backend(cross_entropy, x, target)
    found = backend(cross_entropy, x, target, 2)
    assert found.tolist() == [whole[0], 0, whole[2], 0]
    x[1] = np.nan  # of rows that are ignored nothing matters
    found = backend(cross_entropy_backward, np.ones(4, np.float32), x, target, 2)
    assert (found[1] == 0).all()
    assert np.isfinite(found).all()


def test_targets_out_of_range(backend):
    x, target = draw((3, 5), "float32"), np.array([1, 7, -1])
    wanted = r"cross_entropy: target: .*7.*position 1.*" if backend.name == "host" else "7"
    with pytest.raises(IndexError, match=wanted):
        backend(cross_entropy, x, target)
        cuplug.synchronize()
    with pytest.raises(IndexError, match="7"):
        backend(cross_entropy_backward, np.ones(3, np.float32), x, target)
        cuplug.synchronize()


@pytest.mark.gpu
def test_rows_beside_a_bad_target_are_right():
    x, target = draw((3, 5), "float32"), np.array([1, 7, 2])
    there = [cuplug.asarray(each, device="cuda") for each in (x, target)]
    found = cross_entropy(*there)
    with pytest.raises(IndexError, match="7"):
        cuplug.synchronize()
    wanted = loss_of(x, np.array([1, -100, 2]), 0)[0]
    np.testing.assert_allclose(contents(found), wanted, rtol=1e-5, atol=1e-6)


def test_rows_without_classes():
    x = np.empty((2, 0), np.float32)
    with pytest.raises(IndexError, match="cross_entropy: target: got "):
        cross_entropy(x, np.zeros(2, np.int64))
    with pytest.raises(ValueError, match="label_smoothing"):
        cross_entropy(np.ones((2, 3), np.float32), np.zeros(2, np.int64), -100, 1.5)


KINDS = {
    "int8": (quantize_int8, 127, np.int8),
    "float8": (quantize_float8, 448, ml_dtypes.float8_e4m3fn),
}
with_kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.sanitizer
@with_dtypes
@pytest.mark.parametrize("shape", [*SHAPES, (4, 0), (0, 0)], ids=str)
@with_kinds
def test_quantization(backend, dtype, shape, kind):
    operator, greatest, stored = KINDS[kind]
    if not backend.supports(np.dtype(stored)):
        pytest.skip(f"{backend.name} has no {kind}")
    skip_unless_supported(backend, dtype)
    x = 3 * draw(shape, dtype)
    values, scales = backend(operator, x)
    assert (values.dtype, values.shape, scales.dtype) == (stored, shape, np.float32)
    wide = x.astype(np.float32)
    wanted = np.abs(wide).max(-1, initial=0) / np.float32(greatest)
    np.testing.assert_allclose(scales, wanted, rtol=2e-7)
    factors = np.where(scales > 0, 1 / np.where(scales > 0, scales, 1), 0).astype(np.float32)
    product = np.clip(wide * factors[..., None], -greatest, greatest)
    wanted = np.rint(product) if kind == "int8" else product
    assert_near_steps(values, wanted.astype(stored))


def assert_near_steps(found, wanted):
    """Check equality, except for products next to the midpoint of two steps."""
    differ = found.view(np.uint8).astype(int) - wanted.view(np.uint8).astype(int)
    assert (np.abs(differ) <= 1).all()
    assert (differ != 0).mean() < 0.01 if differ.size else True


@with_kinds
def test_every_step_is_reached_and_rounded_to_even(backend, kind):
    operator, greatest, stored = KINDS[kind]
    if not backend.supports(np.dtype(stored)):
        pytest.skip(f"{backend.name} has no {kind}")
    steps = np.arange(256, dtype=np.uint8).view(stored).astype(np.float32)
    steps = np.unique(steps[np.isfinite(steps) & (np.abs(steps) <= greatest)])
    between = (steps[1:] + steps[:-1]) / 2
    x = np.concatenate([steps, between, np.float32([greatest])])[None]  # the scale is 1
    values, scales = backend(operator, x)
    assert scales == [1]
    wanted = (np.rint(x) if kind == "int8" else x).astype(stored)
    assert values.astype(np.float32).tolist() == wanted.astype(np.float32).tolist()


@with_kinds
def test_rows_that_have_no_scale(backend, kind):
    operator, _, stored = KINDS[kind]
    if not backend.supports(np.dtype(stored)):
        pytest.skip(f"{backend.name} has no {kind}")
    x = np.zeros((4, 9), np.float32)
    x[1, 3], x[2, 4], x[3] = np.nan, -np.inf, 1e-44
    values, scales = backend(operator, x)
    assert (scales[0], np.isnan(scales[1]), scales[2]) == (0, True, np.inf)
    assert (values[0].astype(np.float32) == 0).all()
    assert (values[3].astype(np.float32) == 0).all()
