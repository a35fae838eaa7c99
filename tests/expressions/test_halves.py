# SPDX-License-Identifier: Apache-2.0
"""float16 and bfloat16 as float32 and back, on the host: every number, rounded to nearest even."""

import cuplug
import ml_dtypes
import numpy as np
import pytest
from backends import assert_same

HALVES = ["float16", "bfloat16"]
EVERY = np.arange(1 << 16, dtype=np.uint16)


def of_bits(bits, dtype):
    return bits.view(np.float16 if dtype == "float16" else ml_dtypes.bfloat16)


def floats():
    """Return float32 numbers: random ones, midpoints between halves, and neighbors of these."""
    drawn = np.random.default_rng(0).integers(0, 1 << 32, 100_003, np.uint32, endpoint=False)
    with np.errstate(all="ignore"):
        ties = [
            (of_bits(EVERY, dtype).astype("f4").view("u4") | half)
            for dtype, half in (("float16", 1 << 12), ("bfloat16", 1 << 15))
        ]
    every = np.concatenate(
        [drawn, *ties, *(x + np.uint32(1) for x in ties), *(x - 1 for x in ties)]
    )
    return every.view("f4")


@pytest.mark.parametrize("dtype", HALVES)
def test_every_half_becomes_its_float(dtype):
    widen = cuplug.elementwise(f"widen(x: {dtype}) -> float32", "x")
    x = of_bits(EVERY, dtype)
    for part in (x, x[::-1], x[3:20], x[5:38]):
        assert_same(widen(part), part.astype("f4"))


@pytest.mark.parametrize("dtype", HALVES)
def test_floats_become_the_nearest_halves(dtype):
    narrow = cuplug.elementwise(f"narrow(x: float32) -> {dtype}", "x")
    x = floats()
    with np.errstate(all="ignore"):
        wanted = x.astype(of_bits(EVERY, dtype).dtype)
    for part in (slice(None), slice(None, None, -1), slice(7, 24), slice(9, 42)):
        found = narrow(x[part])
        is_nan = np.isnan(x[part])
        assert np.isnan(found[is_nan].astype("f4")).all()
        assert (found.view("u2") == wanted[part].copy().view("u2"))[~is_nan].all()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", ["relu", "leaky_relu", "piecewise_scale"])
def test_stock_operators_compute_halves_as_floats(name, dtype):
    """Except relu, which returns halves unchanged."""
    operator, x = cuplug.find(name), of_bits(EVERY, dtype)
    with np.errstate(all="ignore"):
        wanted = operator(x.astype("f4")).astype(x.dtype)
    for n in (1, 17, 513, 1 << 16):
        assert_same(operator(x[:n].copy()), wanted[:n])
    table = np.tile(x, 257)
    assert_same(operator(table), np.tile(wanted, 257))


