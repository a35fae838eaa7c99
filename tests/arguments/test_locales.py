# SPDX-License-Identifier: Apache-2.0
"""A program whose locale has a decimal comma, and non-ASCII letters of one byte."""

import shutil
import subprocess
import sys

import pytest
from processes import environment

PROGRAM = """
import locale
import cuplug, numpy as np
from cuplug.ops import relu

locale.setlocale(locale.LC_ALL, "de_DE")
assert locale.localeconv()["decimal_point"] == ","


def message(call):
    try:
        call()
    except (TypeError, ValueError, cuplug.Error) as error:
        return str(error)


def scaled(condition):
    return cuplug.operator(
        f"f(x: float64[n], k: float = 2.5) -> y: float64[n] where {condition}",
        arguments="x, k, y, n",
        host="void f(const double *x, double k, double *y, long n) { y[0] = k * x[0]; }",
    )


print(scaled("k > 0.25")(np.ones(1)).tolist())
print(message(lambda: scaled("k > 0.25")(np.ones(1), k=0.125)))
print(message(lambda: scaled("0.25 < x")(np.full(1, 0.125))))
print(message(lambda: relu(1.5)))
print(message(lambda: relu(1.5 - 0.5j)))
print(message(lambda: cuplug.operator("f(x\\u00ea: T[n]) -> T[n]", arguments="n", host="")))
"""


@pytest.fixture
def folder(tmp_path):
    """Return a folder of locales that has de_DE, with an encoding of one byte."""
    if not shutil.which("localedef"):
        pytest.skip("needs localedef")
    command = ["localedef", "-i", "de_DE", "-f", "ISO-8859-1", str(tmp_path / "de_DE")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"localedef: {done.stderr}")
    return tmp_path


def test_numbers_and_names_do_not_depend_on_the_locale(folder):
    variables = environment() | {"LOCPATH": str(folder), "CUPLUG_CHECK_ELEMENTS": "1"}
    command = [sys.executable, "-X", "utf8", "-c", PROGRAM]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    result, scalar, element, number, complex_number, name = done.stdout.split("\n", 5)
    assert result == "[2.5]"
    assert scalar.startswith("f: got k = 0.125, ")
    assert element.startswith("f: x: got 0.125 at (0,), expected 0.25 < x")
    assert "got the float 1.5, " in number
    assert "got the complex number 1.5-0.5j, " in complex_number
    assert name.startswith("signature: byte 3: got")
