# SPDX-License-Identifier: Apache-2.0
"""`cuplug check` names mismatches between operators and their gradients."""

import subprocess

import pytest
from cuplug._engine.base.flags import get_include
from cuplug._engine.discovery.table import Row, Table
from cuplug._integration.author.check import check_file
from cuplug._integration.author.differentiable import wrong_gradients
from places import ROOT

SOURCE = """
#include <cuplug/plugin.h>
CUPLUG_ENTRY int any_host(const cuplug_call *call) {{ return call ? CUPLUG_OK : 0; }}
CUPLUG_HOST_OPERATOR(any_host, "f({parameters}) -> (y: T[n]) where T: floating", "F." {properties});
CUPLUG_HOST_OPERATOR(any_host, "g({gradient} where T: floating", "G.");
CUPLUG_PLUGIN(graded, "1.0.0");
"""
GRADIENT = "grad: T[n], x: T[n]) -> T[n]"


@pytest.fixture
def found(tmp_path):
    """Return the findings about gradients, as (level, text)."""

    def check(properties, gradient=GRADIENT, parameters="x: T[n], i: int64[n]"):
        source = SOURCE.format(properties=properties, gradient=gradient, parameters=parameters)
        (tmp_path / "graded.c").write_text(source)
        path = tmp_path / "libgraded.so"
        flags = ["-shared", "-fPIC", "-fvisibility=hidden", f"-I{get_include()}"]
        subprocess.run(["gcc", *flags, tmp_path / "graded.c", "-o", path], check=True)
        findings = check_file(str(path))
        others = {x.rule for x in findings if x.level != "ok"} - {"gradients"}
        assert others == set()
        return [(x.level, x.text) for x in findings if x.rule == "gradients"]

    return check


@pytest.mark.parametrize(
    "properties",
    [
        "",
        "CUPLUG_GRADIENT(g)",
        "CUPLUG_GRADIENT(graded.g)",
        "CUPLUG_GRADIENT(other.anything)",
        "CUPLUG_LINEAR(x)",
    ],
)
def test_what_fits(found, properties):
    assert found(properties) == [("ok", "operators and their gradients fit")]


NOT_LINEAR = "which is no array of floating or complex numbers, expected"
DOES_NOT_FIT = "the gradient of f does not fit: g: "
BROKEN = [
    (
        "CUPLUG_GRADIENT(nowhere)",
        GRADIENT,
        "f names the gradient nowhere, which is no operator of this plugin",
    ),
    (
        "CUPLUG_GRADIENT(graded.nowhere)",
        GRADIENT,
        "f names the gradient graded.nowhere, which is no operator of this plugin",
    ),
    (
        '"\\0gradient=g, h"',
        GRADIENT,
        'f names the gradient "g, h", expected operator or plugin.operator',
    ),
    ('"\\0gradient"', GRADIENT, 'f names the gradient "", expected operator or plugin.operator'),
    ("CUPLUG_LINEAR(x, i)", GRADIENT, f"f is linear in i, {NOT_LINEAR} one of x"),
    ("CUPLUG_LINEAR(z)", GRADIENT, f"f is linear in z, {NOT_LINEAR} one of x"),
    (
        "CUPLUG_GRADIENT(g)",
        "grad: T[n], z: T[n]) -> T[n]",
        DOES_NOT_FIT + "z: f has no such parameter or result",
    ),
    (
        "CUPLUG_GRADIENT(g)",
        "x: T[n]) -> T[n]",
        DOES_NOT_FIT + "no parameter takes the gradient of a result: expected grad",
    ),
    (
        "CUPLUG_GRADIENT(g)",
        "grad: T[n], i: T[n]) -> T[n]",
        DOES_NOT_FIT + "i: its type is not that of f",
    ),
    (
        "CUPLUG_GRADIENT(g)",
        "grad: T[n]) -> T[n, n]",
        DOES_NOT_FIT + "the gradient of x: its type is not that of f",
    ),
    (
        "CUPLUG_GRADIENT(g)",
        "grad: T[n]) -> (grad_i: T[n])",
        DOES_NOT_FIT + "grad_i: expected the name of an array of f behind grad_",
    ),
    ("CUPLUG_GRADIENT(g)", "grad: T[n])", DOES_NOT_FIT + "got no output, expected a gradient"),
]


@pytest.mark.parametrize(("properties", "gradient", "text"), BROKEN)
def test_what_does_not_fit(found, properties, gradient, text):
    assert found(properties, gradient) == [("error", text)]


def test_linear_without_any_array_of_floats():
    row = Row("", "any_host", "f(i: int64[n]) -> int64[n]", "F.", 0, {"linear": "i"})
    table = Table("", "ok", "", "graded", "1.0.0", (), 0x20000, (row,))
    ((text, _),) = wrong_gradients(table)
    assert text == f"f is linear in i, {NOT_LINEAR} nothing: there is none"


STOCK = sorted({path.parent.name for path in ROOT.glob("plugins/*/*.c")})


@pytest.mark.slow
@pytest.mark.parametrize("name", STOCK)
def test_stock_plugins_fit(name):
    path = ROOT / f"build/python/cuplug/lib/cuplug/lib{name}.so"
    assert {x.level for x in check_file(str(path)) if x.rule == "gradients"} == {"ok"}
