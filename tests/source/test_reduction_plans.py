# SPDX-License-Identifier: Apache-2.0
"""Reductions of all shapes that GPUs go about in ways of their own: rows and columns, few and many,
that begin and end anywhere, and elements of all widths."""

import itertools

import cuplug
import numpy as np
import pytest
from backends import assert_same

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
OF_EACH_DTYPE = [(307, 1001), (40_001, 3), (3, 40_001)]


def numbers(shape, dtype, seed=0):
    """Whole numbers whose sums are exact, most of them 0."""
    random = np.random.default_rng(seed)
    x = random.integers(0, 2, shape) * (random.random(shape) < 0.02)
    return x.astype(dtype)


def views(x):
    """Return it, and parts of it that lie otherwise."""
    yield x
    yield x[1:] if x.ndim == 1 else x[1:, 1:]
    yield x[..., :-2]


def check_sums(backend, x):
    """Sum all parts of it along each axis; integers in 64 bits."""
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


def check(shape, axis, begin, dtype="float32", operators=(total,)):
    x = random.integers(-3, 3, shape).astype(dtype)
    v, moved = x[..., begin:], cuplug.asarray(x, device="cuda")[..., begin:]
    for operator in operators:
        wanted = v.argmax(axis) if operator is first else v.sum(axis, dtype="i8")
        np.testing.assert_array_equal(operator(moved, axis=axis).numpy(), wanted)

"""
QUICK = """
check((20_003,), None, 1)
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


@pytest.mark.parametrize(
    "checks", [QUICK, pytest.param(LONG, marks=pytest.mark.slow)], ids=["quick", "long"]
)
def test_ways_on_the_emulated_gpu(run_emulated, checks):
    run_emulated(EMULATED + checks)
