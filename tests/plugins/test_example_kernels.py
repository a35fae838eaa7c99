# SPDX-License-Identifier: Apache-2.0
"""The plugins in examples/kernels against NumPy, on both sides; and how long they are."""

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

KERNELS = Path(__file__).resolve().parents[2] / "examples" / "kernels"
NAMES = sorted(path.stem for path in KERNELS.glob("*.cu"))
SHAPES = [(1,), (5, 1), (3, 7), (2, 3, 64), (2, 1023), (3, 4096), (0, 8), (4, 0)]
TOLERANCE = {np.float32: 2e-5, np.float16: 2e-3, ml_dtypes.bfloat16: 2e-2}
SIDES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.sanitizer])]
on_sides = pytest.mark.parametrize("side", SIDES)
with_dtypes = pytest.mark.parametrize("dtype", TOLERANCE)
with_shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


@pytest.fixture
def get_operator(build_plugin, monkeypatch):
    """Return a function that compiles the plugin of an operator and finds the operator."""
    import cuplug

    def get(name, plugin=None):
        library = build_plugin(KERNELS / f"{plugin or name}.cu", plugin or name, cuda=True)
        operators = cuplug.load(library)
        return getattr(operators, name)

    return get


def draw(shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def check(found, wanted, dtype=np.float32):
    assert (found.dtype, found.shape) == (np.dtype(dtype), wanted.shape)
    np.testing.assert_allclose(
        found.astype(np.float64), wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
    )


def gelu(x):
    return x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2


def normalised(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def softmax(x):
    with np.errstate(invalid="ignore"):
        exponential = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
        return exponential / exponential.sum(-1, keepdims=True)


@on_sides
@with_dtypes
@with_shapes
def test_gelu(get_operator, side, dtype, shape):
    x = draw(shape, dtype)
    check(get_operator("gelu")(x, device=side), gelu(x.astype(np.float64)), dtype)


@on_sides
@with_shapes
def test_gelu_backward_is_the_slope(get_operator, side, shape):
    x, grad = draw(shape), draw(shape, seed=1)
    wide, step = x.astype(np.float64), 1e-6
    slope = (gelu(wide + step) - gelu(wide - step)) / (2 * step)
    check(get_operator("gelu_backward", "gelu")(grad, x, device=side), grad * slope)


@on_sides
def test_gelu_of_large_and_no_numbers(get_operator, side):
    x = np.array([np.nan, np.inf, 1e30, -1e30, 0], np.float32)
    found = get_operator("gelu")(x, device=side)
    assert np.array_equal(found, np.float32([np.nan, np.inf, 1e30, 0, 0]), equal_nan=True)
    found = get_operator("gelu_backward", "gelu")(np.ones_like(x), x, device=side)
    assert np.array_equal(found, np.float32([np.nan, 1, 1, 0, 0.5]), equal_nan=True)


@on_sides
@with_dtypes
@with_shapes
def test_residual_add(get_operator, side, dtype, shape):
    x, y = draw(shape, dtype), draw(shape, dtype, 1)
    found = get_operator("residual_add")(x, y, device=side)
    assert np.array_equal(found, (x.astype(np.float32) + y.astype(np.float32)).astype(dtype))


@on_sides
@with_dtypes
@with_shapes
def test_softmax(get_operator, side, dtype, shape):
    x = draw(shape, dtype)
    check(get_operator("softmax")(x, device=side), softmax(x.astype(np.float64)), dtype)


@on_sides
def test_softmax_of_what_is_no_number(get_operator, side):
    inf = np.inf
    x = np.array([[0, inf, 1], [0, np.nan, 1], [-inf] * 3, [-inf, 0, 0], [1e38] * 3], np.float32)
    with np.errstate(invalid="ignore"):
        found = get_operator("softmax")(x, device=side)
    assert np.isnan(found[:3]).any(-1).all()
    np.testing.assert_allclose(found[3:], softmax(x[3:].astype(np.float64)), rtol=1e-6)


@on_sides
@with_dtypes
@with_shapes
def test_layer_norm(get_operator, side, dtype, shape):
    x, weight, bias = draw(shape, dtype), draw(shape[-1], dtype, 1), draw(shape[-1], dtype, 2)
    found = get_operator("layer_norm")(x, weight, bias, device=side)
    wide = (a.astype(np.float64) for a in (weight, bias))
    with np.errstate(all="ignore"):
        base = normalised(x.astype(np.float64)) if x.size else x.astype(np.float64)
    factor, offset = wide
    check(found, base * factor + offset, dtype)


@on_sides
@pytest.mark.parametrize("shape", [*SHAPES, (2000, 33)], ids=str)
def test_layer_norm_backward(get_operator, side, shape):
    x, grad, weight = draw(shape), draw(shape, seed=1), draw(shape[-1], seed=2)
    found = get_operator("layer_norm_backward", None)(grad, x, weight, device=side)
    wide = x.astype(np.float64)
    h = normalised(wide) if x.size else wide
    g = grad.astype(np.float64) * weight
    r = 1 / np.sqrt(wide.var(-1, keepdims=True) + 1e-5) if x.size else 1.0
    inner = g - g.mean(-1, keepdims=True) - h * (g * h).mean(-1, keepdims=True) if x.size else g
    rows = tuple(range(len(shape) - 1))
    for one, wanted in zip(
        found, (r * inner, (grad * h).sum(rows), grad.sum(rows, dtype=np.float64)), strict=True
    ):
        np.testing.assert_allclose(one, wanted, rtol=1e-3, atol=1e-3)


@on_sides
def test_misaligned_rows(get_operator, side):
    x = draw(4097)[1:]
    check(get_operator("gelu")(x, device=side), gelu(x.astype(np.float64)))


def lines_beyond_the_kernel(name):
    """Lines with code below the mark, without the host's code, which any implementation has."""
    text = (KERNELS / f"{name}.cu").read_text().split("/* ---- beyond the kernel ---- */")[1]
    lines, end = [], None  # end: the line that closes the host's code
    for line in text.splitlines():
        if re.search(r"int \w*_host\(const", line) and "ENTRY(" not in line:
            end = line[: len(line) - len(line.lstrip())] + "}"
        if line.strip() and end is None:
            lines.append(line)
        if line == end:
            end = None
    return len(lines)


@pytest.mark.parametrize("name", NAMES)
def test_little_is_written_beyond_the_kernel(name):
    assert 0 < lines_beyond_the_kernel(name) <= 40


if __name__ == "__main__":
    for plugin in NAMES:
        print(f"{plugin:20} {lines_beyond_the_kernel(plugin)} lines beyond kernel and host code")
