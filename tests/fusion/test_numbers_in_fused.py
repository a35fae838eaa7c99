# SPDX-License-Identifier: Apache-2.0
"""Numbers in fused functions, written there or passed to them: dtypes and values as in NumPy."""

import cuplug
import numpy as np
import pytest

DTYPES = ["bool", "uint8", "int64", "uint64", "float32"]
NUMBERS = [True, -1, 3, 300, 2**63 - 1, 2**63, 2**70, 0.5, 1e300]
NUMBERS += [np.int64(-1), np.uint8(7), np.float64(0.5)]
VALUES = {
    "b": [0, 1, 1, 0],
    "u": [0, 2, 200, 255],
    "i": [-1, 2, 300, 2**63 - 1],
    "f": [-1, 2, 300, 0],
}
FUNCTIONS = {
    "compared": lambda x, k: (x < k, x <= k, x == k, x != k, x >= k, x > k),
    "reflected": lambda x, k: (k < x, k <= x, k == x, k >= x, k > x),
    "both numbers": lambda x, k: (np.where(x > 1, k, 0), np.where(x > 1, 2, k) + x),
    "number and array": lambda x, k: np.where(x > 1, x, k),
    "below": lambda x, k: np.clip(x, k, None),
    "above": lambda x, k: np.clip(x, None, k),
    "function of numbers": lambda x, k: np.maximum(k, 2) * x,
    "operator of numbers": lambda x, k: (k + 2) * x,
}
ERRORS = (TypeError, ValueError, OverflowError)


def outcome(function, *args):
    with np.errstate(all="ignore"):
        try:
            found = function(*args)
        except ERRORS:
            return None
    return found if isinstance(found, tuple) else (found,)


def with_second(function, k):
    return cuplug.fuse(lambda x: function(x, k))


def may_differ(name, x, k, wanted):
    """Return whether NumPy silently wraps a number, which is an error here, or has other dtypes."""
    is_plain = type(k) is int and x.dtype.kind in "iu"
    if name == "number and array" and is_plain:
        return not np.iinfo(x.dtype).min <= k <= np.iinfo(x.dtype).max
    is_object = wanted is not None and any(each.dtype.kind == "O" for each in wanted)
    return is_object or (type(k) is int and k >= 2**62 and "number" in name)


@pytest.mark.sample(18)
@pytest.mark.parametrize("is_written", [True, False], ids=["written", "passed"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_are_those_of_numpy(name, dtype, is_written):
    function, wrong = FUNCTIONS[name], []
    x = np.array(VALUES[np.dtype(dtype).kind], dtype)
    for k in NUMBERS:
        wanted = outcome(function, x, k)
        if may_differ(name, x, k, wanted):
            continue
        if is_written:
            seen = outcome(with_second(function, k), x)
        else:
            seen = outcome(cuplug.fuse(function), x, k)
        same = (seen is None) == (wanted is None) and all(
            a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)
            for a, b in zip(seen or (), wanted or (), strict=True)
        )
        if not same:
            wrong.append(f"{k!r} of {type(k).__name__}: {seen}, expected {wanted}")
    assert not wrong, "\n".join(wrong)


def of_two(ufunc):
    return cuplug.fuse(lambda x, y: ufunc(x, y))


@pytest.mark.slow
def test_signed_and_unsigned_integers_compare_by_value():
    signed = np.array([-1, 5, 2**63 - 1, -(2**63)])
    unsigned = np.array([2**64 - 1, 5, 2**63, 2**63], "uint64")
    for name in ("less", "less_equal", "equal", "not_equal", "greater", "greater_equal"):
        compare = getattr(np, name)
        for x, y in ((signed, unsigned), (unsigned, signed)):
            wanted = compare(x, y)
            np.testing.assert_array_equal(of_two(compare)(x, y), wanted)
            ours = (cuplug.asarray(each, device="cpu") for each in (x, y))
            np.testing.assert_array_equal(compare(*ours).numpy(), wanted)


def compared(x, y):
    yield from (x < x + y, x - y > x, x * 4 // 4, -x < 0, abs(x) < 0, x * x < 0, x**3 // x)
    yield np.where(y > 0, x * x, -y) < x


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_integers_wrap_before_they_are_compared(dtype, device):
    """CUDA's compiler would assume that signed sums and products do not."""
    info = np.iinfo(dtype)
    numbers = np.array([info.min, info.min // 2 - 1, -3, 0, 3, info.max // 2 + 1, info.max], dtype)
    x, y = (each.ravel() for each in np.meshgrid(numbers, numbers))
    fused = cuplug.fuse(lambda x, y: tuple(compared(x, y)))
    seen = fused(cuplug.asarray(x, device=device), cuplug.asarray(y, device=device))
    with np.errstate(all="ignore"):
        for got, expected in zip(seen, compared(x, y), strict=True):
            np.testing.assert_array_equal(got.numpy(), expected)
