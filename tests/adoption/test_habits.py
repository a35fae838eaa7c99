# SPDX-License-Identifier: Apache-2.0
"""Adopted functions that write, return letters, are called for each row, or were replaced."""

import errno
import os
import shutil
from pathlib import Path

import cuplug
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import FIXTURES

pytest.importorskip("cffi")

SUM = {"signature": "sum(x: float64[..., n]) -> r: float64[...]", "arguments": "x, n, r"}
SUM_OF = {**SUM, "arguments": "x, n", "returns": "r", "signature": SUM["signature"]}
SUM_PROTOTYPE = "int sum(const double *x, int n, double *out);"


@pytest.fixture(scope="module")
def library(build_plugin):
    return build_plugin(FIXTURES / "habits.c", "habits", extra=["-fvisibility=default"])


def adopt(library, prototypes, name, **description):
    return getattr(cuplug.adopt(library, {"prototypes": prototypes, name: description}), name)


@given(st.lists(st.integers(0, 3), max_size=3), st.integers(0, 4), st.booleans())
@settings(max_examples=50)
def test_each_row_of_the_loop_dimensions(library, loops, n, is_returned):
    """The row's output is a pointer or the return value; inputs may be strided."""
    if is_returned:
        prototype, told = "double sum_of(const double *, long);", {**SUM_OF, "function": "sum_of"}
    else:
        prototype, told = SUM_PROTOTYPE, SUM
    x = np.arange(np.prod([*loops, n, 2], dtype=int), dtype="f8").reshape(*loops, n, 2)[..., 0]
    out = np.full(loops, 99.0)
    adopt(library, prototype, "sum", **told)(x, out=out)
    assert np.array_equal(out, x.sum(-1))


def test_arrays_without_loop_dimensions_are_shared(library):
    signature = "sum(x: float64[n], y: float64[..., m]) -> r: float64[...]"
    shared = adopt(library, SUM_PROTOTYPE, "sum", signature=signature, arguments="x, n, r")
    assert shared(np.ones(3), np.zeros((2, 5))).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("signature", "arguments"),
    [
        ("sum(x: float64[..., n]) -> r: float64[n]", "x, n, r"),
        ("sum(x: float64[n, ...]) -> r: float64[...]", "x, n, r"),
    ],
)
def test_loop_dimensions_that_nothing_counts(library, signature, arguments):
    with pytest.raises(ValueError, match="sum: signature: got loop dimensions that the arguments"):
        adopt(library, SUM_PROTOTYPE, "sum", signature=signature, arguments=arguments)


def test_one_call_where_the_size_is_told(library):
    signature = "sum(x: float64[...]) -> r: float64[]"
    whole = adopt(library, SUM_PROTOTYPE, "sum", signature=signature, arguments="x, size(x), r")
    assert whole(np.ones((2, 3))) == 6


def test_inputs_are_not_written(library):
    """A pointer that is not const gets a copy."""
    told = {"signature": "sort(x: float64[n])", "arguments": "x, n"}
    sort = adopt(library, "void sort(double *x, long n);", "sort", **told)
    x = np.array([3.0, 1, 2])
    x.flags.writeable = False
    for array in (x, x.copy()):
        sort(array)
        assert array.tolist() == [3, 1, 2]
    sort(np.empty(0))


@pytest.mark.parametrize(
    ("prototype", "signature"),
    [
        ("void sort(const double *x, long n);", "sort(inout x: float64[n])"),
        ("typedef const double *some; void sort(some x, long n);", "sort(inout x: float64[n])"),
        ("void sort(const double x[], long n);", "sort(n: int) -> x: float64[n]"),
        ("void sort(const void *x, long n);", "sort(inout x: float64[n])"),
    ],
)
def test_what_is_written_is_not_const(library, prototype, signature):
    with pytest.raises(ValueError, match="sort: arguments: got x for a pointer to const"):
        adopt(library, prototype, "sort", signature=signature, arguments="x, n")


def test_a_const_pointer_that_is_no_pointer_to_const(library):
    told = {"signature": "sort(inout x: float64[n])", "arguments": "x, n"}
    x = np.array([3.0, 1, 2])
    adopt(library, "void sort(double *const x, const long n);", "sort", **told)(x)
    assert x.tolist() == [1, 2, 3]


