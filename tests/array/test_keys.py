# SPDX-License-Identifier: Apache-2.0
"""Keys of arrays, and writes through them, compared with NumPy."""

import math
import re
import sys
from typing import Any

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp

X = np.arange(24).reshape(2, 3, 4)
TWO, MASK = np.array([1, 0]), np.array([True, False, True])

KEYS = [
    True,
    False,
    np.True_,
    np.array(False),
    (True, 1),
    (0, True, [1, 1]),
    (slice(None), np.array(True), MASK),
    [],
    (slice(None), []),
    (None, TWO, ..., slice(None), 0),
    (None, TWO, slice(None), ..., 0),
    (slice(None), MASK, ..., 0),
    (slice(None), ..., MASK, 0),
    (..., TWO, TWO, TWO),
    (TWO, ..., TWO, TWO),
    ((1, 0), slice(None), (3, 0)),
    (slice(None), ((1,), (0,)), ()),
    np.zeros((0, 3), bool),
    (slice(None), np.zeros((3, 0), bool)),
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_keys(key):
    """Masks without dimensions, empty lists, arrays of positions with `...` between them."""
    x = cuplug.asarray(X, copy=True, device="cpu")
    taken = x[key]
    np.testing.assert_array_equal(taken.numpy(), X[key], strict=True)
    wanted = X.copy()
    wanted[key] = x[key] = np.arange(taken.size).reshape(taken.shape)
    np.testing.assert_array_equal(x.numpy(), wanted)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32", "uint64", "int64"])
def test_positions_of_any_dtype(dtype):
    places = np.array([5, 0, 3], dtype)
    x, wanted = cuplug.asarray(np.arange(6), copy=True, device="cpu"), np.arange(6)
    k = cuplug.asarray(places, device="cpu")
    np.testing.assert_array_equal(x[k].numpy(), wanted[places])
    x[k] = wanted[places] = [7, 8, 9]
    x[k[:0]] = 1
    np.testing.assert_array_equal(x.numpy(), wanted)
    if dtype.startswith("int"):
        x[k - 6] = wanted[places - 6] = 2
        np.testing.assert_array_equal(x.numpy(), wanted)


@pytest.mark.parametrize("second", [[1, 2, 0], [[1], [2]], 1], ids=repr)
@pytest.mark.parametrize("dtypes", [("int64", "int64"), ("int32", "int32"), ("int64", "uint8")])
def test_positions_along_the_first_axes(dtypes, second):
    """Positions of one shape and dtype, and others, for an array with further dimensions."""
    keys = np.array([1, 0, 1], dtypes[0]), np.array(second, dtypes[1])
    own = tuple(cuplug.asarray(k, device="cpu") for k in keys)
    x, wanted = cuplug.asarray(X, copy=True, device="cpu"), X.copy()
    np.testing.assert_array_equal(x[own].numpy(), wanted[keys], strict=True)
    x[own] = wanted[keys] = 7
    np.testing.assert_array_equal(x.numpy(), wanted)
    x[own] = wanted[keys] = np.arange(wanted[keys].size).reshape(wanted[keys].shape)
    np.testing.assert_array_equal(x.numpy(), wanted)
    for bad in ((own[0], own[1] + 2), (own[1], own[0] + 2), own * 2):
        with pytest.raises(IndexError):
            x[bad] = 8
        with pytest.raises(IndexError):
            x[bad]
    np.testing.assert_array_equal(x.numpy(), wanted)


@pytest.mark.parametrize("key", [(TWO,), (TWO, TWO), (slice(None), TWO), (slice(0, 2), TWO)])
@pytest.mark.parametrize(
    "turn",
    [
        lambda v: v,
        lambda v: v.astype("float32"),
        lambda v: np.repeat(v, 2, axis=-1)[..., ::2],
        lambda v: v[:1],
        lambda v: v[..., 0, 0],
        lambda v: np.array(v.flat[0]),
        lambda v: np.array(v.flat[0], "float32"),
    ],
    ids=[
        "alike",
        "of another dtype",
        "strided",
        "broadcast",
        "of fewer dimensions",
        "one",
        "one float",
    ],
)
def test_values_for_positions(key, turn):
    x, wanted = cuplug.asarray(X, copy=True, device="cpu"), X.copy()
    own = tuple(k if isinstance(k, slice) else cuplug.asarray(k, device="cpu") for k in key)
    np.testing.assert_array_equal(x[own].numpy(), wanted[key], strict=True)
    values = turn(100 + np.arange(wanted[key].size).reshape(wanted[key].shape))
    try:
        wanted[key] = values
    except ValueError:
        with pytest.raises(ValueError, match="broadcast"):
            x[own] = cuplug.asarray(values, device="cpu")
    else:
        x[own] = cuplug.asarray(values, device="cpu")
    np.testing.assert_array_equal(x.numpy(), wanted)


def test_values_in_what_is_written():
    x, wanted = cuplug.asarray(X, copy=True, device="cpu"), X.copy()
    x[cuplug.asarray(TWO, device="cpu")] = x
    wanted[TWO] = X
    np.testing.assert_array_equal(x.numpy(), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "bfloat16"])
