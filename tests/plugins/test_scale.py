# SPDX-License-Identifier: Apache-2.0
"""scale, in place, and its gradient, compared with NumPy's product."""

import numpy as np
import pytest
from backends import COMPLEX, FLOATING, SIGNED, UNSIGNED, assert_same, dtype_of
from cuplug.ops import scale, scale_backward

FACTORS = {"f": [2.5, -0.0, 1e-3], "V": [2.5], "i": [3, -1, 0], "u": [3, 255], "c": [2 - 1j, 0.5]}


@pytest.mark.sanitizer
@pytest.mark.parametrize("dtype", [*FLOATING, *SIGNED, *UNSIGNED, *COMPLEX])
@pytest.mark.parametrize("shape", [(), (0,), (17,), (3, 5, 7), (200_003,)])
def test_scale(backend, dtype, shape):
    dtype = dtype_of(dtype)
    if not backend.supports(dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    random = np.random.default_rng(0)
    x = np.asarray(random.standard_normal(shape) * 100)
    if dtype.kind == "c":
        x = x + 1j * random.standard_normal(shape)
    with np.errstate(invalid="ignore"):
        x = np.asarray(x.astype(np.int64).astype(dtype) if dtype.kind in "iu" else x.astype(dtype))
    ulps = 4 if dtype.kind == "c" else 0
    for factor in FACTORS[dtype.kind]:
        assert_same(backend(scale, x.copy(), factor), product(x, factor), ulps=ulps)
        if dtype.kind in "fcV":
            expected = product(x, np.conj(factor))
            assert_same(backend(scale_backward, x, factor), expected, ulps=ulps)


def product(x, factor):
    """Return the product; for 16-bit floats, the product of their values in float32."""
    wide = np.dtype(np.float32 if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x.dtype)
    with np.errstate(over="ignore"):
        return np.asarray(x.astype(wide) * wide.type(factor)).astype(x.dtype)


@pytest.mark.parametrize("dtype", ["float32", *COMPLEX])
def test_a_result_does_not_depend_on_its_place(backend, dtype):
    """Nor on whether it is computed in a vector or in the rest of a loop."""
    random = np.random.default_rng(1)
    x, factor = random.standard_normal(100).astype(dtype), 1.37
    if dtype != "float32":
        x, factor = x * np.asarray(0.3 + 2j, dtype), 1.37 - 0.61j
    whole, back = backend(scale, x.copy(), factor), backend(scale_backward, x, factor)
    for begin in range(20):
        for n in (1, 2, 3, 7, 17, 31):
            part = slice(begin, begin + n)
            assert backend(scale, x[part].copy(), factor).tobytes() == whole[part].tobytes()
            assert backend(scale_backward, x[part], factor).tobytes() == back[part].tobytes()


def test_changes_the_array_and_returns_nothing():
    x = np.arange(5.0)
    assert scale(x, 2) is None
    assert x.tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_gradient_is_the_adjoint(dtype):
    random = np.random.default_rng(3)
    x, grad = (random.standard_normal((2, 5)) + 1j * random.standard_normal((2, 5)) for _ in "xg")
    x, grad = (np.ascontiguousarray(z.real if dtype == "float64" else z) for z in (x, grad))
    factor = 2.5 if dtype == "float64" else 2 - 3j
    scaled = x.copy()
    scale(scaled, factor)
    assert np.vdot(grad, scaled) == pytest.approx(np.vdot(scale_backward(grad, factor), x))


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_integers_have_no_gradient(dtype):
    with pytest.raises(TypeError, match=r"scale_backward: grad: got u?int\d+\[3\], expected T"):
        scale_backward(np.ones(3, dtype), 2)


def test_a_part_of_an_array():
    x = np.arange(6.0).reshape(2, 3)
    scale(x[1], factor=10)
    assert x.tolist() == [[0, 1, 2], [30, 40, 50]]


def test_what_cannot_be_changed_is_refused():
    x = np.arange(6.0)
    with pytest.raises(ValueError, match="scale: data: got an array that is not C-contiguous"):
        scale(x[::2], 2)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="scale: data: got a read-only array"):
        scale(x, 2)
    with pytest.raises(ValueError, match="scale: factor: got the integer 300, expected a value in"):
        scale(np.zeros(3, np.int8), 300)
    with pytest.raises(TypeError, match="scale: factor: got the float 1.5, expected a scalar of"):
        scale(np.zeros(3, np.int8), 1.5)