def test_complex_pointers(library):
    prototype = "void conjugate(const double _Complex *, long, double _Complex *);"
    signature = "conjugate(x: complex128[n]) -> y: complex128[n]"
    conjugate = adopt(library, prototype, "conjugate", signature=signature, arguments="x, n, y")
    assert conjugate(np.array([1 + 2j])).tolist() == [1 - 2j]
    wrong = signature.replace("complex128", "complex64")
    with pytest.raises(ValueError, match=r"conjugate: arguments: got x, expected"):
        adopt(library, prototype, "conjugate", signature=wrong, arguments="x, n, y")
    with pytest.raises(ValueError, match=r"conjugate: arguments: got x, expected double \*"):
        adopt(library, "void conjugate(double *, long, double *);", "conjugate",
              signature=signature, arguments="x, n, y")  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_letters_are_numbers(library, dtype):
    prototype = "int count(const char *text, long n, char letter);"
    signature = f"count(text: {dtype}[n], letter: int) -> r: int32[]"
    told = {"signature": signature, "arguments": "text, n, letter", "returns": "r"}
    count = adopt(library, prototype, "count", **told)
    assert count(np.frombuffer(b"banana", dtype), ord("a")) == 3
    with pytest.raises(ValueError, match="count: arguments: letter: got 256"):
        count(np.frombuffer(b"banana", dtype), 256)


def test_letters_as_a_status_and_as_an_output(library):
    prototype, function = "char letter_status(int n);", {"function": "letter_status"}
    status = adopt(library, prototype, "f", signature="f(n: int)", arguments="n", **function)
    assert status(0) is None
    with pytest.raises(cuplug.PluginError, match="f: result: got 65, expected 0"):
        status(65)
    for dtype in ("int8", "uint8"):
        told = {"signature": f"f(n: int) -> r: {dtype}[]", "arguments": "n", "returns": "r"}
        value = adopt(library, prototype, "f", **told, **function)
        assert value(65) == 65
        assert value(-1) == np.array(-1).astype(dtype)


def test_enums_are_integers(library):
    prototypes = "enum order {ROWS = 101, COLUMNS}; int value_of(enum order o);"
    told = {"signature": "value_of(o: int) -> r: int32[]", "arguments": "o", "returns": "r"}
    value_of = adopt(library, prototypes, "value_of", **told)
    assert value_of(102) == 102
    with pytest.raises(ValueError, match="value_of: arguments: o: got -1"):
        value_of(-1)
    prototypes = "enum order {ROWS = 101, COLUMNS}; enum order order_of(int n);"
    told = {"signature": "order_of(n: int) -> r: uint32[]", "arguments": "n", "returns": "r"}
    assert adopt(library, prototypes, "order_of", **told)(1) == 102


def test_values_that_a_parameter_cannot_hold(library):
    told = {"signature": "same(x: float) -> r: float32[]", "arguments": "x", "returns": "r"}
    same = adopt(library, "float same(float x);", "same", **told)
    for value in (1e300, -3.5e38):
        with pytest.raises(ValueError, match=r"same: x: got .*, expected a number that a float"):
            same(value)
    for value in (3e38, 1e-300, float("inf"), float("nan")):
        np.testing.assert_equal(float(same(value)), float(np.float32(value)))
    with pytest.raises(ValueError, match="same: x: got the default None, expected a number"):
        adopt(library, "float same(float x);", "same",
              **{**told, "signature": "same(x: float = None) -> r: float32[]"})  # fmt: skip


def test_errno_of_functions_that_return_minus_1(library):
    told = {"signature": "fails_by_errno(n: int)", "arguments": "n", "returns": "errno"}
    fails = adopt(library, "int fails_by_errno(int n);", "fails_by_errno", **told)
    assert fails(0) is None
    with pytest.raises(OSError, match="fails_by_errno: Cannot allocate memory") as raised:
        fails(errno.ENOMEM)
    assert raised.value.errno == errno.ENOMEM


@pytest.mark.parametrize(
    ("prototypes", "message"),
    [
        ("extern int f;", "f: function: got variable 'f', expected a function that the prot"),
        ("int g(int);", "f: function: got 'f', expected a function that the prototypes declare: g"),
        ("typedef int f;", "f: function: got typedef 'f', expected a function"),
        ("int f(double _Complex x);", "f: "),
        ("int f(struct s x);", "f: "),
        (f"int f(int{'(' * 8000}{')' * 8000});", "prototypes: got more than 100 nested brackets"),
        (f"int f(double x[{'(' * 8000}1{')' * 8000}]);", "prototypes: got more than 100 nested"),
        (f"int f({'{' * 101});", "prototypes: got more than 100 nested brackets"),
        (f"int f(double x[{'-' * 8000}1]);", "prototypes: "),
        (f"int {'*' * 8000}f(void);", ": "),
        (f"int f(double x[{'1+' * 8000}1]);", "prototypes: "),
        (f"int f(double x[{'1?1:' * 8000}1]);", "prototypes: "),
        ("int f(int x);" * 10_000, "prototypes: got 130000 characters, expected at most 65536"),
        ("int f(int x) { return x; }", ": "),
        ("#include <stdio.h>", "prototypes: "),
        ("\0", "prototypes: "),
    ],
    ids=range(16),
)
def test_prototypes_that_cannot_be_used(library, prototypes, message):
    with pytest.raises((ValueError, cuplug.PluginError), match=message):
        adopt(library, prototypes, "f", signature="f(x: int)", arguments="x")