def test_numbers_of_numpy_for_positions(dtype):
    x = xp.zeros((3, 4), dtype=dtype, device="cpu")
    for value in (np.float32(1), np.float64(1), np.int8(1), np.bool_(1), x.dtype.type(1)):
        x[...] = 0
        x[cuplug.asarray([0, 2], device="cpu")] = value
        assert x.numpy().astype(float).tolist() == [[1] * 4, [0] * 4, [1] * 4]


def test_one_value_of_what_is_written():
    x, wanted = cuplug.asarray(X, copy=True, device="cpu"), X.copy()
    x[cuplug.asarray(TWO, device="cpu")] = x[1, 2, 3]
    wanted[TWO] = X[1, 2, 3]
    np.testing.assert_array_equal(x.numpy(), wanted)


def test_positions_in_what_is_written():
    places = np.array([[0, 1, 1], [1, 2, 0], [0, 0, 0]])
    x, wanted = cuplug.asarray(places, copy=True, device="cpu"), places.copy()
    x[x[0], x[1]] = 2
    wanted[places[0], places[1]] = 2
    np.testing.assert_array_equal(x.numpy(), wanted)


def test_keys_that_share_memory_with_what_is_written():
    """Keys are read before anything is written, as in NumPy."""
    places = np.random.default_rng(0).permutation(1000)
    x, wanted = cuplug.asarray(places, copy=True, device="cpu"), places.copy()
    x[x] = x[::-1]
    wanted[places] = places[::-1]
    np.testing.assert_array_equal(x.numpy(), wanted)
    mask = places < 500
    for ours in (slice(None, None, -1), slice(1, None)):
        theirs = slice(None, 1000 - (ours.start or 0))
        for value in (False, mask[: 1000 if ours.step else 999][::-1]):
            y, wanted = cuplug.asarray(mask, copy=True, device="cpu"), mask.copy()
            value = value if value is False else value[mask[theirs]]
            y[ours][y[theirs]] = value
            wanted[ours][mask[theirs]] = value
            np.testing.assert_array_equal(y.numpy(), wanted)


def test_mask_of_a_number():
    x = cuplug.asarray(3.0, device="cpu")
    assert x[True].shape == (1,)
    assert x[x > 4].shape == (0,)
    x[x > 2] = 5
    assert float(x) == 5.0


class Two:
    """An index of a user's class."""

    def __index__(self):
        return 2


class Raising:
    """An index whose conversion raises."""

    def __index__(self):
        raise RuntimeError("no index today")


def test_positions_of_any_type():
    x = cuplug.asarray(X, device="cpu")
    assert x[0, 1, Two()].numpy() == X[0, 1, 2]
    assert x[cuplug.asarray(1), [0]].shape == (1, 4)
    with pytest.raises(RuntimeError, match="no index today"):
        x[Raising()]


