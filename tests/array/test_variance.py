# SPDX-License-Identifier: Apache-2.0
"""Variances of close numbers far from 0: the numbers are exact, and the mean is rounded."""

import cuplug
import ml_dtypes
import numpy as np
import pytest
from cuplug import array_api as xp


@pytest.mark.parametrize("away", [0, 1e3, 1e6, -1e7])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_numbers_far_from_0(away, axis):
    x = (np.random.default_rng(0).normal(size=(70, 300)) + away).astype("float32")
    own = cuplug.asarray(x, device="cpu")
    exact = x.astype("float64")
    np.testing.assert_allclose(np.asarray(xp.var(own, axis=axis)), exact.var(axis=axis), 2e-6)
    np.testing.assert_allclose(np.asarray(xp.std(own, axis=axis)), exact.std(axis=axis), 2e-6)


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats(dtype):
    """The mean is kept in float32, and the result is rounded once."""
    narrow = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = np.random.default_rng(0).normal(40, 1, (20, 500)).astype(narrow)
    found = np.asarray(xp.var(cuplug.asarray(x, device="cpu"), axis=1)).astype("float64")
    half_a_step = float(ml_dtypes.finfo(narrow).eps) / 2
    np.testing.assert_allclose(found, x.astype("float64").var(axis=1), 1.01 * half_a_step)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("axis", [None, 0, (0, 1), ()])
def test_complex_numbers(dtype, axis):
    parts = np.random.default_rng(0).normal(size=(2, 20, 30))
    z = (parts[0] + 1j * parts[1]).astype(dtype)
    own = cuplug.asarray(z, device="cpu")
    for space in (xp, np):
        for name in ("var", "std"):
            found, wanted = getattr(space, name)(own, axis=axis), getattr(np, name)(z, axis=axis)
            assert type(found) is cuplug.Array
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found.numpy(), wanted, 1e-6)


def test_infinities_nans_and_single_numbers():
    for numbers in ([1.0, np.nan], [1.0, np.inf], [3.0], [0.1] * 7):
        x = np.array(numbers, "float32")
        found = xp.var(cuplug.asarray(x, device="cpu"))
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(np.asarray(found), x.astype("float64").var(), atol=1e-12)