OF_ONE = {
    "x": lambda x: x,
    "-x": np.negative,
    "abs(x)": np.abs,
    "signbit(x) != 0": np.signbit,
    "isnan(x) != 0": np.isnan,
    "isinf(x) != 0": np.isinf,
    "isfinite(x) != 0": np.isfinite,
}
OF_TWO = {"copysign(x, y)": np.copysign, "x == y": np.equal, "x != y": np.not_equal}


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("text", [*OF_ONE, *OF_TWO])
def test_what_bits_tell_of_every_half(text, dtype):
    """Results equal those for floats, also for zeros, NaN and infinities, in any dtype."""
    x, parameters = of_bits(EVERY, dtype), "x: T" if text in OF_ONE else "x: T, y: T"
    edges = [0, 1, 0x7C00, 0x7C01, 0x7F80, 0x7F81, 0x7FFF, 0x8000, 0xFC00, 0xFF81, 0xFFFF]
    given = [(x[:n], x[::-1][:n]) for n in (17, 1 << 16)]
    given += [(x, x.copy()), *((x, of_bits(np.full_like(EVERY, edge), dtype)) for edge in edges)]
    for result in ("T", "bool"):
        op = cuplug.elementwise(f"told({parameters}) -> {result} where T: {dtype}", text)
        for pair in given[: 2 if text in OF_ONE else None]:
            args = pair[: 1 if text in OF_ONE else 2]
            with np.errstate(invalid="ignore"):
                wanted = (OF_ONE | OF_TWO)[text](*(arg.astype("f4") for arg in args))
                wanted = wanted.astype(x.dtype if result == "T" else "bool")
            found = op(*args)
            assert_same(found, wanted)
            if result == "T":
                assert_same(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("dtype", HALVES)
def test_numbers_beside_halves_are_no_bits(dtype):
    x = of_bits(EVERY[:0x7C00], dtype)
    sign = cuplug.elementwise("sign(x: T, y: T) -> T", "copysign(x, y)")
    alike = cuplug.elementwise("alike(x: T, y: T) -> bool", "x == y")
    assert_same(sign(x, -2.0), -x)
    assert_same(alike(x, 1.0), x == 1)


TOTAL = cuplug.reduction("total(x: T) -> T", reduce="a + b")
DOT = cuplug.reduction("dot(x: T, y: U) -> float32", map="x * y", reduce="a + b")
FIRST = cuplug.reduction("first(x: T) -> int64", choose="b > a", post="i")


@pytest.mark.parametrize("dtype", HALVES)
def test_scans_take_every_half_and_give_the_nearest(dtype):
    """Scans of single elements along rows and columns return each element."""
    widen = cuplug.scan(f"widen(x: {dtype}) -> float32", reduce="b")
    narrow = cuplug.scan(f"narrow(x: float32) -> {dtype}", reduce="b")
    x, y = of_bits(EVERY, dtype), floats()[: 1 << 16]
    with np.errstate(all="ignore"):
        wanted = y.astype(x.dtype)
    for shape, axis in (((1 << 16,), 0), ((1 << 10, 64), 0), ((1 << 10, 64), 1)):
        assert_same(widen(x.reshape(shape), axis=axis), x.astype("f4").reshape(shape))
        assert_same(narrow(y.reshape(shape), axis=axis), wanted.reshape(shape))


@pytest.mark.sample(4)
@pytest.mark.parametrize("n", [1, 3, 31, 32, 33, 127, 128, 255, 256, 257, 700, 1151, 1200, 2500])
def test_reductions_take_halves_as_floats(n):
    """In rows and columns, adjacent or not, and next to arrays of floats."""
    random = np.random.default_rng(n)
    whole = random.integers(-3, 4, (70, 3 * n)).astype("f2")
    for x in (
        whole[:, :n],
        whole[:, ::3],
        whole[::-1, n - 1 :: -1],
        np.asfortranarray(whole)[:, :n],
    ):
        wide = x.astype("f4")
        for v, w in ((x, wide), (x.T, wide.T)):
            for axis in (0, 1):
                assert_same(TOTAL(v, axis=axis), w.sum(axis).astype("f2"))
                assert_same(DOT(v, w, axis=axis), (w * w).sum(axis))
                assert_same(FIRST(v, axis=axis), w.argmax(axis))
    assert_same(TOTAL(whole), np.asarray(whole.astype("f4").sum().astype("f2")))


@pytest.mark.sample(6)
@pytest.mark.parametrize("dtype", [*HALVES, "float32"])
@pytest.mark.parametrize("reduce", ["a + b", "max(a, b)"])
def test_rows_and_columns_of_all_lengths(dtype, reduce):
    """Memory after a row, NaN here, is not read as part of it."""
    made = cuplug.reduction("made(x: T) -> float32", reduce=reduce)
    products = cuplug.reduction("made(x: T, y: T) -> float32", map="x * y", reduce=reduce)
    wanted = np.sum if reduce == "a + b" else np.max
    random = np.random.default_rng(0)
    for n in [*range(1, 150), 1000, 4099]:
        wide = np.full((9, n + 8), np.nan, "f4")
        wide[:, :n] = random.integers(-8, 9, (9, n))
        x = wide.astype(wide.dtype if dtype == "float32" else of_bits(EVERY, dtype).dtype)[:, :n]
        for each, as_float in ((x, wide), (x.copy(), wide), (x[::-1], wide[::-1])):
            for axis in (0, 1):
                of_each = as_float[:, :n]
                np.testing.assert_array_equal(made(each, axis=axis), wanted(of_each, axis))
                both = products(each, x, axis=axis)
                np.testing.assert_array_equal(both, wanted(of_each * wide[:, :n], axis))
