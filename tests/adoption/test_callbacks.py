# SPDX-License-Identifier: Apache-2.0
"""Python functions, and C texts, that adopted libraries call back."""

import gc
import math
import pickle

import cuplug
import numpy as np
import pytest
from places import FIXTURES

pytest.importorskip("cffi")

PROTOTYPES = """
struct function_of { double (*call)(double x, void *own); void *own; };
double apply(double (*f)(double x, void *own), double x);
int apply_rows(const struct function_of *f, const double *x, double *y);
int transform(int (*f)(const double *x, double *y, int n), const double *x, double *y, int n);
void repeat(void (*f)(int k), int n);
void on_thread(void (*f)(int k));
"""
FUNCTION = {
    "callback": "double (*)(double, void *)",
    "signature": "function(x: float) -> y: float64[]",
    "arguments": "x, _",
    "returns": "y",
    "doc": "A function of one number.",
}
MAP = {
    "callback": "int (*)(const double *, double *, int)",
    "signature": "map(x: float64[n]) -> y: float64[n]",
    "arguments": "x, y, n",
}
FIXED = {
    "callback": "int (*)(const double *, double *, int)",
    "signature": "fixed(x: float64[m]) -> y: float64[m]",
    "arguments": "x, y, _",
}
DESCRIPTION = {
    "prototypes": PROTOTYPES,
    "function": FUNCTION,
    "map": MAP,
    "fixed": FIXED,
    "each": {"callback": "void (*)(int)", "signature": "each(k: int)", "arguments": "k"},
    "apply": {
        "signature": "apply(f: handle[function], x: float) -> y: float64[]",
        "arguments": "f, x",
        "returns": "y",
    },
    "apply_rows": {
        "signature": "apply_rows(f: handle[function], x: float64[...]) -> y: float64[...]",
        "arguments": "own, x, y",
        "scratch": "own: struct function_of = {f, NULL}",
    },
    "transform": {
        "signature": "transform(f: handle[map], x: float64[n]) -> y: float64[n]",
        "arguments": "f, x, y, n",
    },
    "transform_fixed": {
        "function": "transform",
        "signature": "transform_fixed(f: handle[fixed], x: float64[n]) -> y: float64[n]",
        "arguments": "f, x, y, n",
    },
    "repeat": {"signature": "repeat(f: handle[each], n: int)", "arguments": "f, n"},
    "on_thread": {"signature": "on_thread(f: handle[each])", "arguments": "f"},
}


@pytest.fixture
def library(build_plugin):
    return build_plugin(FIXTURES / "objects.c", "objects", extra=["-fvisibility=default"])


@pytest.fixture
def calls(library):
    return cuplug.adopt(library, DESCRIPTION)


@pytest.mark.parametrize("function", [math.exp, "exp(x)", "double y = exp(x); return y;"])
def test_a_function_of_one_number(calls, function):
    f = calls.function(function)
    assert type(f) is cuplug.Handle
    assert calls.apply(f, 1.5) == math.exp(1.5)
    x = np.linspace(0, 1, 6).reshape(2, 3)
    np.testing.assert_array_equal(calls.apply_rows(f, x), np.vectorize(math.exp)(x))


def test_a_function_lives_as_long_as_its_handle(calls):
    f = calls.function(lambda x: x + 1)
    gc.collect()
    assert calls.apply(f, 1) == 2
    f.close()
    with pytest.raises(ValueError, match=r"apply: f: got a closed handle\[function\]"):
        calls.apply(f, 1)


@pytest.mark.parametrize(
    "function", [np.cumsum, "double s = 0; for (int k = 0; k < n; k++) y[k] = s += x[k];"]
)
def test_arrays_whose_size_the_library_passes(calls, function):
    x = np.arange(5.0)
    assert calls.transform(calls.map(function), x).tolist() == [0, 1, 3, 6, 10]


@pytest.mark.parametrize(
    "function", [lambda x: 2 * x, "for (int k = 0; k < m; k++) y[k] = 2 * x[k];"]
)
def test_arrays_whose_size_the_caller_says(calls, function):
    f = calls.fixed(function, m=3)
    assert calls.transform_fixed(f, np.arange(3.0)).tolist() == [0, 2, 4]
    with pytest.raises(TypeError, match=r"fixed: got sizes \[\], expected \['m'\]"):
        calls.fixed(function)


def test_inputs_are_read_only(calls):
    def write(x):
        x[0] = 1

    with pytest.raises(ValueError, match="read-only"):
        calls.transform(calls.map(write), np.zeros(3))


def test_results_of_another_shape(calls):
    with pytest.raises(ValueError, match="broadcast"):
        calls.transform(calls.map(lambda x: x[:2]), np.zeros(3))


def test_exceptions_are_those_of_the_call(calls):
    seen = []

    def fail(k):
        seen.append(k)
        raise KeyError(k)

    with pytest.raises(KeyError, match="0"):
        calls.repeat(calls.each(fail), 3)
    assert seen == [0, 1, 2]
    calls.repeat(calls.each(seen.append), 2)
    assert seen[3:] == [0, 1]


def test_callbacks_call_the_library_again(calls):
    inner = calls.function(lambda x: x * 10)
    outer = calls.function(lambda x: float(calls.apply(inner, x)) + 1)
    assert calls.apply(outer, 2) == 21


def test_exceptions_on_threads_of_the_library_are_shown(calls, monkeypatch):
    shown = []
    monkeypatch.setattr("threading.excepthook", lambda x: shown.append(x.exc_value))
    calls.on_thread(calls.each(lambda k: 1 / (k - 1)))
    assert [type(x) for x in shown] == [ZeroDivisionError]


def test_errors_of_texts_show_their_lines(calls):
    with pytest.raises(
        cuplug.CompileError, match=r"(?s)function: line 1: 'z' undeclared.*> 1 \| x"
    ):
        calls.function("x * z")


def test_what_is_no_function(calls):
    with pytest.raises(TypeError, match="function: got int, expected a function, or C as text"):
        calls.function(3)


def test_callback_types_are_pickled(calls):
    assert calls.function.__doc__ == "A function of one number."
    assert pickle.loads(pickle.dumps(calls.function)) is calls.function


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"callback": "double"}, "callback: got double, expected a pointer to a function"),
        ({"callback": "unknown (*)(int)"}, "callback: "),
        ({"arguments": "x"}, "arguments: got 1, expected 2 for double"),
        ({"arguments": "x, x"}, r"arguments: got x, expected void \*, or _"),
        ({"arguments": "_, _"}, "arguments: got no x, expected it among them"),
        ({"signature": "function(x: float, z: float64[...]) -> y: float64[]", "arguments": "x, z"},
         r"z: got \[...\], expected names or numbers"),
    ],
)  # fmt: skip
def test_wrong_descriptions(library, changed, message):
    with pytest.raises(ValueError, match=f"function: {message}"):
        cuplug.adopt(library, {"prototypes": PROTOTYPES, "function": {**FUNCTION, **changed}})
