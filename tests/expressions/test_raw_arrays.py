# SPDX-License-Identifier: Apache-2.0
"""Element-wise operators whose code reads arrays at any index, or has no array arguments."""

import re

import cuplug
import numpy as np
import pytest
from backends import assert_same, dtype_of
from cuplug._engine.signature.variant import Variant
from cuplug._source.expressions import element_wise, element_wise_loops
from expression_values import nvrtc, values

GPU = pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.sanitizer])
TAKE = "take(x: T[n], k: int64[...]) -> T[...]"
TAKE_TEXT = "0 <= k && k < n ? x[k] : 0"


def on_host(x, device):
    """Return an output of a call without arrays: on a GPU, it is a cuplug array."""
    if device == "cpu":
        return x
    assert str(x.device) == "cuda:0"
    return x.numpy()


@pytest.mark.parametrize("device", ["cpu", GPU])
@pytest.mark.parametrize("n", [0, 1, 5, 70_001])
def test_an_array_of_numbers(device, n):
    arange = cuplug.elementwise("arange(n: int) -> float32[n]", "i")
    assert_same(on_host(arange(n, device=device), device), np.arange(n, dtype="float32"))


@pytest.mark.parametrize("device", ["cpu", GPU])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (4, 5, 600)], ids=str)
def test_a_shape_that_is_given(device, shape):
    f = cuplug.elementwise(
        "f(shape: int[], a: float32) -> (y: float32[*shape], k: int64[*shape])",
        "y = a; k = i - n + size(y)",
    )
    y, k = (on_host(x, device) for x in f(shape, 1.5, device=device))
    assert_same(y, np.full(shape, 1.5, "float32"))
    assert_same(k, np.arange(y.size).reshape(shape))


@pytest.mark.parametrize("device", ["cpu", GPU])
def test_outputs_that_are_given(device):
    grid = cuplug.elementwise("grid(h: int, w: int) -> int64[h, w]", "i / w * 10 + i % w")
    expected = np.add.outer(np.arange(4) * 10, np.arange(3))
    out = np.zeros((8, 9), "int64")[::2, ::3]
    assert grid(4, 3, out=out, device=device) is out
    assert_same(np.ascontiguousarray(out), expected)
    own = cuplug.empty((4, 3), "int64", device)
    grid(4, 3, out=own)
    assert_same(own.numpy(), expected)


@pytest.mark.sanitizer
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "bool", "int8", "complex128"])
def test_any_index(backend, dtype):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    x, k = values(50, dtype), np.arange(-3, 97).reshape(4, 25) * 7 % 60 - 5
    take = cuplug.elementwise(TAKE, "x[(k % n + n) % n]")
    assert_same(backend(take, x, k), x[k % 50])


@pytest.mark.sanitizer
def test_elements_and_whole_arrays_at_once(backend):
    poly = cuplug.elementwise(
        "poly(x: T[...], c: T[k], y: T[...]) -> r: T[...]",
        "T s = 0; for (int64_t j = k; j--;) s = s * x + c[j]; r = s + y",
    )
    x, c, y = values((6, 1), "float32"), values(4, "float32", 1), values((5,), "float32", 2)
    for a, b in ((x, c), (x[::2], c[::-1])):
        assert_same(backend(poly, a, b, y), sum(b[j] * a**j for j in range(4)) + y)


@pytest.mark.sanitizer
def test_neighbours(backend):
    text = "x[i ? i - 1 : 0] + x[i] + x[i + 1 < size(x) ? i + 1 : i]"
    blur = cuplug.elementwise("blur(x: T[n]) -> T[n]", text)
    for n in (1, 5, 70_001):
        x = values(n, "float32")
        assert_same(backend(blur, x), np.pad(x, 1, "edge")[:-2] + x + np.pad(x, 1, "edge")[2:])


@pytest.mark.sanitizer
def test_sizes_of_dimensions_and_indices_in_indices(backend):
    turned = cuplug.elementwise("turned(x: T[h, w]) -> T[w, h]", "x[i % h * w + i / h]")
    x = values((30, 70), "int32")
    assert_same(backend(turned, x), np.ascontiguousarray(x.T))
    assert_same(backend(turned, x.T[::2]), np.ascontiguousarray(x.T[::2].T))
    twice = cuplug.elementwise("twice(x: float16[n], k: int64[m]) -> float16[m]", "x[k[k[i]]]")
    x, k = values(20, "float16"), np.random.default_rng(0).permutation(20)
    assert_same(backend(twice, x, k), x[k[k]])


def test_a_call_in_parts():
    """Arrays that are read at any index are passed complete with every part."""
    take = cuplug.elementwise(TAKE, TAKE_TEXT)
    shift = cuplug.elementwise(
        "shift(x: T[...], by: T[n], y: T[...]) -> T[...]", "x + by[n - 1] * y"
    )
    x = values(3_000_000, "float32")
    assert_same(take(x, np.arange(x.size)[::-1]), x[::-1])
    assert_same(shift(x, x[:2], x[:1]), x + x[1] * x[0])


@pytest.mark.gpu
def test_large_host_arrays_through_a_gpu():
    take = cuplug.elementwise(TAKE, TAKE_TEXT)
    x = values(5_000_000, "float32")
    k = np.random.default_rng(1).integers(0, x.size, 8_000_000)
    assert_same(take(x, k, device="cuda"), x[k])


@pytest.mark.parametrize(
    ("signature", "seen"),
    [
        ("f(x: T[..., n]) -> T[...]", "f: x: "),
        ("f(x: T[...], inout y: T[n])", "f: y: "),
        ("f(n: int) -> (y: float32[n], z: float32[n + 1])", "f: y: "),
        ("f(x: float32[n] = None) -> float32[3]", "f: x: "),
        ("f(xs: T[n][]) -> T[n]", "f: xs: got a list of arrays, expected an array or a number"),
    ],
)
def test_shapes_that_have_no_element(signature, seen):
    with pytest.raises(ValueError, match=re.escape(seen)):
        cuplug.elementwise(signature, "0")


def test_sizes_that_are_none():
    with pytest.raises(
        ValueError, match="f: expression: .*expected a dimension that the array has"
    ):
        cuplug.elementwise("f(x: T[h, w]) -> T[h, w]", "x[i] + size(x, 2)")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_nvrtc_takes_the_code(dtype):
    row = f"f(x: {dtype}[n], k: int64[...]) -> {dtype}[...]"
    op = element_wise._read(row, "x[(k + size(x)) % n]", "")
    types = (dtype, "int64", dtype)
    nvrtc(element_wise_loops.cuda_code(op, Variant(device=0, types=types, width=2)))
