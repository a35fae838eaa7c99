# SPDX-License-Identifier: Apache-2.0
"""cuplug's functions on a GPU, compared with float64 functions or NumPy."""

import math

import numpy as np
import pytest


def every(step: int) -> np.ndarray:
    """Return every step-th float32 from 0 up, without NaNs, and their negatives."""
    bits = np.arange(0, 0x7F800001, step, dtype=np.uint32)
    x = bits.view(np.float32)
    return np.concatenate([x, -x])


def ulps(seen: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the distances in units in the last place of float32."""
    return np.abs(seen - wanted) / np.spacing(np.abs(wanted).astype(np.float32)).astype(np.float64)


@pytest.mark.gpu
@pytest.mark.parametrize("step", [9973, pytest.param(7, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "limit"), [("sin", 2.5), ("erf", 2)])
def test_all_numbers(name, limit, step):
    import cuplug

    of = cuplug.elementwise("own(x: T) -> T", f"{name}(x)")
    for x in np.array_split(every(step), max(1, 2_000_000_000 // step // 50_000_000)):
        finite = x[np.isfinite(x)]
        seen = of(cuplug.asarray(finite, device="cuda")).numpy()
        wanted = of(cuplug.asarray(finite.astype(np.float64), device="cuda")).numpy()
        assert ulps(seen.astype(np.float64), wanted).max() <= limit
        assert (np.signbit(seen) == np.signbit(wanted)).all()


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "at_infinity"), [("sin", np.nan), ("erf", 1)])
def test_special_numbers(name, at_infinity):
    import cuplug

    of = cuplug.elementwise("own(x: T) -> T", f"{name}(x)")
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45], np.float32)
    seen = of(cuplug.asarray(x, device="cuda")).numpy()
    wanted = np.array([0.0, -0.0, at_infinity, -at_infinity, np.nan, 1e-45, -1e-45], np.float32)
    np.testing.assert_array_equal(seen, wanted)
    assert (np.signbit(seen[:2]) == np.signbit(x[:2])).all()


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["sin", "erf"])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float64"])
def test_other_numbers(name, dtype):
    import cuplug

    of = cuplug.elementwise("own(x: T) -> float64", f"{name}(x)")
    x = np.arange(100).astype(dtype)
    wanted = [getattr(math, name)(value) for value in x]
    seen = of(cuplug.asarray(x, device="cuda")).numpy()
    np.testing.assert_allclose(seen, wanted, rtol=1e-14)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_hypot_to_the_largest_numbers(dtype):
    import cuplug

    limits = np.finfo(dtype) if dtype[0] == "f" else np.iinfo(dtype)
    values = [0, 1, 3, limits.max // 2, limits.max]
    if dtype[0] == "f":
        values += [limits.smallest_subnormal, limits.tiny, 1e-3, limits.max**0.5, np.inf, np.nan]
    x, y = np.meshgrid(np.array([*values, *(-v for v in values)], dtype), np.array(values, dtype))
    side = cuplug.elementwise("side(x: T, y: T) -> float64", "hypot(x, y)")
    seen = side(*(cuplug.asarray(a, device="cuda") for a in (x, y))).numpy()
    with np.errstate(over="ignore"):
        wanted = np.hypot(x, y)
    np.testing.assert_allclose(seen, wanted, 2 * np.finfo(wanted.dtype).eps)