@pytest.mark.parametrize(
    ("key", "error", "says"),
    [
        (
            np.array([2**64 - 1], np.uint64),
            IndexError,
            "index (18446744073709551615|9223372036854775807) at position 0 is out of",
        ),
        (([0], ..., ...), IndexError, r"several '\.\.\.' in a key"),
        (([0, 1], [0, 1, 0]), IndexError, r"got indices of shapes \(2,\), \(3,\), expected such"),
        (slice("a", None), TypeError, "got slice.'a', None, None., expected integers or None"),
        (slice(None, None, 0), ValueError, "expected a step other than 0"),
        ([[0, 1], [1]], ValueError, "asarray: x: got list, expected numbers, in equal rows"),
        (0.5, IndexError, "got an index of type float, expected integers"),
    ],
    ids=repr,
)
def test_refused_keys(key, error, says):
    x = cuplug.asarray(X, copy=True, device="cpu")
    with pytest.raises(error, match=says):
        x[key]
    with pytest.raises(error, match=says):
        x[key] = 1
    np.testing.assert_array_equal(x.numpy(), X)


def write_all_ways(x: np.ndarray, value: Any) -> list[Any]:
    """Return the array, or the type of the error, after each way to write a value."""
    seen: list[Any] = []
    for key in (0, x == x, [0, 1]):
        y = cuplug.asarray(x, copy=True, device="cpu")
        try:
            y[key] = value
            seen.append(y[0, 0].numpy()[()])
        except (TypeError, ValueError) as error:
            seen.append(type(error) if re.search("expected", str(error)) else error)
    return seen


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool", "float16", "float32"])
@pytest.mark.parametrize(
    "value",
    [
        *(300, -1, 2.5, 1e300, np.float64(1e300), np.float16(np.inf), np.nan, 1j, np.inf, 10**400),
        *(np.complex64(1), "a", None, np.timedelta64(5, "ns"), [1j, 2j], [[1, 2], [3]]),
    ],
    ids=lambda x: repr(x)[:30],
)
def test_each_way_to_write_is_alike(dtype, value):
    """A slice, a mask and positions write the same value, or raise the same kind of error."""
    seen = write_all_ways(np.ones((2, 2), dtype), value)
    assert len(set(map(str, seen))) == 1, seen
    if isinstance(value, float) and dtype in ("int8", "uint8", "int64") and value != 2.5:
        assert seen[0] is ValueError


@pytest.mark.parametrize("to", ["int8", "uint8", "int32", "int64"])
def test_large_floats_become_the_greatest_integers(to):
    """NumPy's results for them are undefined."""
    x = np.array([1e300, -1e300, np.inf, 1.5])
    seen = cuplug.asarray(x, dtype=to, device="cpu").numpy()
    limits = np.iinfo(to)
    assert seen.tolist() == [limits.max, limits.min, limits.max, 1]


@pytest.mark.parametrize("how", ["asarray", "set"])
def test_imaginary_parts_are_not_lost(how):
    z, x = np.array([1j]), cuplug.asarray(np.zeros(1), device="cpu")
    with pytest.raises(TypeError, match=rf"{how}: .*got complex128, expected real numbers"):
        cuplug.asarray(z, dtype="float32", device="cpu") if how == "asarray" else x.set(z)


@pytest.mark.parametrize("values", ["a", None, [[1], [1, 2]], ...], ids=repr)
def test_refused_values(values):
    x = cuplug.asarray(np.zeros(2), copy=True, device="cpu")
    with pytest.raises((TypeError, ValueError), match="set: values: got .*, expected"):
        x.set(values)
    with pytest.raises((TypeError, ValueError), match="asarray: x: got .*, expected numbers"):
        cuplug.asarray(values)


@pytest.mark.parametrize("dtype", ["nope", None, 5, ...], ids=repr)
def test_refused_dtypes(dtype):
    x = cuplug.asarray(np.zeros(2), device="cpu")
    with pytest.raises(TypeError, match="astype: dtype: got .*, expected a dtype of NumPy"):
        cuplug.array_api.astype(x, dtype)


@pytest.mark.parametrize("name", ["max", "min"])
def test_statistics_of_real_numbers_alone(name):
    z = cuplug.asarray(np.array([1j, -1j, 2.0]), device="cpu")
    with pytest.raises(TypeError, match=f"{name}: x: got complex128, expected real numbers"):
        getattr(cuplug.array_api, name)(z)


