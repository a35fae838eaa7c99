# SPDX-License-Identifier: Apache-2.0
"""Functions in expressions on the CPU: their accuracy, and the same bits for an element at any
position."""

import math
import platform
import shutil
from pathlib import Path

import cuplug
import numpy as np
import pytest
from cuplug._integration.author import elf
from cuplug._source.compilers import cache
from hypothesis import given
from hypothesis import strategies as st

ULPS, EXACT_ULPS = 4, 1
EXACT = ("exp", "sin", "cos", "tan")  # of float64
# NumPy's name for each function of C; those that NumPy lacks are computed one by one.
FUNCTIONS = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "expm1", "log", "log2", "log10")},
    **{name: getattr(np, name) for name in ("log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asinh", "acosh", "atanh")},
    **{"cbrt": np.cbrt, "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc)},
}
NAMES = list(FUNCTIONS)
CPU = Path("/proc/cpuinfo").read_text()
MANY = "(x: T) -> ({}) where T: float32 | float64"


def every(names) -> cuplug.Operator:
    """Return an operator with an output for each function."""
    outputs = ", ".join(f"of_{name}: T" for name in names)
    text = "; ".join(f"of_{name} = {name}(x)" for name in names)
    return cuplug.elementwise(f"every{MANY.format(outputs)}", text)


def points(dtype, n=1500):
    """Return numbers of all sizes, and numbers at which functions change their algorithm."""
    info, random = np.finfo(dtype), np.random.default_rng(5)
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    patterns = random.integers(0, np.iinfo(bits).max, n, bits, endpoint=True).view(dtype)
    patterns[np.isnan(patterns)] = np.nan  # signalling ones raise warnings
    drawn = [random.uniform(-r, r, n) for r in (1e-3, 1, 10, 100, 2e4)]
    special = [0.0, np.inf, np.nan, info.tiny, info.smallest_subnormal, info.max, 1, np.pi, 1e22]
    edges = [88.7, 89, 103.9, 709.7, 710, 745.1, 0.5, 2, 3.653402, 0.88314867]
    both = np.array([*special, *edges], dtype)
    return np.concatenate([both, -both, patterns, *(x.astype(dtype) for x in drawn)])


def assert_near(found, exact, dtype, name):
    """Compare with values of a wider dtype, within some units; special values must be equal."""
    with np.errstate(all="ignore"):
        wanted = exact.astype(dtype)
        spacing = np.spacing(np.abs(np.where(np.isfinite(wanted), wanted, 1)))
        is_finite = np.isfinite(wanted) & np.isfinite(found)
        error = np.abs(np.where(is_finite, found - exact, 0)) / spacing
    ulps = EXACT_ULPS if name in EXACT and dtype == "float64" else ULPS
    assert error.max() <= ulps, (name, dtype, error.max())
    np.testing.assert_array_equal(found[~is_finite], wanted[~is_finite], name)
    is_zero = (wanted == 0) & (found == 0)
    assert (np.signbit(found) == np.signbit(wanted))[is_zero].all(), name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_are_exact_to_a_few_units(dtype):
    x = points(dtype)
    wide = x.astype("float64" if dtype == "float32" else np.longdouble)
    for name, found in zip(NAMES, every(NAMES)(x), strict=True):
        with np.errstate(all="ignore"):
            assert_near(found, FUNCTIONS[name](wide), dtype, name)


@given(st.lists(st.floats(width=64), min_size=1, max_size=70))
def test_functions_of_any_float64_are_exact_to_one_unit(numbers):
    x = np.array(numbers)
    for name, found in zip(EXACT, every(EXACT)(x), strict=True):
        with np.errstate(all="ignore"):
            assert_near(found, FUNCTIONS[name](x.astype(np.longdouble)), "float64", name)


