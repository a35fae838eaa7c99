# SPDX-License-Identifier: Apache-2.0
"""Functions of complex numbers: infinities, NaNs and signed zeros as in Annex G of C, and their
accuracy, on the CPU, where the C library computes them, and on the GPU."""

import os
from functools import partial

import cuplug
import numpy as np
import pytest
from backends import COMPLEX
from cuplug import array_api as xp
from cuplug._engine.signature.variant import Variant
from cuplug._source.expressions import element_wise
from cuplug._source.expressions.element_wise_loops import cuda_code
from expression_values import nvrtc

SIDES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
FUNCTIONS = {
    **{name: name for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}  # in C and in NumPy
ALL = cuplug.elementwise(
    f"all(x: T) -> ({', '.join(f'{name}_of: T' for name in FUNCTIONS)}) "
    "where T: complex64 | complex128",
    " ".join(f"{name}_of = {name}(x);" for name in FUNCTIONS),
)
OF_THE_STANDARD = ["expm1", "log1p", "log2", "log10", "sign", "tanh", "reciprocal", "square", "abs"]


def combined(parts, dtype):
    """Return the complex numbers with each of some real numbers for both parts."""
    z = np.empty((len(parts),) * 2, dtype)
    z.real, z.imag = np.reshape(parts, (-1, 1)), parts
    return z.ravel()


def special(dtype):
    limits = np.finfo(dtype)
    largest = [limits.max**0.5 * 1.1, limits.max / 8, limits.max]
    parts = [0, limits.smallest_subnormal, limits.tiny, 1e-3, 0.5, 1, np.pi / 2, 3, 25, 100, 750]
    parts = np.array([*parts, *largest, np.inf], limits.dtype)
    return combined([*parts, *-parts, np.nan], dtype)


def drawn(n, dtype):
    """Return usual numbers, wide ones, and others near 1, -1, i, -i and the unit circle."""
    random = np.random.default_rng(0)

    def near_zero():
        return random.normal(size=n) * 10.0 ** random.uniform(-15, -1, n)

    signs = random.choice([1, -1], (2, n))
    wide = signs * np.exp(random.uniform(-30, 4, (2, n)))
    one = signs[0] * (1 + near_zero()) + 1j * near_zero()
    circle = (1 + near_zero()) * np.exp(1j * random.uniform(-4, 4, n))
    normal = random.normal(size=n) + 1j * random.normal(size=n)
    return np.concatenate([normal, wide[0] + 1j * wide[1], one, 1j * one, circle]).astype(dtype)


def computed(f, side, *arrays):
    return f(*(cuplug.asarray(x, device=side) for x in arrays))


def assert_alike(found, wanted, z, what, eps=64, scale=None):
    """Compare parts: with signs, and those that are finite to some error relative to `scale`.

    Parts are compared separately, except powers: they are exp(y * log(x)), whose parts share the
    error of their angle.
    """
    limits = np.finfo(wanted.dtype)
    for part in ("real", "imag"):
        x, y = getattr(found, part), getattr(wanted, part)
        with np.errstate(all="ignore"):
            size = abs(y) if scale is None else scale
            near = abs(x - y) <= eps * limits.eps * size + 2 * limits.smallest_subnormal
        alike = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.isfinite(x) & near)
        alike &= np.isnan(y) | (np.signbit(x) == np.signbit(y))
        k = np.flatnonzero(~alike)[:5]
        values = zip(z[k], found[k], wanted[k], strict=True)
        shown = [f"{a}: got {b}, expected {c}" for a, b, c in values]
        assert not shown, f"{what}, {part}: {shown}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_special_values(dtype, side):
    z = special(dtype)
    for found, name in zip(computed(ALL, side, z), FUNCTIONS, strict=True):
        assert_alike(found.numpy(), getattr(np, FUNCTIONS[name])(z), z, name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_digits(dtype, side):
    """Compare each part separately; functions of real numbers add some units in the last place."""
    wider = np.promote_types(dtype, np.complex128) if dtype == "complex64" else np.clongdouble
    if np.finfo(wider).eps == np.finfo(dtype).eps:
        pytest.skip("needs long double")
    z = drawn(2000, dtype)
    for found, name in zip(computed(ALL, side, z), FUNCTIONS, strict=True):
        wanted = getattr(np, FUNCTIONS[name])(z.astype(wider)).astype(dtype)
        assert_alike(found.numpy(), wanted, z, name, eps=16)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_functions_of_the_standard(dtype, side):
    """Compare with NumPy for usual values. For others, the standard differs, or NumPy overflows."""
    z = special(dtype)
    usual = np.isfinite(z) & (abs(z) < 80) & (abs(z.real) + abs(z.imag) > 1e-4)
    for name in OF_THE_STANDARD:
        found = computed(getattr(xp, name), side, z).numpy()
        assert_alike(found, computed(getattr(xp, name), "cpu", z).numpy(), z, name)
        wanted = getattr(np, name)(z[usual])
        np.testing.assert_allclose(found[usual], wanted, 1e-4 if dtype == "complex64" else 1e-11)
    large = np.finfo(dtype).max * (1 + 1j)
    signs = [complex(np.inf, 1), complex(-2, -np.inf), large, 0, complex(np.nan, np.inf)]
    found = computed(xp.sign, side, np.array(signs, dtype)).numpy()
    np.testing.assert_allclose(found, [1, -1j, (1 + 1j) / 2**0.5, 0, 1j], 1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_powers(dtype, side):
    parts = [0, -0.0, 0.5, 1, -2.5, 1e3, np.inf, -np.inf, np.nan]
    x, y = (a.ravel() for a in np.meshgrid(*[combined(parts, dtype)] * 2))
    found = computed(xp.pow, side, x, y).numpy()
    own = computed(xp.pow, "cpu", x, y).numpy()
    exponent = y * np.log(x)
    for powers in (found, own):  # zeros at an angle that is NaN have any signs, as in C
        at = np.isnan(exponent.imag) & (powers == 0)
        powers[at] = 0
    near = ~(abs(exponent) > 80)  # beyond, the exponent's rounding shows
    assert_alike(found[near], own[near], x[near], "pow", scale=abs(own[near]), eps=200)
    known = (y == 0) | (x == 0)
    np.testing.assert_array_equal(found[known], np.power(x, y)[known])


@pytest.mark.sample(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_arithmetic_and_what_is_put_together(dtype, side):
    z = combined([0, -0.0, 1, -2.5, np.inf, -np.inf, np.nan], dtype)
    x, y = (a.ravel() for a in np.meshgrid(z, z))
    special = ~np.isfinite(x * y) | (x * y == 0)  # others are rounded, on the CPU after more digits
    for f in (xp.add, xp.subtract, xp.multiply, xp.divide):
        found, own = (computed(f, each, x, y).numpy()[special] for each in (side, "cpu"))
        assert_alike(found, own, x[special], f.__name__)
    rows = np.concatenate([np.stack([x, y], 1), np.ones((len(x), 3), dtype)], 1)
    for f in (xp.sum, xp.prod, xp.mean):
        along = partial(f, axis=1)
        found, own = (computed(along, each, rows).numpy() for each in (side, "cpu"))
        assert_alike(found, own, x, f.__name__)


EMULATED = f"""
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {os.path.dirname(__file__)!r})
from emulation import install_expressions
install_expressions()
import test_complex_functions as same
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "test",
    [
        test_special_values,
        test_digits,
        test_functions_of_the_standard,
        test_powers,
        test_arithmetic_and_what_is_put_together,
    ],
)
def test_the_code_for_gpus(run_emulated, test):
    run_emulated(f"{EMULATED}for dtype in {COMPLEX}: same.{test.__name__}(dtype, 'cuda')")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", COMPLEX)
def test_nvrtc_takes_the_code(dtype):
    """All functions compile, and code without complex numbers includes none of them."""
    powers = "pow(x, x) + pow(x, 2) + pow(0.5, x) + rsqrt(x)"
    text = " + ".join(f"{name}(x)" for name in FUNCTIONS) + f" + {powers}"
    op = element_wise._read(f"f(x: {dtype}[...]) -> {dtype}[...]", text, "")
    assert nvrtc(cuda_code(op, Variant(0, (dtype,) * 2)))
    made = element_wise._read("f(x: float32[...]) -> float32[...]", "abs(exp(complex(x, x)))", "")
    assert nvrtc(cuda_code(made, Variant(0, ("float32",) * 2)))
    plain = element_wise._read("f(x: float32[...]) -> float32[...]", "acos(x) + tanh(x)", "")
    code = cuda_code(plain, Variant(0, ("float32",) * 2))
    assert nvrtc(code)
    assert "complex_number" not in code
