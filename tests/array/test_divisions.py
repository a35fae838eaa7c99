# SPDX-License-Identifier: Apache-2.0
"""Integer quotients, rounded down, and remainders, compared with NumPy at every limit."""

import cuplug
import cuplug.array_api as xp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

DTYPES = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
DIVISORS = [
    1,
    2,
    3,
    7,
    10,
    127,
    255,
    1000003,
    *(2**k + d for k in (31, 32, 52, 63) for d in (-1, 0, 1)),
]
DIVISORS += [-y for y in DIVISORS] + [0, 2**64 - 1]


def within(dtype, numbers) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.array([x for x in numbers if limits.min <= x <= limits.max], dtype)


def dividends(dtype, y) -> np.ndarray:
    """Return numbers of all sizes, the limits, and multiples of y with their neighbors."""
    limits, random = np.iinfo(dtype), np.random.default_rng(3)
    x = random.integers(limits.min, limits.max, 500, dtype, endpoint=True)
    few = random.integers(max(limits.min, -100), 100, 50).astype(dtype)
    multiples = [k // y * y + d for k in x.tolist() for d in (-1, 0, 1)] if y else []
    ends = [limits.min, limits.min + 1, limits.max, limits.max - 1]
    return np.concatenate([x, few, within(dtype, [*ends, *multiples])])


@pytest.mark.sample(4)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("dtype", DTYPES)
@np.errstate(all="ignore")
def test_by_each_divisor(dtype, device):
    for y in within(dtype, DIVISORS):
        values = dividends(dtype, int(y))
        x, each = (cuplug.asarray(v, device=device) for v in (values, np.full_like(values, y)))
        wanted, rest = values // y, values % y
        for divisor in (int(y), each):
            np.testing.assert_array_equal((x // divisor).numpy(), wanted)
            np.testing.assert_array_equal((x % divisor).numpy(), rest)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@np.errstate(all="ignore")
def test_all_pairs_of_bytes(dtype, device):
    limits = np.iinfo(dtype)
    numbers = np.arange(limits.min, limits.max + 1, dtype=dtype)
    x, y = (cuplug.asarray(each, device=device) for each in (numbers[:, None], numbers))
    np.testing.assert_array_equal((x // y).numpy(), numbers[:, None] // numbers)
    np.testing.assert_array_equal((x % y).numpy(), numbers[:, None] % numbers)


@given(x=st.integers(-(2**63), 2**63 - 1), y=st.integers(-(2**63), 2**63 - 1))
def test_any_two_numbers(x, y):
    if y in (0, -1):
        return
    pair = xp.asarray([x]), xp.asarray([y])
    assert int(xp.floor_divide(*pair)[0]) == x // y
    assert int(xp.remainder(*pair)[0]) == x % y


# ---- Floats --------------------------------------------------------------------------------------


def floats(dtype):
    """Return usual pairs, pairs of all sizes, multiples with their neighbors, and the limits of
    exact values."""
    random = np.random.default_rng(5)
    sizes = 10 ** random.uniform(-12, 12, (2, 5000))
    x, y = (random.normal(size=(2, 5000)) * sizes).astype(dtype)
    multiples = (random.integers(-1000, 1000, 5000) * y).astype(dtype)
    near = [np.nextafter(multiples, end, dtype=dtype) for end in (-np.inf, np.inf)]
    few = np.array([0.0, -0.0, 1, -1, 0.1, -2.5, 5e-324, 1e300, np.inf, np.nan], dtype)
    usual = random.normal(size=(2, 1000)).astype(dtype)
    few = np.concatenate([few, (2.0 ** np.array([22, 23, 51, 52, 53]) + 1).astype(dtype)])
    left, right = (part.ravel() for part in np.meshgrid(few, few))
    x = np.concatenate([usual[0], x, multiples, *near, left])
    return x, np.concatenate([usual[1], y, y, y, y, right])


def same_floats(seen, wanted):
    """Compare floats: NaN equals NaN, and zeros must have the same sign."""
    assert seen.dtype == wanted.dtype
    np.testing.assert_array_equal(seen, wanted)
    is_number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(seen)[is_number], np.signbit(wanted)[is_number])


@cuplug.fuse
def fused(x, y):
    return x // y, x % y


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@np.errstate(all="ignore")
def test_floats(dtype, device):
    x, y = floats(dtype)
    ours = [cuplug.asarray(each, device=device) for each in (x, y)]
    wanted = np.floor_divide(x, y), np.remainder(x, y)
    same_floats(xp.floor_divide(*ours).numpy(), wanted[0])
    same_floats(xp.remainder(*ours).numpy(), wanted[1])
    for seen in (divmod(*ours), fused(*ours)):
        for part, each in zip(seen, wanted, strict=True):
            same_floats(part.numpy(), each)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@np.errstate(all="ignore")
def test_floats_that_are_special(dtype, device):
    few = np.array([0.0, -0.0, 1, -1, 5, -7, np.inf, -np.inf, np.nan, 6e4, 1e-6], dtype)
    x, y = (part.ravel() for part in np.meshgrid(few, few))
    ours = cuplug.asarray(x, device=device)
    same_floats((ours // cuplug.asarray(y, device=device)).numpy(), x // y)
    same_floats((ours % cuplug.asarray(y, device=device)).numpy(), x % y)
    for number in few.tolist():
        same_floats((ours // number).numpy(), x // number)
        same_floats((number % ours).numpy(), number % x)
        same_floats(divmod(number, ours)[0].numpy(), number // x)
