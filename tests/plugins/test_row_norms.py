# SPDX-License-Identifier: Apache-2.0
"""Norms and gated units of rows, along the last axis, compared with NumPy in float64."""

import math

import ml_dtypes
import numpy as np
import pytest
from backends import dtype_of
from cuplug.ops import (
    add_layer_norm,
    add_layer_norm_backward,
    add_rms_norm,
    add_rms_norm_backward,
    gelu_and_mul,
    gelu_and_mul_backward,
    layer_norm,
    layer_norm_backward,
    rms_norm,
    rms_norm_backward,
    silu_and_mul,
    silu_and_mul_backward,
)

# Beyond a block of the host, and beyond the registers of a GPU block: 32 KiB.
SHAPES = [(1,), (5, 1), (3, 7), (2, 3, 64), (2, 1023), (3, 4096), (300, 40), (2, 16_500)]
SHAPES += [(0, 8), (4, 0)]
with_dtypes = pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
with_shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def draw(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype_of(dtype))


def skip_unless_supported(backend, dtype):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")


def check(found, wanted, dtype, scale=0.0):
    """Compare within a few steps of the largest number in the computation."""
    assert (found.dtype, found.shape) == (dtype_of(dtype), wanted.shape)
    greatest = max(scale, np.abs(wanted).max(initial=1e-30))
    bound = 6 * float(ml_dtypes.finfo(found.dtype).eps) * greatest
    assert (np.abs(found.astype(np.float64) - wanted) <= bound).all()


def mean(x):
    return x.mean(-1, keepdims=True) if x.shape[-1] else np.zeros((*x.shape[:-1], 1))


def normed(x, is_layer, eps):
    """Return (x - m) r, and r."""
    centred = x - mean(x) if is_layer else x
    inverse = 1 / np.sqrt(mean(centred**2) + eps)
    return centred * inverse, inverse


@pytest.mark.sanitizer
@with_dtypes
@with_shapes
def test_norms(backend, dtype, shape):
    skip_unless_supported(backend, dtype)
    x, added = draw(shape, dtype), draw(shape, dtype, 1)
    weight, bias = draw(shape[-1], dtype, 2), draw(shape[-1], dtype, 3)
    wide, w, b = (each.astype(np.float64) for each in (x, weight, bias))
    check(backend(rms_norm, x, weight), normed(wide, False, 1e-6)[0] * w, dtype)
    check(backend(layer_norm, x, weight, bias), normed(wide, True, 1e-5)[0] * w + b, dtype)
    total = (wide + added.astype(np.float64)).astype(dtype_of(dtype))
    for operator, given, norm in (
        (add_rms_norm, (weight,), rms_norm),
        (add_layer_norm, (weight, bias), layer_norm),
    ):
        residual = backend.put(x.copy())
        found = operator(residual, *map(backend.put, (added, *given)), **backend.keywords)
        assert backend.take(residual).tobytes() == total.tobytes()
        assert backend.take(found).tobytes() == backend(norm, total, *given).tobytes()


@pytest.mark.sanitizer
@with_dtypes
@with_shapes
def test_gradients_of_norms(backend, dtype, shape):
    skip_unless_supported(backend, dtype)
    given = grad, x, weight = draw(shape, dtype), draw(shape, dtype, 1), draw(shape[-1], dtype, 2)
    d, v, w = (each.astype(np.float64) for each in given)
    over_rows = tuple(range(len(shape) - 1))
    for operator, is_layer in ((rms_norm_backward, False), (layer_norm_backward, True)):
        found = backend(operator, grad, x, weight, 0.1)
        h, inverse = normed(v, is_layer, 0.1)
        g = d * w
        wanted = inverse * (g - is_layer * mean(g) - h * mean(g * h))
        check(found[0], wanted, dtype, np.abs(inverse * g).max(initial=0))
        check(found[1], (d * h).sum(over_rows), dtype, np.abs(d * h).sum(over_rows).max(initial=0))
        if is_layer:
            check(found[2], d.sum(over_rows), dtype, np.abs(d).sum(over_rows).max(initial=0))


@pytest.mark.sanitizer
@with_dtypes
@with_shapes
def test_gradients_of_norms_of_sums(backend, dtype, shape):
    skip_unless_supported(backend, dtype)
    earlier, grad, residual, x = (draw(shape, dtype, seed) for seed in range(4))
    weight = draw(shape[-1], dtype, 4)
    for operator, of_norm in (
        (add_rms_norm_backward, rms_norm_backward),
        (add_layer_norm_backward, layer_norm_backward),
    ):
        own = backend.put(earlier.copy())
        given = map(backend.put, (grad, residual, x, weight))
        found = [backend.take(each) for each in operator(own, *given, 0.1, **backend.keywords)]
        wanted = [np.asarray(each) for each in of_norm(grad, residual + x, weight, 0.1)]
        wide = wanted[0].astype(np.float64)
        check(found[0], wide + earlier, dtype, np.abs(wide).max(initial=0))
        assert backend.take(own).tobytes() == found[0].tobytes()
        for each, expected in zip(found[1:], wanted[1:], strict=True):
            check(each, expected.astype(np.float64), dtype)


