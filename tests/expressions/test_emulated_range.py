# SPDX-License-Identifier: Apache-2.0
"""Numbers at the ends of their range in generated CUDA code, run without a GPU: reductions that
leave the range in between, and results that are rounded to fewer bits."""

import textwrap

import pytest

pytestmark = pytest.mark.slow

PRELUDE = """
import numpy as np
import cuplug
from emulation import install_expressions

install_expressions()
total = cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0")
product = cuplug.reduction("product(x: T) -> T", reduce="a * b", identity="1")


def layouts(n):
    'Yield how many numbers of each kind there are around n, and the axis of these.'
    for before, after in ((1, 1), (5, 1), (300, 1), (1, 3), (1, 40), (1, 700), (4, 33)):
        if before * after * n < 1 << 17:
            yield (before, n, after), 1


def spread(x, shape):
    return np.ascontiguousarray(np.broadcast_to(x[None, :, None], shape))


"""


@pytest.fixture
def run(run_emulated):
    """Return a function that runs Python text with expressions for the emulated GPU."""
    return lambda body: run_emulated(PRELUDE + textwrap.dedent(body))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_sums(run, dtype):
    body = f"""
    dtype = "{dtype}"
    top = np.finfo(dtype).max * 0.75
    for n in (2, 9, 64, 1001, 5000):
        x = np.resize(np.array([top, -top], dtype), 2 * (n // 2))
        for shape, axis in layouts(len(x)):
            found = total(spread(x, shape), axis=axis, device="cuda")
            np.testing.assert_array_equal(found, np.zeros_like(found))
            part = spread(np.append(x, np.ones(1, dtype)), (shape[0], len(x) + 1, shape[2]))
            found = total(part[:, :, ::-1], axis=axis, device="cuda")
            np.testing.assert_allclose(found, np.ones_like(found), atol=float(top) * 1e-3)
            assert np.isfinite(found).all()
        if dtype != "complex128":
            for last in (np.inf, np.nan):
                found = total(np.append(x, last).astype(dtype), device="cuda")
                np.testing.assert_array_equal(found, last)
            np.testing.assert_array_equal(total(np.abs(x), device="cuda"), np.inf)
    """
    run(body)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products(run, dtype):
    body = f"""
    dtype = "{dtype}"
    great = 2.0 ** (np.finfo(dtype).maxexp - 2)
    for n in (2, 9, 64, 1001, 5000):
        x = np.resize(np.array([great, 1 / great, 0.5, -2], dtype), 4 * (n // 4 + 1))
        for shape, axis in layouts(len(x)):
            found = product(spread(x, shape), axis=axis, device="cuda")
            np.testing.assert_array_equal(found, np.full_like(found, (-1) ** (n // 4 + 1)))
        for last in (0.0, np.nan):
            found = product(np.append(x, last).astype(dtype), device="cuda")
            np.testing.assert_array_equal(found, last)
    """
    run(body)


def test_numbers_that_become_narrow(run):
    body = """
    import ml_dtypes
    x = np.array([65519.99999999999, 1 + 2**-11 + 2**-40, 1 + 2**-11, -3 - 2**-9 - 2**-30, 1e300])
    x = np.concatenate([x, 1 + 2.0**-8 + 2.0 ** -np.arange(9, 50), [np.inf, np.nan, 5e-324, -0.0]])
    whole = np.array([2**40 + 2**32 + 1, 2**62 + 2**54 + 1, -(2**62) - 2**54 - 1, 7, -9, 0])
    for dtype in ("bfloat16", "float8_e5m2", "float8_e4m3fn"):
        f = cuplug.elementwise(f"f(x: T) -> {dtype}", "x")
        g = cuplug.elementwise(
            f"g(x: float64, s: float64 = 2) -> (y: {dtype}, z: {dtype})", "y = x; z = x * s"
        )
        for given in (x, whole, whole.astype("uint64"), whole.astype("int32"), x > 1):
            np.testing.assert_array_equal(
                f(given, device="cuda").view("u1"), f(given).view("u1")
            )
        for ours, theirs in zip(g(x, device="cuda"), g(x)):
            np.testing.assert_array_equal(ours.view("u1"), theirs.view("u1"))
    """
    run(body)