def test_differences_of_nothing_end():
    x = cuplug.asarray(np.arange(3.0), device="cpu")
    assert cuplug.array_api.diff(x, n=10**30).shape == (0,)


def test_set_of_an_array_that_repeats_elements():
    x = cuplug.array_api.broadcast_to(cuplug.asarray(np.zeros(1), copy=True, device="cpu"), (3,))
    with pytest.raises(ValueError, match="set: got an array whose elements share memory"):
        x.set(np.arange(3.0))
    assert x.numpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize("times", [(), (1,), (1, 1), (2, 1)])
@pytest.mark.parametrize("shape", [(), (1,), (2, 2)])
def test_tiles_are_copies(shape, times):
    """Otherwise, writes to them would sometimes change the array."""
    x = cuplug.asarray(np.ones(shape), copy=True, device="cpu")
    tiled = cuplug.array_api.tile(x, times)
    np.testing.assert_array_equal(tiled.numpy(), np.tile(np.ones(shape), times))
    tiled += np.float64(1)
    assert (x.numpy() == 1).all()
    assert (tiled.numpy() == 2).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_divided_by_zero(dtype):
    x = np.array([1 - 1j, 0j, -1, 1j, complex("inf"), complex("nan")], dtype)
    for zero in (complex(0, 0), complex(-0.0, 0.0), complex(0.0, -0.0)):
        y = np.full_like(x, zero)
        got = cuplug.array_api.divide(*(cuplug.asarray(z, device="cpu") for z in (x, y)))
        np.testing.assert_array_equal(got.numpy(), x / y)
        fused = cuplug.fuse(lambda a, b: a / b)
        np.testing.assert_array_equal(fused(x, y), x / y)


def test_buffers_keep_no_references():
    x = cuplug.asarray(X, device="cpu")
    before = sys.getrefcount(None)
    for _ in range(1000):
        memoryview(x).release()
    assert abs(sys.getrefcount(None) - before) < 500


@pytest.mark.slow
def test_the_code_for_gpus(run_emulated):
    """Quotients of complex numbers, and rounding to decimals, equal the CPU's."""
    run_emulated(
        """
import cuplug
import numpy as np
from emulation import install_expressions
install_expressions()
z, zero = np.array([1 - 1j, 0, 3j], "complex64"), np.array([0, 0, 2j], "complex64")
floats = np.array([3e38, 700.5, -0.0, np.inf], "float32")
for call, arrays in [
    (lambda x, y: x / y, (z, zero)),
    (lambda x: x.round(2), (floats,)),
    (lambda x: x * (x > 1), (floats[:3],)),
    (lambda x: (x * 1.5).round(), (z,)),
    (lambda x: x.round(-60), (floats,)),
]:
    here, there = (call(*(cuplug.asarray(x, device=d) for x in arrays)) for d in ("cpu", "cuda"))
    np.testing.assert_array_equal(here.numpy(), there.numpy())
"""
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "dtype",
    ["float16", "float32", "float64", "int8", "int32", "int64", "uint64", "bool", "complex64"],
)
def test_a_number_is_written_to_one_element_as_to_several(dtype):
    """A number that fits is written directly to memory; both reject numbers that do not fit."""

    def written(key, value):
        x = cuplug.asarray(np.ones(3, dtype))
        try:
            x[key] = value
        except (TypeError, ValueError, OverflowError) as error:
            return type(error), str(error)
        return x.numpy().tobytes()

    limits = [2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 2**63, 2**64, -1, 10**400]
    floats = [0.1, -0.0, 1e-46, 3.4028235677973366e38, 1e39, 1e308, math.inf, -math.inf, math.nan]
    for value in (0, 1, True, 2**24 + 1, *limits, *floats, 1 + 2j, np.float32(0.1), np.int64(7)):
        assert written(1, value) == written(slice(1, 2), value), value
        if written(1, value)[0] not in (TypeError, ValueError, OverflowError):
            own = np.ones(3, dtype)
            own[1] = value
            assert written(1, value) == own.tobytes(), value