@pytest.mark.parametrize(
    "text",
    ["(" * 8000, "-" * 8000 + "x", "x" + " + q" * 3000, "x" * 20_000, "min(x, " * 999, "\0", "1**"],
    ids=range(7),
)
def test_arguments_that_cannot_be_used(library, text):
    with pytest.raises(ValueError, match="^f: arguments: "):
        adopt(library, "int f(int);", "f", signature="f(x: int)", arguments=text)


def compile_numbers(build_plugin, folder, number, extra=""):
    """Replace a library as linkers do, by another file."""
    source = f"double number(double x) {{ return x + {number}; }}\n{extra}"
    built = build_plugin(source, "number", extra=["-fvisibility=default"])
    place = folder / "libnumber.so"
    shutil.copy(built, f"{place}.new")
    os.rename(f"{place}.new", place)
    return place


NUMBER = {"signature": "number(x: float) -> r: float64[]", "arguments": "x", "returns": "r"}
NUMBER_PROTOTYPE = "double number(double x);"


def test_a_library_that_was_replaced(build_plugin, tmp_path):
    place = compile_numbers(build_plugin, tmp_path, 1)
    number = adopt(place, NUMBER_PROTOTYPE, "number", **NUMBER)
    assert number(0) == 1
    assert cuplug.reload(number) == ()
    for value in range(2, 5):
        compile_numbers(build_plugin, tmp_path, value)
        assert number(0) == value - 1
        assert cuplug.reload(number if value % 2 else None) == (str(place),)
        assert number(0) == value
        assert cuplug.reload() == ()
    compile_numbers(build_plugin, tmp_path, 10)
    again = adopt(place, NUMBER_PROTOTYPE, "number", **NUMBER)
    assert (again(0), again is number) == (10, True)


def test_a_replaced_library_without_the_function(build_plugin, tmp_path):
    place = compile_numbers(build_plugin, tmp_path, 1)
    number = adopt(place, NUMBER_PROTOTYPE, "number", **NUMBER)
    other = build_plugin("int other;", "other", extra=["-fvisibility=default"])
    shutil.copy(other, f"{place}.new")
    os.rename(f"{place}.new", place)
    with pytest.raises(cuplug.PluginError, match="number: number: "):
        cuplug.reload(number)
    assert number(0) == 1
    compile_numbers(build_plugin, tmp_path, 5)
    assert cuplug.reload(number) == (str(place),)
    assert number(0) == 5


def test_a_library_that_was_written_over_in_place(build_plugin, tmp_path):
    place = compile_numbers(build_plugin, tmp_path, 1)
    number = adopt(place, NUMBER_PROTOTYPE, "number", **NUMBER)
    os.utime(place, ns=(1, 1))
    for again in (
        lambda: cuplug.reload(number),
        lambda: adopt(place, NUMBER_PROTOTYPE, "number", **NUMBER),
    ):
        with pytest.raises(cuplug.PluginError, match="overwritten in place while its code is"):
            again()
    assert number(0) == 1
    compile_numbers(build_plugin, tmp_path, 2)
    assert cuplug.reload(number) == (str(place),)
    assert number(0) == 2


def test_a_replaced_library_is_found_anew(place, build_plugin):
    path = compile_numbers(build_plugin, place, 1)
    lines = [f'prototypes = "{NUMBER_PROTOTYPE}"', "[renewed]", 'function = "number"']
    described = NUMBER | {"signature": "renewed(x: float) -> r: float64[]"}
    lines += [f'{key} = "{value}"' for key, value in described.items()]
    Path(place / "libnumber.cuplug.toml").write_text("\n".join(lines))
    for file in (path, place / "libnumber.cuplug.toml"):
        file.chmod(0o644)
    assert cuplug.find("renewed")(0) == 1
    compile_numbers(build_plugin, place, 2).chmod(0o644)
    assert cuplug.find("renewed")(0) == 2
