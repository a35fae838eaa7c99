# SPDX-License-Identifier: Apache-2.0
"""Calls of adopted functions without Python, and calls that still need it."""

import math
from concurrent.futures import ThreadPoolExecutor

import cuplug
import numpy as np
import pytest
from cuplug._engine.adoption import adopted_call
from places import FIXTURES

pytest.importorskip("cffi")

PROTOTYPES = """
double cbrt(double x);
int abs(int x);
double frexp(double x, int *exponent);
size_t strlen(const char *text);
void *memcpy(void *to, const void *from, size_t n);
char *strcpy(char *to, const char *from);
"""
X = np.arange(6.0).reshape(2, 3)
# The description, its arguments and its results, or the message.
COMPILED = {
    "cbrt": ("x: float -> y: float64[]", "x", {"returns": "y"}, (8,), 2),
    "abs": ("x: int -> y: int32[]", "x", {"returns": "y"}, (-3,), 3),
    "frexp": ("x: float -> (y: float64[], e: int32[])", "x, e", {"returns": "y"}, (6,), (0.75, 3)),
    "strlen": ("text: str -> y: uint64[]", "text", {"returns": "y"}, ("four",), 4),
    "memcpy": (
        *("x: float64[..., n] -> y: float64[..., n]", "y, x, size(x) * 8", {"returns": "ignored"}),
        *((X,), X),
    ),
}
BY_PYTHON = {
    "strcpy": (
        *("x: str -> y: uint8[?]", "b, x"),
        {"returns": "ignored", "scratch": "b: uint8[9]", "outputs": "y: b[3]"},
        *(("ab",), [97, 98, 0]),
    ),
}


def adopt(name, signature, arguments, more, library="libc.so.6"):
    text = f"{name}({signature.replace(' -> ', ') -> ', 1)}"
    told = {"signature": text, "arguments": arguments, **more}
    library = "libm.so.6" if name in ("cbrt", "frexp") else library
    return getattr(cuplug.adopt(library, {"prototypes": PROTOTYPES, name: told}), name)


@pytest.fixture
def by_python(monkeypatch):
    """Count the calls that Python makes."""
    counted, call = [], adopted_call.AdoptedCall.call

    def count(self, *given):
        counted.append(self.name)
        return call(self, *given)

    monkeypatch.setattr(adopted_call.AdoptedCall, "call", count)
    return counted


@pytest.mark.parametrize("name", [*COMPILED, *BY_PYTHON])
def test_calls_without_python(name, way, by_python):
    *told, given, wanted = {**COMPILED, **BY_PYTHON}[name]
    operator = adopt(name, *told)
    for _ in range(2):
        found = operator(*given)
        found = found if isinstance(found, tuple) else (found,)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(x, y)
    assert len(by_python) == (0 if way == "compiled" and name in COMPILED else 2)


def test_without_a_compiler(monkeypatch, by_python):
    monkeypatch.setenv("CC", "/nonexistent/cc")
    cbrt = adopt("cbrt", *COMPILED["cbrt"][:3])
    assert [cbrt(8), cbrt(1)] == [2, 1]
    assert len(by_python) == 2


def test_one_text_for_functions_of_one_type(way, monkeypatch):
    if way == "cffi":
        pytest.skip("nothing is compiled")
    texts, find = [], adopted_call.find_way

    def keep(function):
        found = find(function)
        texts.append(found.text)
        return found

    monkeypatch.setattr(adopted_call, "find_way", keep)
    for name in ("sin", "cos"):
        told = {"signature": f"{name}(x: float) -> y: float64[]", "arguments": "x", "returns": "y"}
        libm = cuplug.adopt("libm.so.6", {"prototypes": f"double {name}(double);", name: told})
        assert getattr(libm, name)(1) == getattr(math, name)(1)
    assert texts[0] == texts[1]
    assert "sin" not in texts[0]


@pytest.mark.parametrize("given", [1e300, -1e300])
@pytest.mark.parametrize(
    "more",
    [
        {"prototypes": "float same(float x);", "arguments": "x", "returns": "y"},
        {
            "prototypes": "struct s { float x; int n; }; void take(struct s *s, float *y);",
            "arguments": "s, y",
            "scratch": "s: struct s = {x, 1}",
            "function": "take",
        },
        {
            "prototypes": "void take(const float *x, float *y);",
            "arguments": "x, y",
            "function": "take",
        },
    ],
    ids=["value", "member", "address"],
)
def test_no_finite_number_becomes_infinite(build_plugin, given, more):
    library = build_plugin(FIXTURES / "habits.c", "habits", extra=["-fvisibility=default"])
    told = {"signature": "same(x: float) -> y: float32[]", **more}
    operator = cuplug.adopt(library, {"prototypes": told.pop("prototypes"), "same": told}).same
    assert operator(1.5) == 1.5
    assert operator(math.inf) == math.inf
    with pytest.raises(ValueError, match=r"same: x: got -?1e\+300, expected a number that a float"):
        operator(given)


def test_threads_call_without_python(way):
    cbrt = adopt("cbrt", *COMPILED["cbrt"][:3])
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(cbrt, [x**3 for x in range(200)]))
    np.testing.assert_allclose(found, range(200), rtol=1e-15)


def test_handles_are_compared_once(build_plugin, way, by_python):
    """Python compares the first handle of a type; later ones of the type are then accepted."""
    library = build_plugin(FIXTURES / "objects.c", "objects", extra=["-fvisibility=default"])
    prototypes = """
        struct counter *counter_new(long start);
        void counter_free(struct counter *c);
        long counter_next(struct counter *c);
    """
    told = {
        "prototypes": f"struct counter; {prototypes}",
        "counter": {
            "function": "counter_new",
            "signature": "counter(start: int) -> handle[counter]",
            "arguments": "start",
            "returns": "counter",
            "destroy": "counter_free",
        },
        "next": {
            "function": "counter_next",
            "signature": "next(c: handle[counter]) -> n: int64[]",
            "arguments": "c",
            "returns": "n",
        },
    }
    objects = cuplug.adopt(library, told)
    with objects.counter(3) as first, objects.counter(7) as second:
        assert [objects.next(x) for x in (first, first, second, second)] == [3, 4, 7, 8]
    assert by_python.count("next") == (1 if way == "compiled" else 4)