def test_norms_of_rows_with_one_value(backend):
    x, one = np.array([[3, 3, 3, 3], [0, 0, 0, 0], [1e4] * 4], np.float32), np.ones(4, np.float32)
    assert (backend(layer_norm, x, one, one) == 1).all()
    np.testing.assert_allclose(backend(rms_norm, x, one)[::2], 1, rtol=1e-6)
    assert (backend(rms_norm, x, one)[1] == 0).all()
    far = np.float32(1e6) + np.arange(64, dtype=np.float32)
    wanted = normed(far.astype(np.float64), True, 1e-5)[0]
    found = backend(layer_norm, far, np.ones_like(far), np.zeros_like(far))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


# For each gate, its value and its derivative.
def silu(a):
    s = 1 / (1 + np.exp(-a))
    return a * s, s * (1 + a * (1 - s))


def gelu(a):
    p = 0.5 * np.vectorize(math.erfc, otypes="d")(-a / math.sqrt(2))
    return a * p, p + a * np.exp(-a * a / 2) / math.sqrt(2 * math.pi)


def gelu_tanh(a):
    c = math.sqrt(2 / math.pi)
    t = np.tanh(c * (a + 0.044715 * a**3))
    slope = 0.5 * (1 + t) + 0.5 * a * (1 - t * t) * c * (1 + 3 * 0.044715 * a * a)
    return 0.5 * a * (1 + t), slope


GATES = {
    "silu": (silu_and_mul, silu_and_mul_backward, (), silu),
    "gelu": (gelu_and_mul, gelu_and_mul_backward, (), gelu),
    "gelu_tanh": (gelu_and_mul, gelu_and_mul_backward, ("tanh",), gelu_tanh),
}


@pytest.mark.sanitizer
@with_dtypes
@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize(
    "shape", [(1,), (3, 7), (2, 3, 64), (2, 4096), (1, 16_500), (0, 8), (4, 0)]
)
def test_gated_units(backend, dtype, gate, shape):
    skip_unless_supported(backend, dtype)
    operator, backward, given, function = GATES[gate]
    x, grad = 3 * draw((*shape[:-1], 2 * shape[-1]), dtype), draw(shape, dtype, 1)
    a, b = np.split(x.astype(np.float64), 2, -1)
    value, slope = function(a)
    check(backend(operator, x, *given), value * b, dtype)
    g = grad.astype(np.float64)
    wanted = np.concatenate([g * b * slope, g * value], -1)
    check(backend(backward, grad, x, *given), wanted, dtype)


@pytest.mark.parametrize("gate", GATES)
def test_gates_far_from_zero(backend, gate):
    operator, backward, given, _ = GATES[gate]
    x = np.array([[90, -90, 1e4, -1e4, 0, 1, 1, 1, 1, 1]], np.float32)
    found = backend(operator, x, *given)
    np.testing.assert_allclose(found, [[90, 0, 1e4, 0, 0]], atol=1e-6)
    found = backend(backward, np.ones((1, 5), np.float32), x, *given)
    np.testing.assert_allclose(found[0, :5], [1, 0, 1, 0, 0.5], atol=1e-6)


@with_dtypes
@pytest.mark.parametrize("n", [5, 64, 1000, 9001])
def test_a_row_does_not_depend_on_others_or_its_place(backend, dtype, n):
    skip_unless_supported(backend, dtype)
    x, grad = draw((37, n), dtype), draw((37, n), dtype, 1)
    weight, bias = draw(n, dtype, 2), draw(n, dtype, 3)
    calls = {
        rms_norm: lambda x, grad: (x, weight),
        layer_norm: lambda x, grad: (x, weight, bias),
        rms_norm_backward: lambda x, grad: (grad, x, weight),
        layer_norm_backward: lambda x, grad: (grad, x, weight),
    }
    for operator, given in calls.items():
        whole = of_rows(backend(operator, *given(x, grad)))
        for row in (0, 1, 35):
            part = np.s_[row : row + 2]
            found = of_rows(backend(operator, *given(x[part], grad[part])))
            assert found.tobytes() == whole[part].tobytes()


def of_rows(result):
    """Return the arrays that have a value for each element of a row."""
    return result[0] if isinstance(result, tuple) else result


def test_what_does_not_fit_is_refused():
    x, weight = np.ones((2, 3), np.float32), np.ones(4, np.float32)
    with pytest.raises(ValueError, match="rms_norm: weight: "):
        rms_norm(x, weight)
    with pytest.raises(TypeError, match="layer_norm: bias: "):
        layer_norm(x, weight[:3], np.ones(3))
    with pytest.raises(ValueError, match="silu_and_mul: .*m % 2 == 0"):
        silu_and_mul(x)
    with pytest.raises(ValueError, match="gelu_and_mul: approximate: "):
        gelu_and_mul(np.ones((2, 4), np.float32), "erf")
