# SPDX-License-Identifier: Apache-2.0
"""Arguments of functions that are not operators: paths, texts, devices, shapes."""

from pathlib import Path

import cuplug
import numpy as np
import pytest
from places import ROOT


@pytest.mark.parametrize("function", [cuplug.load, cuplug.adopt, cuplug.build])
@pytest.mark.parametrize("path", [5, None, ["x"]])
def test_no_path(function, path):
    message = f"{function.__name__}: path: got {type(path).__name__}, expected a path"
    with pytest.raises(TypeError, match=f"^{message}$"):
        function(path)


@pytest.mark.parametrize("function", [cuplug.load, cuplug.adopt, cuplug.build])
def test_a_zero_character(function):
    message = f"^{function.__name__}: path: got 'a.x00b', expected a path"
    with pytest.raises(ValueError, match=message):
        function("a\0b")


@pytest.mark.parametrize("function", [cuplug.load, cuplug.adopt, cuplug.build])
def test_a_character_that_no_file_name_has(function):
    message = rf"^{function.__name__}: path: got '\\ud800', expected a path: "
    with pytest.raises(ValueError, match=message):
        function("\ud800")


@pytest.mark.parametrize("path", ["x/libnone.so", b"x/libnone.so", Path("x/libnone.so")])
def test_any_kind_of_path(path):
    with pytest.raises(cuplug.NotFoundError, match=r"/x/libnone\.so"):
        cuplug.load(path)


def test_a_description_that_is_none():
    with pytest.raises(TypeError, match=r"^x\.so: description: got int, expected a mapping$"):
        cuplug.adopt("x.so", 5)


def test_a_key_that_is_no_name():
    with pytest.raises(TypeError, match=r"^x\.so: description: got the key 5, expected names$"):
        cuplug.adopt("x.so", {"prototypes": "double cos(double);", 5: {}})


def test_an_output_that_is_no_path():
    with pytest.raises(TypeError, match="^build: output: got int, expected a path$"):
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
        ("-DN=1", "options: got str, expected a sequence of str"),
        (5, "options: got int, expected a sequence of str"),
        (["-DN", 1], r"options\[1\]: got int, expected a str"),
    ],
)
def test_options(name, options, part):
    with pytest.raises(TypeError, match=f"^{name}: {part}$"):
        FUNCTIONS[name](options)


TEXTS = {
    "compile: source": lambda text: cuplug.compile(text, architecture="90"),
    "compile: name": lambda text: cuplug.compile("", name=text, architecture="90"),
    "elementwise: expression": lambda text: cuplug.elementwise(SIGNATURE, text),
    "elementwise: signature": lambda text: cuplug.elementwise(text, "x"),
    "reduction: reduce": lambda text: cuplug.reduction(SIGNATURE, reduce=text),
    "operator: host": lambda text: cuplug.operator(SIGNATURE, arguments="x", host=text),
    r"operator: options\[0\]": lambda text: cuplug.operator("f()", arguments="", options=[text]),
}


@pytest.mark.parametrize("where", TEXTS)
@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x\0 + 1", "got a zero character, expected"),
        ("x\ud800", r"got 'x\\ud800', expected text for UTF-8: "),
    ],
)
def test_texts_that_c_cannot_be_given(where, text, part):
    with pytest.raises(ValueError, match=f"^{where}: {part}"):
        TEXTS[where](text)


@pytest.mark.parametrize("where", [where for where in TEXTS if "host" not in where])
def test_texts_that_are_missing(where):
    with pytest.raises(TypeError, match=f"^{where}: got NoneType, expected a str$"):
        TEXTS[where](None)


@pytest.mark.parametrize("number", [-1, 64, 1 << 70])
@pytest.mark.parametrize("name", ["memory_info", "trim", "synchronize"])
def test_numbers_of_no_gpu(name, number):
    message = f"^{name}: device: got number {number}, expected that of a GPU, from 0$"
    with pytest.raises(ValueError, match=message):
        getattr(cuplug, name)(device=number)


def test_devices_of_functions():
    for call in (
        lambda device: cuplug.asarray([1], device=device),
        lambda device: cuplug.empty(1, device=device),
        lambda device: cuplug.prepare("relu", device),
        lambda device: cuplug.ops.relu(np.ones(1), device=device),
    ):
        with pytest.raises(ValueError, match="^[a-z]+: device: got number 1000, expected"):
            call(1000)


@pytest.mark.parametrize("shape", ["ab", 2.5, ((1, 2), 3), None])
def test_shapes_that_are_none(shape):
    with pytest.raises(TypeError, match="^empty: shape: got .*, expected an int or a sequence"):
        cuplug.empty(shape)


def test_no_dtype():
    with pytest.raises(
        TypeError, match="^from_pointer: dtype: got None, expected a dtype of NumPy"
    ):
        cuplug.from_pointer(0, 1, None, "cpu")


def test_a_size_beyond_63_bits():
    with pytest.raises(
        ValueError, match="^empty: shape: got .*, expected sizes of at least 0, bel"
    ):
        cuplug.empty((1, 1 << 70))


def test_what_cannot_be_prepared():
    for operators in (5, [5], None):
        seen = "NoneType" if operators is None else "int"
        with pytest.raises(TypeError, match=f"^prepare: operators: got {seen}, expected operators"):
            cuplug.prepare(operators)


def test_headers_that_are_no_mapping():
    with pytest.raises(TypeError, match="^compile: headers: got list, expected a mapping$"):
        cuplug.compile("", headers=["x"], architecture="90")


@pytest.mark.gpu
def test_a_dtype_that_is_none():
    with pytest.raises(TypeError, match="^empty: dtype: got 'nope', expected a dtype of NumPy"):
        cuplug.empty(3, "nope")


def test_repr():
    assert repr(cuplug.Device("cpu")) == "cuplug.Device('cpu')"
