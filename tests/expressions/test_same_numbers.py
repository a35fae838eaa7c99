# SPDX-License-Identifier: Apache-2.0
"""Operations that C leaves undefined: results are the same on the CPU and on the GPU, and
equal NumPy's if NumPy defines them."""

import itertools
import math

import cuplug
import numpy as np
import pytest
from backends import SIGNED, UNSIGNED, assert_same
from cuplug._engine.signature.variant import Variant
from cuplug._source.expressions import element_wise
from cuplug._source.expressions.element_wise_loops import cuda_code
from expression_values import nvrtc
from hypothesis import given, settings
from hypothesis import strategies as st
from selection import runs_all

INTEGERS = [*SIGNED, *UNSIGNED]
NARROW = ["float16", "float32"]
SIDES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def limits(dtype):
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def of_float(x, dtype):
    """Return a float as an integer: truncated to zero, then clamped to the limits; NaN is 0."""
    low, high = limits(dtype)
    if math.isnan(x):
        return 0
    return int(min(max(x, low), high)) if abs(x) > 2**70 else min(max(int(x), low), high)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    "given_dtype", ["float64", *(pytest.param(x, marks=pytest.mark.slow) for x in NARROW)]
)
def test_floats_that_become_integers(given_dtype, side):
    powers = [s * 2.0**k for k in (7, 8, 15, 16, 31, 32, 63, 64) for s in (1, -1)]
    with np.errstate(over="ignore"):
        x = np.array([0, -0.0, 0.9, -0.9, 200.5, -200.5, np.inf, -np.inf, np.nan, 1e30, *powers])
        x = np.concatenate([x, np.nextafter(x.astype(given_dtype), 0)]).astype(given_dtype)
    for dtype in INTEGERS:
        expected = np.array([of_float(float(each), dtype) for each in x], dtype)
        f = cuplug.elementwise(f"f(x: {given_dtype}) -> {dtype}", "x")
        assert_same(np.asarray(f(x, device=side)), expected)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", ["int32", "uint64"])
def test_reductions_of_floats_that_become_integers(dtype, side):
    """The result of `map` becomes a 64-bit accumulator, which becomes the output's dtype."""
    x = np.array([[1.5, -2.5], [3e9, 2.0], [-1e30, 0], [1e30, 0], [np.nan, 1]])
    total = cuplug.reduction(
        f"total(x: float64[...]) -> {dtype}[...]", map="x", reduce="a + b", identity="0"
    )
    wide = "uint64" if dtype in UNSIGNED else "int64"
    parts = np.array([[of_float(each, wide) for each in row] for row in x.tolist()], wide)
    found = np.asarray(total(x, axis=1, device=side))
    assert_same(found, parts.sum(axis=1).astype(dtype))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_powers_of_integers(dtype, side):
    bases = np.array([0, 1, 2, 3, 7, *limits(dtype)], dtype)
    powers = np.array([0, 1, 2, 3, 39, 40, 64]).astype(dtype)
    x, y = (a.ravel() for a in np.meshgrid(bases, powers))
    f = cuplug.elementwise("f(x: T, y: T) -> T", "pow(x, y)")
    with np.errstate(all="ignore"):
        assert_same(np.asarray(f(x, y, device=side)), np.power(x, y))
    assert_same(np.asarray(f(x, dtype_one(dtype, 2), device=side)), x * x)


def dtype_one(dtype, value):
    return np.full(1, value, dtype)


@pytest.mark.parametrize("side", SIDES)
def test_powers_of_floats_are_of_floats(side):
    for dtype, text in (("float32", "pow(x, 2)"), ("float64", "pow(x, 0.5)")):
        f = cuplug.elementwise("f(x: T) -> T", text)
        x = np.array([0.25, 2, 9], dtype)
        assert_same(np.asarray(f(x, device=side)), np.power(x, float(text[7:-1])).astype(dtype), 2)
    half = cuplug.elementwise("half(x: int64) -> float64", "pow(x, 0.5) + pow(2.0, x)")
    assert_same(np.asarray(half(np.array([4, 9]), device=side)), np.array([18.0, 515.0]), 2)


def test_negative_powers_of_integers():
    """As in NumPy."""
    f = cuplug.elementwise("f(x: T, y: T) -> T", "pow(x, y)")
    for dtype in SIGNED:
        wanted = "^f: got 10 to the power of -3 of integers, expected a power >= 0$"
        with pytest.raises(ValueError, match=wanted):
            f(dtype_one(dtype, 10), dtype_one(dtype, -3))


@pytest.mark.parametrize("side", SIDES[1:])
def test_negative_powers_on_a_gpu(side):
    """They are the number, rounded to zero, and 0 if it does not exist."""
    f = cuplug.elementwise("f(x: T, y: T) -> T", "pow(x, y)")
    for dtype in SIGNED:
        x = np.array([1, -1, -1, 2, -2, 10, 0, 3], dtype)
        y = np.array([-5, -2, -3, -1, -1, -3, -1, 2], dtype)
        assert np.asarray(f(x, y, device=side)).tolist() == [1, 1, -1, 0, 0, 0, 0, 9]


