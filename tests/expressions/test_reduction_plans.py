# SPDX-License-Identifier: Apache-2.0
"""Reductions of all shapes for which GPUs have separate algorithms: rows and columns, few and many,
with any start and end, and elements of all widths."""

import itertools

import cuplug
import numpy as np
import pytest
from backends import assert_same
from cuplug import array_api as xp

TOTAL = cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0")
WIDE = cuplug.reduction("wide(x: T) -> int64", reduce="a + b", identity="0")
ARGMAX = cuplug.reduction("argmax(x: T) -> int64", choose="b > a", post="i")
MINMAX = cuplug.reduction(
    "minmax(x: T) -> (low: T, high: T)",
    reduce="low = min(a.low, b.low); high = max(a.high, b.high)",
)
DOT = cuplug.reduction("dot(x: T, y: T) -> T", map="x * y", reduce="a + b")
SHAPES = [(100_003,), (307, 1001), (40_001, 3), (30_000, 7), (9000, 64), (9001, 65), (3, 40_001),
          (4, 70_000), (7, 5001, 3), (70_000, 5), (2, 34), (260, 2, 130)]  # fmt: skip
DTYPES = ["float16", "float64", "int8", "bool", "uint16", "complex128"]
OF_EACH_DTYPE = [(307, 1001), (40_001, 3), (3, 40_001), (4, 70_000)]


def numbers(shape, dtype, seed=0):
    """Return whole numbers whose sums are exact, most of them 0."""
    random = np.random.default_rng(seed)
    x = random.integers(0, 2, shape) * (random.random(shape) < 0.02)
    return x.astype(dtype)


def views(x):
    """Return x, and parts of it with other layouts."""
    yield x
    yield x[1:] if x.ndim == 1 else x[1:, 1:]
    yield x[..., :-2]


def check_sums(backend, x):
    """Sum all parts of x along each axis; integers in 64 bits."""
    is_whole = x.dtype.kind in "biu"
    for v, moved in zip(views(x), views(backend.put(x)), strict=True):
        for axis in (None, *range(v.ndim)):
            got = (WIDE if is_whole else TOTAL)(moved, axis=axis, **backend.keywords)
            wide = v.sum(axis=axis, dtype={"c": "c16", "f": "f8"}.get(v.dtype.kind, "i8"))
            wanted = np.asarray(wide).astype("i8" if is_whole else v.dtype)
            assert_same(np.asarray(backend.take(got)), wanted)


@pytest.mark.sanitizer
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(backend, shape):
    check_sums(backend, numbers(shape, "float32"))


