# SPDX-License-Identifier: Apache-2.0
"""unique, unique_values and searchsorted compared with NumPy."""

import cuplug
import numpy as np
import pytest
from backends import FLOATING, SIGNED, UNSIGNED, assert_same, dtype_of
from cuplug.ops import searchsorted, unique, unique_values
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = ["bool", *SIGNED, *UNSIGNED, *FLOATING]
SHAPES = [(), (0,), (1,), (7, 30), (300_000,)]


def numbers(shape, dtype, seed=0) -> np.ndarray:
    """Return numbers of which many are equal; floats include NaN and zeros of both signs."""
    random, dtype = np.random.default_rng(seed), dtype_of(dtype)
    if dtype.kind in "biu":
        return np.asarray(random.integers(-20 * (dtype.kind == "i"), 20, shape)).astype(dtype)
    x = np.asarray(random.integers(-20, 20, shape) * np.float32(0.25))
    x = np.where(random.random(shape) < 0.05, np.nan, x)
    return np.where(random.random(shape) < 0.05, -0.0, x).astype(dtype)


def wide(x) -> np.ndarray:
    """Return a dtype with the same values that NumPy can sort."""
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


def check(backend, x):
    wanted = [*np.unique(wide(x), True, True, True, equal_nan=False)]
    wanted[2] = wanted[2].reshape(x.shape)  # NumPy 1 returns a line
    found = unique(backend.put(x), **backend.keywords)
    assert cuplug.last_call().device == backend.device
    assert found._fields == ("values", "indices", "inverse_indices", "counts")
    assert_same(backend.take(found.values), wanted[0].astype(x.dtype))
    for result, expected in zip(found[1:], wanted[1:], strict=True):
        assert_same(backend.take(result), expected.astype(np.int64))
    assert_same(backend(unique_values, x), wanted[0].astype(x.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_unique(backend, dtype, shape):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    check(backend, numbers(shape, dtype))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("n_values", [3, 900, 2000])
def test_few_values_of_many_elements(backend, dtype, n_values):
    random = np.random.default_rng(0)
    values = np.concatenate([[-1], random.integers(-(2**31), 2**31, n_values)])
    x = random.choice(values, 1 << 22).astype(dtype)
    assert_same(backend(unique_values, x), np.unique(x))


@pytest.mark.sanitizer
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8"])
def test_values_of_bytes(backend, dtype):
    """At any address, of any number, and also all possible values."""
    x = np.random.default_rng(0).integers(0, 256, 100_000).astype(np.uint8)
    x = (x > 0) if dtype == "bool" else x.view(dtype)
    there = backend.put(x)
    for first, n in [(0, 1025), (1, 1026), (15, 1040), (7, 90_001), (3, 99_997)]:
        found = unique_values(there[first : first + n], **backend.keywords)
        assert_same(backend.take(found), np.unique(x[first : first + n]))
    assert_same(backend(unique_values, np.full(5000, x[0])), x[:1])


@pytest.mark.sanitizer
@settings(max_examples=30)
@given(
    x=st.lists(st.integers(-5, 5), max_size=100),
    dtype=st.sampled_from(["int8", "float16", "float32", "int64"]),
)
def test_unique_of_lists(backend, x, dtype):
    check(backend, np.array(x, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(backend, dtype, side):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    for m, shape in [(0, (3,)), (1, ()), (100, (0,)), (1000, (7, 300)), (300, (7001,))]:
        x, values = numbers((m,), dtype), numbers(shape, dtype, 1)
        x = np.sort(wide(x), kind="stable").astype(x.dtype)  # NumPy 2.4 sorts halves incorrectly
        wanted = np.searchsorted(wide(x), wide(values), side)
        assert_same(backend(searchsorted, x, values, side), np.asarray(wanted, np.int64))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("m", [6500, 40_001])
def test_searchsorted_of_many_values_in_many(backend, m, side):
    """In arrays larger than shared memory; with many equal elements, and none below."""
    random = np.random.default_rng(0)
    x = np.sort(random.integers(0, 3 * m // 4, m) * 0.5)
    values = random.integers(-5, 2 * m, 3_300_000) * 0.25
    assert_same(backend(searchsorted, x, values, side), np.searchsorted(x, values, side))


def test_another_dtype_is_refused():
    with pytest.raises(TypeError, match="searchsorted"):
        searchsorted(np.arange(3), np.ones(2))


@pytest.mark.parametrize("side", ["left", "right"])
def test_values_that_ascend_descend_and_repeat(side):
    generator = np.random.default_rng(3)
    for m in [*range(40), 300]:
        x = np.sort(generator.integers(0, 60, m)).astype(np.float32)
        x[m - m // 8 :] = np.nan
        values = np.sort(np.append(generator.integers(-2, 62, 200), [np.nan, 1e9]))
        values = values.astype(np.float32)
        for v in (values, values[::-1].copy(), np.repeat(values, 3)):
            seen = cuplug.ops.searchsorted(x, v, side)
            np.testing.assert_array_equal(seen, np.searchsorted(x, v, side))
