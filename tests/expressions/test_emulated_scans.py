# SPDX-License-Identifier: Apache-2.0
"""Scans on the emulated GPU: of more tiles than are polled at once, of lines that end anywhere in
them, and of strips of any width."""

import textwrap

import pytest

pytestmark = pytest.mark.slow

PRELUDE = """
import numpy as np
import cuplug
from emulation import install_expressions

install_expressions()
random = np.random.default_rng(0)
sums = cuplug.scan("sums(x: T) -> T", reduce="a + b")
before = cuplug.scan("before(x: T) -> T", reduce="a + b", identity="0", exclusive=True)
linear = cuplug.scan("linear(m: T, c: T) -> T", accumulate="factor: T, term: T",
                     map="factor = m; term = c", post="a.term", reduce="factor = a.factor * "
                     "b.factor; term = b.factor * a.term + b.term")
counts = cuplug.scan("counts(x: T) -> (m: int64, last: int64)", accumulate="sum: T, last: int64",
                     map="sum = x; last = i", post="m = n; last = a.last",
                     reduce="sum = a.sum + b.sum; last = b.last")


def check(x, axis, moved=None):
    "Sums alone, as x is, or as `moved` lies on the GPU."
    moved = cuplug.asarray(x, device="cuda") if moved is None else moved
    wanted = np.cumsum(x, axis, dtype=x.dtype)
    np.testing.assert_array_equal(sums(moved, axis=axis).numpy(), wanted)
    np.testing.assert_array_equal(before(moved, axis=axis).numpy(), wanted - x)


def values(shape, dtype="float32"):
    return random.integers(-2, 3, shape).astype(dtype)


"""


@pytest.fixture
def run(run_emulated):
    """Return a function that runs Python text with scans for the emulated GPU."""
    return lambda body: run_emulated(PRELUDE + textwrap.dedent(body))


def test_rows(run):
    """Rows of each width: complete tiles, and lines that begin inside tiles."""
    run("""
    for shape in ((8192 * 8,), (8192 * 17 + 1,), (3, 60_001), (11, 8192), (700, 31), (2, 21)):
        check(values(shape), len(shape) - 1)
    for dtype in ("int8", "float64", "complex128"):
        for shape in ((40_001,), (5, 9_003)):
            check(values(shape, dtype), len(shape) - 1)
    x = values((40, 3000))
    there = cuplug.asarray(x, device="cuda")
    for part in np.s_[:, ::2], np.s_[::-1, ::-1], np.s_[1:, 1:]:
        check(x[part], 1, there[part])
    """)


def test_strips_of_one_block(run):
    """Strips of 32 lines and more than one tile, of which the last one is incomplete."""
    run("""
    for shape, axis in (((900, 4203), 0), ((2, 200, 2100), 1)):
        check(values(shape), axis)
        check(values(shape, "complex128"), axis)
    x = cuplug.asarray(values((140, 9000)), device="cuda")
    check(x[:, 1::2].numpy(), 0, x[:, 1::2])
    m, c = random.integers(1, 3, (150, 4100)), random.integers(-2, 3, (150, 4100))
    np.testing.assert_array_equal(linear(m, c, axis=0, device="cuda"), linear(m, c, axis=0))
    """)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 17, 33, 600])
def test_columns(run, n):
    """Strips of 1 to 8 columns, of which the last one is incomplete."""
    run(f"""
    for shape, axis in (((60_000 // max({n}, 6), {n}), 0), ((2, 1500, {n}), 1)):
        check(values(shape), axis)
    for dtype in ("int16", "complex64"):
        check(values((3001, {n}), dtype), 0)
    x = values((2000, {n} + 4))
    there = cuplug.asarray(x, device="cuda")
    check(x[1::3, 2:-2], 0, there[1::3, 2:-2])
    """)


def test_order_and_numbers_of_elements(run):
    run("""
    for shape in ((90_000,), (20_000, 4), (2, 30_000), (900, 40)):
        m, c = random.integers(1, 3, shape), random.integers(-2, 3, shape)
        for axis in range(len(shape)):
            got = linear(m, c, axis=axis, device="cuda")
            np.testing.assert_array_equal(got, linear(m, c, axis=axis))
            n, last = counts(c.astype("float32"), axis=axis, device="cuda")
            place = np.arange(shape[axis]).reshape(-1, *[1] * (len(shape) - 1 - axis))
            np.testing.assert_array_equal(last, np.broadcast_to(place, shape))
            np.testing.assert_array_equal(n, np.broadcast_to(place + 1, shape))
    """)


@pytest.mark.parametrize("n_fields", [3, 5, 11])
def test_large_values(run, n_fields):
    """Values of more words, and tiles of fewer elements."""
    run(f"""
    fields = [f"f{{k}}" for k in range({n_fields})]
    many = cuplug.scan(
        "many(x: T) -> T", accumulate=", ".join(f"{{f}}: float64" for f in fields),
        map="; ".join(f"{{f}} = x" for f in fields), post="a.f0 + a." + fields[-1],
        reduce="; ".join(f"{{f}} = a.{{f}} + b.{{f}}" for f in fields))
    for shape, axis in (((30_001,), 0), ((3_001, 5), 0), ((3, 5_000), 1), ((1_500, 20), 0)):
        x = values(shape, "float64")
        got = many(x, axis=axis, device="cuda")
        np.testing.assert_array_equal(got, 2 * np.cumsum(x, axis))
    """)


@pytest.mark.parametrize("n_blocks", [1, 7])
def test_windows(run, n_blocks):
    """Lines of more tiles than are polled at once, and lines that begin among these."""
    run(f"""
    install_expressions(n_blocks={n_blocks})
    fields = [f"f{{k}}" for k in range(5)]
    many = cuplug.scan(
        "many(x: T) -> T", accumulate=", ".join(f"{{f}}: float64" for f in fields),
        map="; ".join(f"{{f}} = x" for f in fields), post="a.f0 + a.f4",
        reduce="; ".join(f"{{f}} = a.{{f}} + b.{{f}}" for f in fields))
    shapes = ((400_003,), 0), ((2, 200_001), 1), ((33_001, 5), 0), ((30_001, 4), 0)
    for shape, axis in (*shapes, ((9_001, 16), 0)):
        x = values(shape, "float64")
        np.testing.assert_array_equal(many(x, axis=axis, device="cuda"), 2 * np.cumsum(x, axis))
    """)


def test_blocks_at_once(run):
    """Blocks wait for each other, and results have the same bits in any order."""
    run("""
    install_expressions(n_blocks=7)
    for shape, axis in (((200_000,), 0), ((3, 30_001), 1), ((20_000, 4), 0), ((3000, 100), 0)):
        check(values(shape), axis)
        x = cuplug.asarray(random.random(shape).astype("float32"), device="cuda")
        assert len({sums(x, axis=axis).numpy().tobytes() for _ in range(4)}) == 1
    """)
