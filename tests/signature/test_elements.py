# SPDX-License-Identifier: Apache-2.0
"""Ranges of array elements: only a debug mode checks them; generated arguments satisfy them."""

import cuplug
import cuplug.testing
import numpy as np
import pytest
from cuplug._engine.signature.evaluate import choices, interval
from cuplug._engine.signature.signature import parse
from cuplug._integration.author.bench_arguments import sized_arguments
from hypothesis import given

PICK = (
    "pick(x: float32[m, n], index: I[*k], p: T[...]) -> y: int64[] "
    "where I: integer | bool, T: floating, 0 <= index < m, 0 < p <= 1 or p == 3"
)
SETS = "f(h: int, x: int8[n], y: uint8[k]) where h in {64, 128}, n in {3, h}, y in {2, 4}"
INTEGERS = [f"{sign}int{8 << k}" for k in range(4) for sign in ("", "u")]
X = np.zeros((5, 2), np.float32)
P = np.ones(1, np.float32)


@pytest.fixture
def pick(monkeypatch):
    monkeypatch.setenv("CUPLUG_CHECK_ELEMENTS", "1")
    host = "void pick(int64_t *y, int64_t m, int64_t n) { *y = m; }"
    return cuplug.operator(PICK, arguments="y, m, size(p)", host=host)


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
def test_elements_in_their_range(pick, dtype):
    assert pick(X, np.arange(4).reshape(2, 2).astype(dtype), P) == 5
    assert pick(X, np.zeros((0, 3), dtype), P) == 5
    strided = np.full((4, 6), 99, dtype)[::-2, 1::3]
    strided[...] = 1
    assert pick(X, strided, P) == 5


@pytest.mark.parametrize("dtype", INTEGERS)
def test_elements_out_of_their_range(pick, dtype):
    index = np.ones((2, 6), dtype)[:, ::2]
    index[1, 2] = 7
    message = r"^pick: index: got 7 at \(1, 2\), expected 0 <= index < m \(m = 5\)$"
    with pytest.raises(ValueError, match=message):
        pick(X, index, P)
    if dtype.startswith("i"):
        with pytest.raises(ValueError, match=r"got -1 at \(0,\), expected 0 <= index < m"):
            pick(X, -np.ones(1, dtype), P)
    if dtype == "uint64":
        with pytest.raises(ValueError, match=r"got 1.84467441e\+19 at \(0,\)"):
            pick(X, np.array([2**64 - 1], dtype), P)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_elements_of_floats(pick, dtype):
    dtype = cuplug.testing.numpy_dtype(dtype)
    index = np.zeros(1, np.int32)
    assert pick(X, index, np.array([0.5, 1, 3], dtype)) == 5
    for wrong, shown in ((0, "0"), (1.5, "1.5"), (np.nan, "-?nan"), (-np.inf, "-inf")):
        with pytest.raises(ValueError, match=rf"^pick: p: got {shown} at \(1, 0\), expected 0 < p"):
            pick(X, index, np.array([[1], [wrong]], dtype))


def test_arrays_that_are_left_out_have_no_elements(monkeypatch):
    monkeypatch.setenv("CUPLUG_CHECK_ELEMENTS", "1")
    f = cuplug.operator(
        "f(x: int8[n], k: int = None, p: int8[n] = None) -> y: int8[] where p > 0, x > k",
        arguments="y",
        host="void f(int8_t *y) { *y = 1; }",
    )
    one = np.ones(2, np.int8)
    assert f(one) == f(one, 0) == f(one, 0, one) == 1
    with pytest.raises(ValueError, match=r"f: x: got 1 at \(0,\), expected x > k \(k = 1\)"):
        f(one, 1)
    with pytest.raises(ValueError, match=r"f: p: got 0 at \(1,\), expected p > 0$"):
        f(one, None, np.int8([1, 0]))


def test_calls_check_no_elements(pick, monkeypatch):
    for value in ("0", ""):
        monkeypatch.setenv("CUPLUG_CHECK_ELEMENTS", value)
        assert pick(X, np.array([77]), P) == 5
    assert pick.infer(X, np.array([77]), P).outputs[0].shape == ()


@given(cuplug.testing.arguments(PICK, all_bits=True))
def test_drawn_elements_are_in_their_range(arguments):
    index, p = arguments["index"], arguments["p"]
    assert np.all((index >= 0) & (index < len(arguments["x"])))
    assert np.all(((p > 0) & (p <= 1)) | (p == 3))


@given(cuplug.testing.arguments(SETS))
def test_drawn_members_of_sets(arguments):
    assert arguments["h"] in (64, 128)
    assert len(arguments["x"]) in (3, arguments["h"])
    assert {*arguments["y"].tolist()} <= {2, 4}


def test_intervals_of_alternatives_and_sets():
    text = "f(a: int, b: int, x: int8[n]) where 0 < a < 4 or a == 9, b in {2, n, 8}, 3 <= x < n"
    signature = parse(text)
    assert interval(signature, "a", {}) == (1, 9)
    assert interval(signature, "b", {"n": 11}) == (2, 11)
    assert interval(signature, "x", {"n": 11}) == (3, 10)
    assert choices(signature, "b", {"n": 5}) == [2, 5, 8]
    assert choices(signature, "a", {}) is None


def test_arguments_of_benchmarks_are_in_their_range():
    text = "f(x: float32[m, 16], i: int64[n], p: float32[n]) where 3 <= i < m, 2 <= p < 3"
    given = sized_arguments(parse(text), 1 << 14)
    assert given["i"].min() >= 3
    assert given["i"].max() < len(given["x"])
    assert given["p"].min() >= 2
    assert given["p"].max() < 3