@pytest.mark.parametrize("side", SIDES[1:])
@pytest.mark.parametrize("text", ["x / y", "x % y", "x >> y - 4"])
def test_what_has_no_result_is_that_element_alone_on_a_gpu(text, side):
    f = cuplug.elementwise("f(x: T, y: T) -> T", text)
    for dtype in ("int32", "int64", "uint32", "uint64"):
        x, y = np.full(1000, 12, dtype), np.full(1000, 4, dtype)
        expected = np.asarray(f(x, y, device=side))
        y[::7] = 0
        found = np.asarray(f(x, y, device=side))
        assert (found == expected)[np.arange(1000) % 7 != 0].all()


MIXED = [
    "int32 uint32",
    "uint64 int32",
    "int64 uint64",
    "uint32 int64",
    "uint8 int16",
    "int8 uint64",
]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("pair", MIXED)
def test_least_and_greatest_of_mixed_integers(pair, side):
    pair = pair.split()
    values = [[0, 1, *limits(dtype)] for dtype in pair]
    x, y = (
        np.array(column, dtype)
        for column, dtype in zip(zip(*itertools.product(*values), strict=True), pair, strict=True)
    )
    for name, choose in (("min", min), ("max", max)):
        exact = [choose(int(p), int(q)) for p, q in zip(x, y, strict=True)]
        out = "uint64" if max(exact) > limits("int64")[1] else "int64"
        f = cuplug.elementwise(f"f(x: {pair[0]}, y: {pair[1]}) -> {out}", f"{name}(x, y)")
        assert_same(np.asarray(f(x, y, device=side)), np.array(exact, out))


OF_FLOATS = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_least_and_greatest_of_floats(dtype, side):
    x, y = (a.ravel() for a in np.meshgrid(*[np.array(OF_FLOATS, dtype)] * 2))
    for name, reference in (("min", np.minimum), ("max", np.maximum)):
        f = cuplug.elementwise("f(x: T, y: T) -> T", f"{name}(x, y)")
        found = np.asarray(f(x, y, device=side))
        assert_same(found, reference(x, y))
        equal = (x == y) & (x == 0)  # of equal numbers it is the second
        assert (np.signbit(found[equal]) == np.signbit(y[equal])).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("side", SIDES)
def test_numbers_are_chosen_before_nan(dtype, side):
    x, y = (each.ravel() for each in np.meshgrid(*[np.array(OF_FLOATS, dtype)] * 2))
    of = cuplug.elementwise(
        "f(x: T, y: T) -> (low: T, inside: T, minus: bool)",
        "low = fmin(x, y); inside = fmax(fmin(x, (T)2), y); minus = signbit(x)",
    )
    low, inside, minus = of(x, y, device=side)
    np.testing.assert_array_equal(low, np.fmin(x, y))
    np.testing.assert_array_equal(inside, np.fmax(np.fmin(x, x.dtype.type(2)), y))
    np.testing.assert_array_equal(minus, np.signbit(x))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("operator", ["<<", ">>"])
def test_shifts(dtype, operator):
    shift = cuplug.elementwise("shift(x: T, y: T) -> T", f"x {operator} y")
    bits = np.dtype(dtype).itemsize * 8
    numbers = np.array([1, 5, *limits(dtype)], dtype)
    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(numbers, range(bits)))
    assert_same(shift(x, y), np.left_shift(x, y) if operator == "<<" else np.right_shift(x, y))
    bad = [bits, bits + 1] + ([-1] if dtype in SIGNED else [])
    for places in bad:
        wanted = f"got a shift of 1 by {places} places, expected 0 to {bits - 1}"
        with pytest.raises(ValueError, match=f"^shift: line 1, column 3: {wanted}$"):
            shift(dtype_one(dtype, 1), dtype_one(dtype, places))
    constant = cuplug.elementwise("constant(x: T) -> int64", "x + (1 << 32)")
    with pytest.raises(ValueError, match="constant: line 1, column 8: got a shift of 1 by 32 pl"):
        constant(dtype_one(dtype, 1))


# ---- Any expressions ---------------------------------------------------------------------------

PREAMBLE = """
#define K(v) ((T)(v))
__device__ T pick(bool c, T a, T b) { return c ? a : b; }
"""
OF_INTEGERS = """
__device__ T add(T a, T b) { return (T)((uint64_t)a + (uint64_t)b); }
__device__ T subtract(T a, T b) { return (T)((uint64_t)a - (uint64_t)b); }
__device__ T multiply(T a, T b) { return (T)((uint64_t)a * (uint64_t)b); }
__device__ T divide(T a, T b) { return b == 0 || b == K(-1) ? a : a / b; }
__device__ T rest(T a, T b) { return b == 0 || b == K(-1) ? a : a % b; }
"""


