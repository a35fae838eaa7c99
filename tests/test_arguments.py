# SPDX-License-Identifier: Apache-2.0
"""What callers give to functions that are no operators: paths, sequences of texts."""

from pathlib import Path

import cuplug
import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("function", [cuplug.load, cuplug.adopt, cuplug.build])
@pytest.mark.parametrize("path", [5, None, ["x"]])
def test_no_path(function, path):
    message = f"{function.__name__}: path: seen {type(path).__name__}, wanted a path"
    with pytest.raises(TypeError, match=f"^{message}$"):
        function(path)


@pytest.mark.parametrize("function", [cuplug.load, cuplug.adopt, cuplug.build])
def test_a_zero_character(function):
    message = f"^{function.__name__}: path: seen 'a.x00b', wanted a path"
    with pytest.raises(ValueError, match=message):
        function("a\0b")


@pytest.mark.parametrize("path", ["x/libnone.so", b"x/libnone.so", Path("x/libnone.so")])
def test_any_kind_of_path(path):
    with pytest.raises(cuplug.NotFoundError, match=r"/x/libnone\.so"):
        cuplug.load(path)


def test_a_description_that_is_none():
    with pytest.raises(TypeError, match=r"^x\.so: description: seen int, wanted a mapping$"):
        cuplug.adopt("x.so", 5)


def test_a_key_that_is_no_name():
    with pytest.raises(TypeError, match=r"^x\.so: description: seen the key 5, wanted names$"):
        cuplug.adopt("x.so", {"prototypes": "double cos(double);", 5: {}})


def test_an_output_that_is_no_path():
    with pytest.raises(TypeError, match="^build: output: seen int, wanted a path$"):
        cuplug.build(ROOT / "examples" / "drop_in" / "half.c", output=5)


SIGNATURE = "f(x: T[...]) -> T[...] where T: floating"
FUNCTIONS = {
    "build": lambda options: cuplug.build("half.c", options=options),
    "compile": lambda options: cuplug.compile("", options=options, architecture="90"),
    "elementwise": lambda options: cuplug.elementwise(SIGNATURE, "x", options=options),
    "reduction": lambda options: cuplug.reduction(SIGNATURE, reduce="a + b", options=options),
    "operator": lambda options: cuplug.operator(SIGNATURE, arguments="x", options=options),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("-DN=1", "options: seen str, wanted a sequence of str"),
        (5, "options: seen int, wanted a sequence of str"),
        (["-DN", 1], r"options\[1\]: seen int, wanted a str"),
    ],
)
def test_options(name, options, part):
    with pytest.raises(TypeError, match=f"^{name}: {part}$"):
        FUNCTIONS[name](options)


def test_headers_that_are_no_mapping():
    with pytest.raises(TypeError, match="^compile: headers: seen list, wanted a mapping$"):
        cuplug.compile("", headers=["x"], architecture="90")


@pytest.mark.gpu
def test_a_dtype_that_is_none():
    with pytest.raises(TypeError, match="^empty: dtype: seen 'nope', wanted a dtype of NumPy"):
        cuplug.empty(3, "nope")


def test_repr():
    assert repr(cuplug.device("cpu")) == "cuplug.device('cpu')"
