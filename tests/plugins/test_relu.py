# SPDX-License-Identifier: Apache-2.0
"""The activations relu, leaky_relu and piecewise_scale compared with their formulas in NumPy."""

import numpy as np
import pytest
from backends import FLOATING, SIGNED, UNSIGNED, assert_same, dtype_of
from cuplug.ops import (
    leaky_relu,
    leaky_relu_backward,
    piecewise_scale,
    piecewise_scale_backward,
    relu,
    relu_backward,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 6e-8, 65504.0, 1e-40, 0.5]
SHAPES = [(), (0,), (1,), (3, 0, 2), (7,), (16,), (1021,), (5, 7, 11), (130_001,), (300_000,)]


def values(shape, dtype, seed=0) -> np.ndarray:
    """Return random values with special ones among them."""
    random = np.random.default_rng(seed)
    dtype = dtype_of(dtype)
    if dtype.kind == "i":
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    x = np.asarray(random.standard_normal(shape) * 2)
    chosen = random.random(shape) < 0.2
    x = np.where(chosen, random.choice(SPECIAL, shape), x)
    with np.errstate(over="ignore"):
        return x.astype(dtype)


def computed(x: np.ndarray) -> np.ndarray:
    """Return the values in the dtype of the computation."""
    return (
        x.astype(np.float64 if x.dtype == np.float64 else np.float32) if x.dtype.kind != "i" else x
    )


def not_positive(x):
    with np.errstate(invalid="ignore"):
        return x <= 0


def expected_relu(x):
    return np.where(not_positive(x), x.dtype.type(0), x)


def expected_leaky(x, slope):
    wide = computed(x)
    return np.where(wide > 0, wide, wide.dtype.type(slope) * wide).astype(x.dtype)


def expected_piecewise(x, factor_of):
    """Return x times the factors, for values other than relu's."""
    wide = computed(factor_of)
    one = wide.dtype.type
    factor = np.where(wide < 0, one(0.5), np.where(wide < 1, one(2), one(0.1)))
    with np.errstate(invalid="ignore", over="ignore"):
        return (factor * computed(x)).astype(x.dtype)


@pytest.mark.parametrize("dtype", [*FLOATING, *SIGNED])
@pytest.mark.parametrize("shape", SHAPES)
def test_relu(backend, dtype, shape):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    x, grad = values(shape, dtype), values(shape, dtype, 1)
    assert_same(backend(relu, x), expected_relu(x))
    expected = np.where(not_positive(x), x.dtype.type(0), grad)
    assert_same(backend(relu_backward, grad, x), expected)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", SHAPES)
def test_leaky_relu(backend, dtype, shape):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    x, grad = values(shape, dtype), values(shape, dtype, 1)
    assert_same(backend(leaky_relu, x), expected_leaky(x, 0.01))
    assert_same(backend(leaky_relu, x, 0.3), expected_leaky(x, 0.3))
    assert_same(backend(leaky_relu, x, slope=-2), expected_leaky(x, -2))
    wide = computed(grad)
    expected = np.where(computed(x) > 0, wide, wide.dtype.type(0.2) * wide).astype(x.dtype)
    assert_same(backend(leaky_relu_backward, grad, x, slope=0.2), expected)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", SHAPES)
def test_piecewise_scale(backend, dtype, shape):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    x, grad = values(shape, dtype), values(shape, dtype, 1)
    assert_same(backend(piecewise_scale, x), expected_piecewise(x, x))
    assert_same(backend(piecewise_scale_backward, grad, x), expected_piecewise(grad, x))


@pytest.mark.sanitizer
@settings(max_examples=30)
@given(
    x=hnp.arrays(np.float32, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0)), data=st.data()
)
def test_relu_of_any_array(backend, x, data):
    assert_same(backend(relu, x), expected_relu(x))
    grad = data.draw(hnp.arrays(np.float32, x.shape))
    assert_same(backend(relu_backward, grad, x), np.where(x <= 0, np.float32(0), grad))


@pytest.mark.parametrize("convert", ["float16", "bfloat16"])
def test_conversions_of_all_16_bit_values(backend, convert):
    """Every 16-bit pattern through a factor that changes nothing, and through one that rounds."""
    dtype = dtype_of(convert)
    if not backend.supports(dtype):
        pytest.skip(f"{backend.name} has no {convert}")
    x = np.arange(65536, dtype=np.uint16).view(dtype)
    assert_same(backend(leaky_relu, x, 1.0), x)
    with np.errstate(invalid="ignore", over="ignore"):
        assert_same(backend(leaky_relu, x, 0.37), expected_leaky(x, 0.37))


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_unsigned_integers_stay(backend, dtype):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    x = np.arange(70).astype(dtype)
    x[5] = np.iinfo(dtype).max
    assert_same(backend(relu, x), x)
    assert_same(backend(relu, x[1::3]), x[1::3])
    grad = x[::-1].copy()
    assert_same(backend(relu_backward, grad, x), np.where(x == 0, 0, grad).astype(dtype))


def test_bools_are_refused(backend):
    with pytest.raises(TypeError, match=r"relu: x: got bool\[3\], expected T\[\.\.\.\] with T: "):
        backend(relu, np.zeros(3, bool))


def test_grad_broadcasts(backend):
    x = values((4, 5), "float32")
    grad = values((5,), "float32", 1)
    expected = np.where(x <= 0, np.float32(0), np.broadcast_to(grad, x.shape))
    assert_same(backend(relu_backward, grad, x), expected)


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_views_at_any_address(backend, offset):
    if backend.name in ("staged", "own"):
        pytest.skip("copies are aligned")
    x = values((1000,), "float32")
    view = backend.put(x)[offset:]
    assert_same(backend.take(relu(view, **backend.keywords)), expected_relu(x[offset:]))


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("offset", [0, 1, 13])
def test_large_outputs_at_any_address(dtype, offset):
    """They are stored by lines of 64 bytes; memory around them does not change."""
    n = (32 << 20) // dtype_of(dtype).itemsize + 77
    x, grad = np.resize(values(100_003, dtype), n), np.resize(values(99_999, dtype, 1), n)
    around = np.full(n + 2 * offset, 7, grad.dtype)
    out = around[offset : offset + n]
    relu_backward(grad, x, out=out, device="cpu")
    assert_same(out, np.where(not_positive(x), x.dtype.type(0), grad))
    relu(x, out=out, device="cpu")
    assert_same(out, expected_relu(x))
    assert (around[:offset] == 7).all()
    assert (around[offset + n :] == 7).all()