def divide(a, b):
    bad = (b == 0) | (b == a.dtype.type(0) - a.dtype.type(1))
    b = np.where(bad, a.dtype.type(1), b)
    quotient = a // b
    return np.where(bad, a, quotient + ((a % b != 0) & ((a < 0) != (b < 0))).astype(a.dtype))


def remainder(a, b):
    bad = (b == 0) | (b == a.dtype.type(0) - a.dtype.type(1))
    return np.where(bad, a, a - divide(a, b) * np.where(bad, a.dtype.type(1), b))


def expressions(is_integer, wraps):
    """Draw text that is valid C and Python; CUDA compares signed sums as if they did not wrap."""
    leaves = st.sampled_from(["x", "y", "K(3)", "K(7)"])
    binary = (["+", "-", "*"] if wraps else []) + (["&", "|", "^"] if is_integer else [])
    calls = ["min", "max"] + (["divide", "rest"] if is_integer else [])
    calls += [] if wraps else ["add", "subtract", "multiply"]

    def extend(inner):
        both = st.tuples(inner, inner)
        made = [
            st.builds(lambda p, o: f"({p[0]} {o} {p[1]})", both, st.sampled_from(binary)),
            st.builds(lambda p, f: f"{f}({p[0]}, {p[1]})", both, st.sampled_from(calls)),
            st.builds(
                lambda p, q, o: f"pick({p[0]} {o} {p[1]}, {q[0]}, {q[1]})",
                *(both, both, st.sampled_from(["<", "<=", "==", "!="])),
            ),
            st.builds(lambda a: f"(-{a})" if wraps else f"subtract(K(0), {a})", inner),
        ]
        if is_integer:
            made.append(st.builds(lambda a, n: f"({a} << {n})", inner, st.integers(0, 31)))
            made.append(st.builds(lambda a, n: f"({a} >> {n})", inner, st.integers(0, 31)))
            made.append(st.builds(lambda a: f"(~{a})", inner))
        return st.one_of(made)

    return st.recursive(leaves, extend, max_leaves=8)


def operands(dtype):
    """Return special values against each other, and many others."""
    random = np.random.default_rng(0)
    if dtype.kind == "f":
        special = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, np.finfo(dtype).tiny / 4, 3e38]
        others = random.standard_normal((2, 400)).astype(dtype)
    else:
        special = [0, 1, 2, 3, 7, *limits(dtype)]
        special += [-1, -2] if dtype.kind == "i" else []
        others = random.integers(*limits(dtype), (2, 400), dtype)
    x, y = (a.ravel() for a in np.meshgrid(*[np.array(special, object).astype(dtype)] * 2))
    return np.concatenate([x, others[0]]), np.concatenate([y, others[1]])


def check(side, dtype, texts):
    dtype = np.dtype(dtype)
    x, y = operands(dtype)
    named = [f"z{k}" for k in range(len(texts))]
    f = cuplug.elementwise(
        f"f(x: T, y: T) -> ({', '.join(f'{z}: T' for z in named)})",
        "; ".join(f"{z} = {text}" for z, text in zip(named, texts, strict=True)),
        preamble=PREAMBLE + (OF_INTEGERS if dtype.kind in "iu" else ""),
    )
    scope = {"min": np.minimum, "max": np.maximum, "divide": divide, "rest": remainder}
    scope |= {"pick": np.where, "K": dtype.type, "x": x, "y": y}
    scope |= {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}
    with np.errstate(all="ignore"):
        for found, text in zip(f(x, y, device=side), texts, strict=True):
            expected = np.broadcast_to(np.asarray(eval(text, scope)), x.shape)
            assert_same(np.asarray(found), expected.astype(dtype))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "float32", "float64"])
def test_any_expressions(side, dtype):
    wraps = side == "cpu" or dtype not in SIGNED

    @settings(max_examples=40 if runs_all() else 2, database=None, derandomize=not runs_all())
    @given(st.lists(expressions(dtype[0] != "f", wraps), min_size=8, max_size=8))
    def examples(texts):
        check(side, dtype, texts)

    examples()


@pytest.mark.parametrize("types", [("int32", "uint32"), ("int64", "uint64"), ("int8", "float32")])
def test_nvrtc_takes_them(types):
    a, b = types
    text = "min(x, y) + max(y, x) + pow(x, 3) + pow(y, x) + pow(2.0, x) + pow(y, 0.5f) + abs(x)"
    op = element_wise._read(f"f(x: {a}[...], y: {b}[...]) -> {a}[...]", text, "")
    nvrtc(cuda_code(op, Variant(0, (a, b, a))))
