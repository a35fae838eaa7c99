# SPDX-License-Identifier: Apache-2.0
"""Dtypes in expressions without C arithmetic, compared with NumPy and ml_dtypes."""

import os

import cuplug
import ml_dtypes
import numpy as np
import pytest
from backends import COMPLEX, FLOAT8, assert_same, dtype_of

NARROW = ["float16", "bfloat16", *FLOAT8]


@pytest.mark.sanitizer
@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_dtypes_are_rounded_once(backend, dtype):
    """Every value is read. float32 of all exponents is rounded as in NumPy and ml_dtypes."""
    kind = dtype_of(dtype)
    if not backend.supports(kind):
        pytest.skip(f"{backend.name} has no {dtype}")
    x = np.arange(256**kind.itemsize, dtype=f"u{kind.itemsize}").view(kind)
    wide = cuplug.elementwise("wide(x: T) -> float32", "x")
    assert_same(backend(wide, x), x.astype(np.float32))
    narrow = cuplug.elementwise(f"narrow(x: float32[...]) -> {dtype}[...]", "x")
    steps = (
        np.arange(2**17, dtype=np.uint32) << 15
    )  # with every pattern of 17 leading bits, and next
    bits = np.concatenate([steps, steps + 1, steps - 1, steps + 2**14])
    numbers = bits.view(np.float32)
    with np.errstate(all="ignore"):
        assert_same(backend(narrow, numbers), numbers.astype(kind))


COMPLEX_FUNCTIONS = ["exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "conj"]
REAL_PARTS = {"abs": np.abs, "arg": np.angle, "real": np.real, "imag": np.imag}


def complex_values(n, dtype, seed=0):
    random = np.random.default_rng(seed)
    return (random.normal(size=n) + 1j * random.normal(size=n)).astype(dtype)


@pytest.mark.sanitizer
@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_functions(backend, dtype):
    x = complex_values(1000, dtype)
    near = 300 * np.finfo(dtype).eps
    for name in COMPLEX_FUNCTIONS:
        f = cuplug.elementwise("f(x: T) -> T", f"{name}(x)")
        np.testing.assert_allclose(backend(f, x), getattr(np, name)(x), rtol=near)
    for name, function in REAL_PARTS.items():
        f = cuplug.elementwise(f"f(x: {dtype}[...]) -> {x.real.dtype}[...]", f"{name}(x)")
        np.testing.assert_allclose(backend(f, x), function(x), rtol=near, atol=near)
    made = cuplug.elementwise(f"made(re: T, im: T) -> {dtype}", "complex(re, im)")
    assert_same(backend(made, x.real.copy(), x.imag.copy()), x)
    power = cuplug.elementwise("power(x: T) -> T", "pow(x, 2)")
    np.testing.assert_allclose(backend(power, x), x * x, rtol=near)


@pytest.mark.sanitizer
@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_arithmetic(backend, dtype):
    x, y = complex_values(1003, dtype), complex_values(1003, dtype, 1)
    f = cuplug.elementwise("f(x: T, y: T, a: T) -> T", "a * x / (y + 2) - (x == y ? x : -y) + 1")
    expected = np.asarray(3j * x / (y + 2) + y + 1, x.dtype)
    np.testing.assert_allclose(
        backend(f, x, y, 3j), expected, rtol=1e-4 if dtype[7] == "6" else 1e-12
    )
    assert_same(backend(f, x, y, 3j), f(x, y, 3j))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_products_and_infinities(dtype):
    """Products do not handle infinities, and quotients do not overflow."""
    big = np.finfo(dtype).max / 2
    x = np.array([complex(np.inf, 0), complex(big, big), complex(1, np.nan)], dtype)
    product = cuplug.elementwise("product(x: T, y: T) -> T", "x * y")
    with np.errstate(all="ignore"):
        if os.environ.get("CC", "gcc").endswith("gcc"):
            found = product(x, x[::-1].copy())
            assert np.isnan([found.real, found.imag])[:, [0, 2]].all()
            assert found.imag[1] == np.inf  # the real part: inf - inf, or fused
        ratio = cuplug.elementwise("ratio(x: T, y: T) -> T", "x / y")
        assert_same(ratio(x[1:2], x[1:2]), np.ones(1, dtype))


def test_dtypes_are_mixed():
    f = cuplug.elementwise("f(x: S, y: T) -> complex64", "x * y + complex(0, 1)")
    x, y = np.array([1.5, 2], ml_dtypes.float8_e5m2), np.array([1 + 1j, 2], np.complex64)
    assert_same(f(x, y), np.array([1.5 + 2.5j, 4 + 1j], np.complex64))
    is_set = cuplug.elementwise("is_set(x: T) -> bool", "x")
    assert is_set(np.array([0, 1j])).tolist() == [False, True]
    assert is_set(np.array([0, 0.1, np.nan])).tolist() == [False, True, True]


MISSPELLED = {
    "flaot32": "float32",
    "Float32": "float32",
    "half": "float16",
    "double": "float64",
    "itn64": "int64",
    "bfloat61": "bfloat16",
    "complex68": "complex64",
    "f32": "float32",
    "boolean": "bool",
}


@pytest.mark.parametrize("name", MISSPELLED)
@pytest.mark.parametrize(
    "make",
    [
        lambda t: cuplug.elementwise(f"f(x: {t}) -> {t}", "x"),
        lambda t: cuplug.elementwise(f"f(x: float32) -> {t}", "x"),
        lambda t: cuplug.elementwise(f"f(x: {t}[...]) -> {t}[...]", "x"),
        lambda t: cuplug.elementwise(f"f(x: T[...], a: {t}) -> T[...]", "x"),
        lambda t: cuplug.elementwise(f"f(x: T, y: {t}) -> T where T: any", "x"),
        lambda t: cuplug.reduction(f"f(x: {t}) -> {t}", reduce="a + b"),
        lambda t: cuplug.reduction(f"f(x: {t}[...]) -> {t}[...]", reduce="a + b"),
        lambda t: cuplug.scan(f"f(x: {t}) -> {t}", reduce="a + b"),
        lambda t: cuplug.operator(
            f"f(x: {t}[n])", arguments="x", host="void f(const double *x) {}"
        ),
    ],
)
def test_a_misspelled_dtype_is_no_type_variable(make, name):
    with pytest.raises(cuplug.errors.SignatureError, match=f"did you mean {MISSPELLED[name]}"):
        make(name)


@pytest.mark.parametrize("name", ["T", "I", "T1", "U23"])
def test_type_variables_that_nothing_binds(name):
    f = cuplug.elementwise(f"f(x: {name}, y: {name}) -> {name}", "x + y")
    assert f(np.arange(3), 2).tolist() == [2, 3, 4]


@pytest.mark.parametrize("name", ["t", "Out", "element", "TT"])
def test_others_are_bound_by_where(name):
    with pytest.raises(cuplug.errors.SignatureError, match=f"'{name}' is neither a dtype nor"):
        cuplug.elementwise(f"f(x: {name}) -> {name}", "x")
    f = cuplug.elementwise(f"f(x: {name}) -> {name} where {name}: any", "x + 1")
    assert f(np.arange(3)).tolist() == [1, 2, 3]