@pytest.mark.sample(6)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", OF_EACH_DTYPE, ids=str)
def test_dtypes(backend, shape, dtype):
    x = numbers(shape, dtype)
    if not backend.supports(x.dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    check_sums(backend, x)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_choices_and_several_outputs(backend, shape):
    x = np.random.default_rng(1).integers(-100, 100, shape).astype("float32")
    for v, moved in zip(views(x), views(backend.put(x)), strict=True):
        for axis in (None, *range(v.ndim)):
            got = backend.take(ARGMAX(moved, axis=axis, **backend.keywords))
            assert_same(np.asarray(got), np.asarray(v.argmax(axis)))
            found = MINMAX(moved, axis=axis, **backend.keywords)
            assert_same(np.asarray(backend.take(found.low)), np.asarray(v.min(axis)))
            assert_same(np.asarray(backend.take(found.high)), np.asarray(v.max(axis)))


@pytest.mark.sanitizer
def test_arrays_that_begin_at_different_places(backend):
    x, y = numbers(30_011, "float32"), numbers(30_011, "float32", 1)
    moved_x, moved_y = backend.put(x), backend.put(y)
    for a, b in itertools.product(range(4), repeat=2):
        n = 30_000
        got = DOT(moved_x[a : a + n], moved_y[b : b + n], **backend.keywords)
        assert float(backend.take(got)) == float((x[a : a + n] * y[b : b + n]).sum())
    rows = numbers((100, 301), "float32")
    got = DOT(backend.put(rows), moved_y[1:302], axis=1, **backend.keywords)
    assert_same(np.asarray(backend.take(got)), (rows * y[1:302]).sum(axis=1))
    got = DOT(backend.put(rows), moved_y[1:302], axis=0, **backend.keywords)
    assert_same(np.asarray(backend.take(got)), (rows * y[1:302]).sum(axis=0))


EMULATED = """
import re
import numpy as np
import cuplug
from emulation import install_expressions, seen

install_expressions()
random = np.random.default_rng(0)
total = cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0")
first = cuplug.reduction("first(x: T) -> int64", choose="b > a", post="i")
wide = cuplug.reduction("wide(x: T) -> int64", reduce="a + b", identity="0")


dot = cuplug.reduction("dot(x: T, y: T) -> T", map="x * y", reduce="a + b")


def check(shape, axis, begin, dtype="float32", operators=(total,), value=None, end=None):
    x = random.integers(-3, 3, shape) if value is None else np.full(shape, value)
    x = x.astype(dtype)
    v, moved = x[..., begin:end], cuplug.asarray(x, device="cuda")[..., begin:end]
    for operator in operators:
        wanted = v.argmax(axis) if operator is first else v.sum(axis, dtype="i8")
        np.testing.assert_array_equal(operator(moved, axis=axis).numpy(), wanted)

"""
QUICK = """
check((20_003,), None, 1)
check((40_000, 17), None, 0)  # as many parts as there are blocks at once
check((9000, 68), 0, 0)  # more parts than threads of the second kernel
check((9001, 3), 0, 0)
check((100, 360), 0, 0)
check((2, 66_001), 0, 0)
for name in ("COLUMNS", "ALONE", "FLAT", "FEW", "STORES_PACKS"):  # each way is taken
    ways = {re.search(rf"constexpr bool {name} = (\\w+)", code)[1] for code in seen}
    assert ways == {"true", "false"}, name
"""
LONG = """
for case in [((20_003,), None, 1), ((40, 501), 1, 0), ((9001, 3), 0, 0), ((2, 4001, 6), 1, 0),
             ((3, 40_000), 0, 0), ((70_000, 3), 1, 0), ((3, 66_000), 0, 1), ((100, 360), 0, 0)]:
    for dtype in ("int8", "bool", "float32"):
        check(*case, dtype, (wide, first))
"""
SMALL = """
for dtype, value in [("int8", -128), ("bool", 1), ("uint16", 65535)]:
    for case in [((700, 360), 0, 0), ((9001, 3), 0, 1), ((20_003,), None, 1), ((70, 1000), 1, 0),
                 ((70_000, 5), 1, 0), ((5, 66_000), 0, 0), ((700, 361), 0, 0), ((90, 371), 1, 1)]:
        check(*case, dtype, (wide,), value)
"""
EDGES = """
for dtype, n in [("float32", 70), ("int8", 270), ("int8", 1100)]:
    for begin in range(17):
        check((9, n), 1, begin, dtype, (wide, first))
        check((9 * n,), None, begin, dtype, (wide, first))
"""
FIXED = """
x = random.integers(-3, 3, (6, 40, 52)).astype("float32")
for shape in [(), (52,), (40, 1), (6, 1, 52)]:
    y = random.integers(-3, 3, shape).astype("float32")
    for axis in (None, 0, 2, (0, 2)):
        for begin in (0, 1):
            v, w = x[..., begin:], y[..., begin:] if shape[-1:] == (52,) else y
            got = dot(*(cuplug.asarray(z, device="cuda") for z in (v, w)), axis=axis)
            np.testing.assert_array_equal(got.numpy(), (v * w).sum(axis))
assert {re.search(r"FIXED = (\\d+)", code)[1] for code in seen} >= {"0", "2"}
"""
COLUMNS = """
for dtype, operators in [("float32", (total, first)), ("int8", (wide, first))]:
    for end in (16, 32, 68, 608):  # by so many threads side by side: the others share them
        for n in (9, 257, 3001):  # fewer threads than there are have elements; or all
            check((n, 640), 0, 0, dtype, operators, end=end)
check((3001, 33), 0, 0, "float32", (total, first), end=1)
"""
PROGRAMMATIC = """
import os
check((40_000, 17), None, 0)
lines = open(os.environ["FAKE_CUDA_LOG"]).read().splitlines()
kernels = [line for line in lines if line.startswith("cuLaunchKernelEx")]
assert (lines.count("programmatic"), len(kernels)) == (%d, 2), lines
"""
MANY_ROWS = 'check((4300, 512), 1, 0, "float64")'  # which fewer threads share


@pytest.mark.slow
@pytest.mark.parametrize(
    "checks",
    [QUICK, SMALL, EDGES, FIXED, COLUMNS, MANY_ROWS, pytest.param(LONG, marks=pytest.mark.slow)],
    ids=["quick", "small", "edges", "fixed", "columns", "many_rows", "long"],
)
def test_ways_on_the_emulated_gpu(run_emulated, checks):
    run_emulated(EMULATED + checks)


@pytest.mark.parametrize(("driver", "n"), [("12020", 0), ("12030", 2)])
def test_kernels_may_begin_while_the_one_ahead_runs(run_emulated, tmp_path, driver, n):
    """Such launches are tested if graphs support them."""
    log = str(tmp_path / "log")
    text = EMULATED + PROGRAMMATIC % n
    run_emulated(text, FAKE_CUDA_LOG=log, FAKE_CUDA_DRIVER_VERSION=driver)


VARIANCE = """
import numpy as np
import cuplug.array_api as xp

random = np.random.default_rng(0)
for dtype, near in (("float32", 2e-7), ("float64", 1e-10)):
    for shape, middle in (((40, 301), 1e6), ((3000, 4), 0)):
        x = (random.normal(size=shape) + middle).astype(dtype)
        moved = xp.asarray(x, device="cuda")
        for axis in (None, 0, 1):
            wanted = x.astype("f8").var(axis=axis, ddof=1, keepdims=True)
            got = xp.var(moved, axis=axis, correction=1.0, keepdims=True).numpy()
            np.testing.assert_allclose(got, wanted, rtol=near)
            got = xp.std(moved, axis=axis).numpy()
            np.testing.assert_allclose(got, x.astype("f8").std(axis=axis), rtol=near)
x[0, 0] = np.nan
assert np.isnan(xp.var(xp.asarray(x, device="cuda")).numpy())
assert xp.var(xp.asarray(np.ones((5, 7)), device="cuda")).numpy() == 0
"""


@pytest.mark.gpu
def test_variance_in_one_pass():
    exec(VARIANCE, {})


@pytest.mark.slow
def test_variance_on_the_emulated_gpu(run_emulated):
    run_emulated(f"from emulation import install_expressions\ninstall_expressions()\n{VARIANCE}")


@pytest.mark.sample(8)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("n", [1, 7, 31, 33, 1000, 9000, 20000, 140000])
def test_the_bits_of_a_row_depend_on_no_other(n, dtype):
    many = np.random.default_rng(n).normal(size=(70, n)).astype(dtype)
    for function in (xp.sum, xp.mean, xp.prod, xp.var, xp.max):
        wanted = np.asarray(function(cuplug.asarray(many, device="cpu"), axis=-1))
        for rows in (slice(0, 1), slice(69, 70), slice(5, 12), slice(1, 40)):
            found = np.asarray(function(cuplug.asarray(many[rows], device="cpu"), axis=-1))
            np.testing.assert_array_equal(found.view("u1"), wanted[rows].view("u1"))
