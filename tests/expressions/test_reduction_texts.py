# SPDX-License-Identifier: Apache-2.0
"""The texts of reductions and scans: rejected ones, and their messages."""

import re

import cuplug
import numpy as np
import pytest

ILL_FORMED = {
    "f(a: T) -> T": "f: a: the expressions use a, b and n themselves",
    "f(x: T)": "f: got 'f(x: T)', expected arrays and outputs",
    "f(inout x: T)": "expected arrays and outputs",
    "f(x: T[n]) -> T[n]": "f: x: got T[n], expected T[...]",
    "f(x: T[...]) -> T[]": "f: out: got T[], expected T[...]",
    "f(x: T[...], y: T[...] = None) -> T[...]": "f: y: got T[...] = None, expected T[...]",
    "f(x: T[...]) -> T": """signature: byte 17: got "", expected '[' (outputs are arrays)""",
}


@pytest.mark.parametrize(("signature", "message"), ILL_FORMED.items(), ids=str)
def test_ill_formed_definitions(signature, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        cuplug.reduction(signature, reduce="a + b")


@pytest.mark.parametrize("make", [cuplug.reduction, cuplug.scan])
def test_there_is_something_to_reduce(make):
    with pytest.raises(ValueError, match="^f: reduce: got no expression, expected one$"):
        make("f(x: T) -> T", reduce=" ")


def test_accumulate_is_checked():
    with pytest.raises(ValueError, match="f: accumulate: got 'complex', expected a dtype"):
        cuplug.reduction("f(x: T) -> T", reduce="a + b", accumulate="complex")


@pytest.mark.parametrize("make", [cuplug.reduction, cuplug.scan])
@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"reduce": "a + bb"}, "f: reduce: got 'bb', expected x, k, a, b, n or i"),
        ({"map": "xx * k", "reduce": "a + b"}, "f: map: got 'xx', expected x, k, a, b, n or i"),
        ({"reduce": "a + b", "post": "sqrt(a / m)"}, "f: post: got 'm', expected"),
        ({"reduce": "a + b", "identity": "zero"}, "f: identity: got 'zero', expected"),
    ],
)
def test_misspelt_names_are_told_when_it_is_made(make, texts, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make("f(x: T, k: float64 = 2) -> T", **texts)


@pytest.mark.parametrize(
    "text",
    ["(T)x + 1.5e-3f + 0x1Fu", "x > 0 ? x : -INFINITY", "T y = x; y * y", "fabs(x) /* of x */ * k",
     "x * (int64_t)k + sizeof(float)", "x not_eq k", "x + 'c' // value"],
)  # fmt: skip
def test_names_of_c_are_no_misspelt_ones(text):
    made = cuplug.reduction("f(x: T, k: float64 = 2) -> T", map=text, reduce="fmax(a, b)")
    assert made.signatures


def test_preambles_make_names():
    text = "static const double two = 2;"
    f = cuplug.reduction("f(x: T) -> T", map="x * two", reduce="a + b", preamble=text)
    assert f.signatures


def test_compiler_errors_show_the_users_line():
    f = cuplug.reduction("f(x: T) -> T", map="x * / 2", reduce="a + b")
    with pytest.raises(cuplug.CompileError) as raised:
        f(np.zeros(3))
    assert str(raised.value).startswith("f map: line 1: ")
    assert "> 1 | x * / 2" in str(raised.value)
