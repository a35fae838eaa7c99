# SPDX-License-Identifier: Apache-2.0
"""Paths and other arguments of functions that are no operators."""

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


@pytest.mark.gpu
def test_a_dtype_that_is_none():
    with pytest.raises(TypeError, match="^empty: dtype: seen 'nope', wanted a dtype of NumPy"):
        cuplug.empty(3, "nope")


def test_repr():
    assert repr(cuplug.device("cpu")) == "cuplug.device('cpu')"
