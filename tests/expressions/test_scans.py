# SPDX-License-Identifier: Apache-2.0
"""Scans from expressions, compared with NumPy."""

import pickle

import cuplug
import numpy as np
import pytest
from backends import assert_same
from expression_values import values

SUMS = cuplug.scan("sums(x: T) -> T", reduce="a + b")
BEFORE = cuplug.scan("before(x: T) -> T", reduce="a + b", identity="0", exclusive=True)
MEANS = cuplug.scan("means(x: T[...]) -> float64[...]", reduce="a + b", post="a / n")
# Does not commute: x_i = m_i * x_(i-1) + c_i
LINEAR = cuplug.scan(
    "linear(m: T, c: T) -> T",
    accumulate="factor: T, term: T",
    map="factor = m; term = c",
    reduce="factor = a.factor * b.factor; term = b.factor * a.term + b.term",
    post="a.term",
)
HIGHEST = cuplug.scan(
    "highest(x: T) -> (value: T, index: int64)",
    accumulate="value: T, index: int64",
    map="value = x; index = i",
    reduce="b.value > a.value ? b : a",
)
SHAPES = [(1,), (5,), (3, 4), (0, 3), (3, 0), (4, 30, 8), (70_001,), (3, 70_000), (70_000, 3),
          (300, 1500), (2500, 130), (2, 3, 1100), (90, 3, 40), (5000, 4), (3, 700, 39)]  # fmt: skip


@pytest.mark.sanitizer
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_axes(backend, shape):
    x = values(shape, "int32")
    for v in (x, x.T, x[::-1, ..., ::2] if x.ndim > 1 else x[::-2]):
        for axis in range(-v.ndim, v.ndim):
            sums = np.cumsum(v, axis, dtype="int32")
            got = backend.take(SUMS(backend.put(v), axis=axis, **backend.keywords))
            assert_same(np.asarray(got), sums)
            got = backend.take(BEFORE(backend.put(v), axis=axis, **backend.keywords))
            assert_same(np.asarray(got), sums - v)


@pytest.mark.sanitizer
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "float16", "complex64", "bool"])
def test_dtypes(backend, dtype):
    x = (values((30, 500), "float64") % 2).astype(dtype)
    if not backend.supports(x.dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    for axis in (0, 1):
        got = backend.take(SUMS(backend.put(x), axis=axis, **backend.keywords))
        assert_same(np.asarray(got), np.cumsum(x, axis).astype(dtype))


@pytest.mark.sanitizer
@pytest.mark.parametrize("shape", [(50,), (3, 40_000), (40_000, 3), (2500, 30)], ids=str)
def test_order(backend, shape):
    """Combinations need not commute; element numbers count along the axis."""
    m, c = values(shape, "int64") % 3 + 1, values(shape, "int64", 1)
    x = values(shape, "float32")
    for axis in range(len(shape)):
        got = backend.take(LINEAR(backend.put(m), backend.put(c), axis=axis, **backend.keywords))
        moved = np.moveaxis(np.stack([m, c]), axis + 1, 1)
        wanted, last = np.empty_like(moved[0]), 0
        with np.errstate(over="ignore"):
            for k in range(moved.shape[1]):
                wanted[k] = last = moved[0, k] * last + moved[1, k]
        assert_same(np.moveaxis(np.asarray(got), axis, 0), wanted)
        found = HIGHEST(backend.put(x), axis=axis, **backend.keywords)
        value = np.maximum.accumulate(x, axis)
        assert_same(np.asarray(backend.take(found.value)), value)
        index = np.asarray(backend.take(found.index))
        assert_same(np.take_along_axis(x, index, axis), value)
        assert (np.diff(index, axis=axis) >= 0).all()


@pytest.mark.sanitizer
@pytest.mark.parametrize("shape", [(7, 90), (2, 70_000), (70_000, 5), (15, 3, 40)], ids=str)
def test_the_number_of_elements(backend, shape):
    x = values(shape, "float32")
    for axis in range(x.ndim):
        n = np.arange(1, x.shape[axis] + 1).reshape(-1, *[1] * (x.ndim - 1 - axis))
        got = backend.take(MEANS(backend.put(x), axis=axis, **backend.keywords))
        assert_same(np.asarray(got), np.cumsum(x, axis, dtype="f8") / n)


@pytest.mark.sanitizer
@pytest.mark.parametrize("shape", [(50, 40), (40_000, 2), (2000, 5)], ids=str)
def test_what_stands_still(backend, shape):
    shifted = cuplug.scan("shifted(x: T, y: T) -> T", map="x + y", reduce="a + b")
    x = values(shape, "int32")
    for y in (x[:1], x[:, :1], x[:1, :1]):
        for axis in (0, 1):
            got = backend.take(
                shifted(backend.put(x), backend.put(y), axis=axis, **backend.keywords)
            )
            assert_same(np.asarray(got), np.cumsum(x + y, axis, dtype="int32"))


def test_the_same_bits_for_any_number_of_threads(run_python):
    program = """
import cuplug, hashlib, numpy as np
sums = cuplug.scan("sums(x: T) -> T", reduce="a + b")
x = np.random.default_rng(0).random((3, 200_000), np.float32)
print(hashlib.sha256(sums(x).tobytes() + sums(x.T.copy(), axis=0).tobytes()).hexdigest())
"""
    found = [run_python(program, env={"OMP_NUM_THREADS": n}) for n in ("1", "2", "5")]
    assert [done.returncode for done in found] == [0] * 3
    assert len({done.stdout for done in found}) == 1


def test_what_is_refused():
    x = np.ones((2, 3))
    for axis in (2, -3):
        with pytest.raises(ValueError, match=f"sums: axis: got {axis}, expected -2 <= axis < 2"):
            SUMS(x, axis=axis)
    with pytest.raises(ValueError, match="sums: axis: got 0, expected 0 <= axis < 0"):
        SUMS(np.ones(()), axis=0)
    with pytest.raises(ValueError, match="f: exclusive: got no identity"):
        cuplug.scan("f(x: T) -> T", reduce="a + b", exclusive=True)
    inverse = cuplug.scan("inverse(x: T) -> T", map="100 / x", reduce="a + b")
    with pytest.raises(ValueError, match="inverse: map: line 1, column 5: got 100 / 0"):
        inverse(np.zeros(70_000, np.int32))
    assert pickle.loads(pickle.dumps(SUMS)) == SUMS
