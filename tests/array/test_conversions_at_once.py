# SPDX-License-Identifier: Apache-2.0
"""Functions that convert their inputs, and powers by known exponents, compared with NumPy."""

import math

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
SPECIAL = [-np.inf, -2.5, -1.0, -0.0, 0.0, 1.0, 3.0, np.inf, np.nan]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def same(seen, wanted):
    assert isinstance(seen, cuplug.Array)
    assert seen.dtype == wanted.dtype
    np.testing.assert_allclose(seen.numpy(), wanted, rtol=1e-6)
    if wanted.dtype.kind == "f":
        is_number = ~np.isnan(wanted)
        signs = np.signbit(seen.numpy()), np.signbit(wanted)
        np.testing.assert_array_equal(*(x[is_number] for x in signs))


@pytest.mark.sample(6)
@pytest.mark.parametrize("exponent", [-2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.0, 3, 4, 5, 2.5])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64", "uint8"])
def test_powers_by_numbers(dtype, exponent, device):
    """Equal to powers by an array of the number: numpy.power has other rules for some numbers."""
    is_of_floats = dtype.startswith("float")
    x = np.array(SPECIAL, dtype) if is_of_floats else np.arange(1, 8).astype(dtype)
    ours = cuplug.asarray(x, device=device)
    if x.dtype.kind in "iu" and exponent in (-2, -1):
        wanted = f"pow: got {exponent}, expected a power >= 0 of {dtype}"
        with pytest.raises(ValueError, match=wanted):
            ours**exponent
        return
    wanted_dtype = "float64" if x.dtype.kind in "iu" and isinstance(exponent, float) else dtype
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(wanted_dtype), np.full(x.shape, exponent, wanted_dtype))
    same(ours**exponent, wanted)
    same(xp.pow(ours, exponent), wanted)
    if wanted.dtype == x.dtype:
        changed = cuplug.asarray(x, device=device, copy=True)
        changed **= exponent
        same(changed, wanted)


PAIRS = [
    ("int32", "float64"),
    ("float32", "float64"),
    ("uint8", "int64"),
    ("int8", "uint8"),
    ("int64", "float32"),
    ("float16", "float32"),
    ("int16", "float16"),
    ("float32", "complex64"),
    ("int32", "complex64"),
    ("bool", "int16"),
    ("float32", "bool"),
    ("bool", "complex64"),
]


@pytest.mark.sample(6)
@pytest.mark.parametrize("dtypes", PAIRS, ids="-".join)
@pytest.mark.parametrize("name", ["add", "divide", "maximum", "atan2", "less", "remainder"])
def test_arrays_of_two_dtypes(name, dtypes, device):
    x, y = (np.arange(1, 13).reshape(3, 4).astype(dtype) for dtype in dtypes)
    wanted_dtype = np.result_type(x, y)
    if wanted_dtype.kind == "c" and name not in ("add", "divide"):
        pytest.skip("of real numbers")
    if wanted_dtype.kind in "iu" and name in ("divide", "atan2"):
        wanted_dtype = np.dtype("float64")
    theirs = getattr(np, {"atan2": "arctan2"}.get(name, name))
    wanted = theirs(x.astype(wanted_dtype), y[::-1].astype(wanted_dtype))
    ours = cuplug.asarray(x, device=device), cuplug.asarray(y, device=device)[::-1]
    same(getattr(xp, name)(*ours), wanted)
    if x.dtype.itemsize < 8:
        turned = getattr(xp, name)(ours[0].T, ours[1].T)
        same(turned, wanted.T)


def test_masks_are_factors(device):
    x = np.array([-1.5, 0, 2.5], "float32")
    ours = cuplug.asarray(x, device=device, copy=True)
    same(ours * (ours > 0), x * (x > 0))
    same(xp.concat([ours > 0, ours]), np.concatenate([x > 0, x]))
    ours *= ours < 0
    same(ours, x * (x < 0))
    assert xp.result_type("bool", "bfloat16") == xp.asarray(1, dtype="bfloat16", device="cpu").dtype


ALL = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"]


@pytest.mark.sample(18)
@pytest.mark.parametrize("dtype", ALL)
def test_assigned_arrays_of_other_dtypes(dtype, device):
    for other in ALL if dtype == "complex64" else ALL[:-1]:
        x = cuplug.empty((3, 4), dtype, device=device)
        for shape in ((), (1,), (4,), (3, 1), (3, 4)):
            given = np.arange(1, 1 + math.prod(shape)).reshape(shape)
            values = cuplug.asarray(given, dtype=other, device=device)
            wanted = np.empty((3, 4), dtype)
            x[...], wanted[...] = values, values.numpy()
            same(x, wanted)
        x[1:, ::2] = values[1:, ::2]
        same(x, wanted)
        same(xp.full(5, values[0, 0], dtype=dtype, device=device), np.ones(5, dtype))


def test_integers_and_numbers_that_are_floats(device):
    x = np.arange(-3, 4, dtype="int32")
    ours = cuplug.asarray(x, device=device)
    same(ours + 0.5, x + 0.5)
    same(0.5 - ours, 0.5 - x)
    same(xp.exp(ours), np.exp(x))
    same(xp.signbit(ours), np.signbit(x.astype("float64")))
    same(ours / 2, x / 2)