def test_functions_of_float64_near_their_zeros_and_steps():
    """Numbers for which pi needs many digits, exp is subnormal, cos is 1, or tan is least exact."""
    turns = np.arange(1, 200_000) * (np.pi / 2)
    near = [np.nextafter(turns, end) for end in (-np.inf, turns, np.inf)]
    far = [turns[:99] * 2.0**k for k in (12, 13, 14, 300, 900)]  # about 2**30, and beyond
    small = np.random.default_rng(6).uniform(-1, 1, 20_000) * 2.0 ** np.repeat(range(-50, 0), 400)
    ranges = [np.linspace(-746, -707, 20_000), np.linspace(0.7, 0.9, 100_000)]
    x = np.concatenate([*near, *far, small, *ranges])
    for name, found in zip(EXACT, every(EXACT)(x), strict=True):
        with np.errstate(all="ignore"):
            assert_near(found, FUNCTIONS[name](x.astype(np.longdouble)), "float64", name)
    assert cuplug.elementwise("of_cos(x: float64) -> float64", "cos(x)")(np.array([1e-9])) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_two(dtype):
    wide = "float64" if dtype == "float32" else np.longdouble
    for name, reference in (("pow", np.power), ("atan2", np.arctan2), ("hypot", np.hypot)):
        x = points(dtype)
        y = np.random.default_rng(7).permutation(x)
        with np.errstate(all="ignore"):
            exact = reference(x.astype(wide), y.astype(wide))
        of = cuplug.elementwise(f"{name}_of(x: T, y: T) -> T", f"{name}(x, y)")
        assert_near(of(x, y), exact, dtype, name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_whose_logarithm_has_to_be_exact(dtype):
    """Results of all sizes, of numbers near 1 and far from it."""
    random, wide = np.random.default_rng(8), "float64" if dtype == "float32" else np.longdouble
    distances = [10.0**-k for k in range(16)]
    near = [1 + random.uniform(-r, r, 4000) for r in distances]
    x = np.concatenate([*near, np.exp2(random.uniform(-120, 120, 20_000))]).astype(dtype)
    with np.errstate(all="ignore"):
        reach = np.finfo(dtype).maxexp + 30
        y = (random.uniform(-reach, reach, x.size) / np.log2(x.astype(wide))).astype(dtype)
        exact = np.power(x.astype(wide), y.astype(wide))
    of = cuplug.elementwise("pow_of(x: T, y: T) -> T", "pow(x, y)")
    assert_near(of(x, y), exact, dtype, "pow")


@pytest.mark.skipif("avx512dq" not in CPU, reason="glibc's vectors are exact to some units")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_of_whole_numbers_are_exact(dtype):
    x, y = (each.ravel() for each in np.meshgrid(np.arange(1, 1001), np.arange(17)))
    is_exact = y * np.log2(x) < np.finfo(dtype).nmant
    x, y = x[is_exact], y[is_exact]
    of = cuplug.elementwise("pow_of(x: T, y: T) -> T", "pow(x, y)")
    np.testing.assert_array_equal(of(x.astype(dtype), y.astype(dtype)), x**y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", ["3", "4", "(T)3", "(T)4", "2", "-1"])
def test_powers_by_constants(dtype, exponent):
    x = points(dtype)
    of = cuplug.elementwise("power(x: T) -> T", f"pow(x, {exponent})")
    with np.errstate(all="ignore"):
        exact = np.power(
            x.astype("float64" if dtype == "float32" else np.longdouble),
            int(exponent.removeprefix("(T)")),
        )
        assert_near(of(x), exact, dtype, f"pow(x, {exponent})")


GELU = cuplug.elementwise("gelu(x: T) -> T", "(T)0.5 * x * (1 + erf(x * (T)0.7071067811865476))")
POWERS = cuplug.elementwise("powers(x: T) -> T", "pow(x, (T)1.7) + pow(x, x)")
MIXED = cuplug.elementwise("mixed(x: T) -> T", "x > 0 ? tanh(x) * exp(-x * x) + sin(x) : pow(2, x)")


def bits(x):
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("of", [GELU, MIXED, POWERS], ids=lambda op: op.name)
def test_an_element_has_the_same_bits_wherever_it_lies(of, dtype):
    x = np.random.default_rng(0).normal(0, 3, 3000).astype(dtype)
    whole = bits(of(x))
    for begin, n in ((0, 1), (1, 63), (3, 64), (5, 65), (2999, 1), (7, 1000), (64, 129)):
        assert (bits(of(x[begin : begin + n])) == whole[begin : begin + n]).all()
    assert (bits(of(x[::-3])) == whole[::-3]).all()
    table = x.reshape(60, 50)
    assert (bits(of(table.T)) == whole.reshape(60, 50).T).all()
    assert (bits(of(table[:, 3:40])) == whole.reshape(60, 50)[:, 3:40]).all()
    assert (bits(of(np.broadcast_to(x[9:10], (7, 33)))) == whole[9]).all()
    out = np.zeros((50, 120), dtype)[:, ::2].T
    of(table, out=out)
    assert (bits(out) == whole.reshape(60, 50)).all()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_bits_do_not_depend_on_threads_or_sizes(run_python, dtype):
    """Nor on whether a result bypasses the caches, as one of 32 MiB does."""
    done = run_python(
        f"""
import numpy as np, cuplug
x = np.random.default_rng(0).normal(0, 3, 4099).astype("{dtype}")
f = cuplug.elementwise("f(x: T) -> T", "tanh(x) * exp(-x * x) + sin(x)")
of_one, n = f(x).view("u1"), (36 << 20) // x.nbytes
tiled = np.tile(x, n)
assert (f(tiled)[1:].tobytes() == np.tile(of_one.view(x.dtype), n)[1:].tobytes())
assert (f(tiled[1:]).tobytes() == np.tile(of_one.view(x.dtype), n)[1:].tobytes())
""",
        env={"OMP_NUM_THREADS": "3"},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_products_have_the_same_bits_wherever_they_lie(dtype):
    random = np.random.default_rng(1)
    x, y = (random.normal(size=301) + 1j * random.normal(size=301) for _ in range(2))
    x, y = x.astype(dtype), y.astype(dtype)
    f = cuplug.elementwise("f(x: T, y: T) -> T", "x * y / (x - y)")
    whole = f(x, y)
    for k in (0, 63, 64, 299, 300):
        assert f(x[k:], y[k:])[0] == whole[k]


def test_what_fills_a_group_up_is_like_the_last_element():
    """Nothing is computed from absent values, such as a division by them."""
    share = cuplug.elementwise(
        "share(x: int64, n_left: int64) -> float64", "exp(0.0) * (x / n_left)"
    )
    x = np.arange(1, 71)
    assert (share(x, x) == 1).all()
    counted = cuplug.elementwise("counted(x: T) -> T", "exp(x) * (T)(1 / (n - i))")
    assert (counted(np.zeros(70)) == (np.arange(70) == 69)).all()


def test_functions_of_halves_are_those_of_float32():
    x = np.arange(1 << 16, dtype=np.uint16).view("float16")
    with np.errstate(all="ignore"):
        wanted = MIXED(x.astype("float32")).astype("float16")
    found = MIXED(x)
    is_nan = np.isnan(wanted)
    assert (np.isnan(found) == is_nan).all()
    assert (bits(found) == bits(wanted))[~is_nan].all()


WITHOUT = ["-mno-avx512f", "-mno-avx2 -mno-avx512f -mno-f16c", "-mno-avx -mno-avx512f"]


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["clang", *(f"gcc {flags}" for flags in WITHOUT)])
def test_with_other_compilers_and_processors(run_python, compiler, tmp_path):
    if not shutil.which(compiler.split()[0]) or platform.machine() != "x86_64":
        pytest.skip(f"needs {compiler.split()[0]} on x86-64")
    done = run_python(
        f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_vector_functions as test
for dtype in ("float32", "float64"):
    test.test_functions_are_exact_to_a_few_units(dtype)
    test.test_functions_of_two(dtype)
    test.test_powers_whose_logarithm_has_to_be_exact(dtype)
test.test_functions_of_float64_near_their_zeros_and_steps()
for of in (test.GELU, test.MIXED, test.POWERS):
    test.test_an_element_has_the_same_bits_wherever_it_lies(of, "float32")
test.test_functions_of_halves_are_those_of_float32()
""",
        env={"CC": compiler, "CUPLUG_CACHE_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr


def test_glibc_has_the_functions_for_vectors(monkeypatch, tmp_path):
    version = platform.libc_ver()
    if platform.machine() != "x86_64" or version[0] != "glibc" or version[1] < "2.35":
        pytest.skip("needs glibc 2.35 on x86-64")
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    monkeypatch.setenv("CUPLUG_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CC", "gcc")
    cuplug.elementwise("unseen(x: T) -> T", "x > 0 ? tanh(x) : erf(x) - 41")(np.ones(3))
    (entry,) = [each for each in cache.entries() if each.kind == "so"]
    needed = elf.read_library(entry.path).needed
    assert "libmvec.so.1" in needed


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_functions_of_real_numbers_take_no_complex_ones(dtype):
    for name in ("erf", "erfc"):
        with pytest.raises(cuplug.CompileError, match=f"{name}_of: .*\n.*{name}"):
            cuplug.elementwise(f"{name}_of(x: T) -> T", f"{name}(x)")(np.ones(3, dtype))
