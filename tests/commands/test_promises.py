# SPDX-License-Identifier: Apache-2.0
"""Promises of overloads, memory next to inputs, and results in a fixture, on one example."""

import cuplug
import numpy as np
import pytest
from cuplug._engine.signature.signature import parse
from cuplug._integration.commands.promises import (
    gives_what_is_expected,
    is_independent,
    promised,
    works_in_place,
)
from cuplug._integration.commands.properties import reads_inputs_alone
from cuplug._integration.commands.property_outcomes import Tried
from places import ROOT

SOURCE = ROOT / "tests" / "commands" / "kernels" / "further.cpp"
LINES = np.float32([[1, 2], [3, 4], [5, 6]])


@pytest.fixture
def check(build_plugin):
    """Return a function that calls a check with an operator that has a defect."""

    def checked(function, name, defect, arguments, **keywords):
        extra, defines = ["-Wl,--no-as-needed", "-lstdc++", "-lm"], [f"DEFECT={defect}"]
        path = build_plugin(SOURCE, "further", defines=defines, extra=extra)
        operator = getattr(cuplug.load(path), name)
        function(Tried(operator), arguments, **keywords)

    return checked


def found(check, defect, message, *given, **keywords):
    check(*given[:2], 0, *given[2:], **keywords)
    with pytest.raises(AssertionError, match=message):
        check(*given[:2], defect, *given[2:], **keywords)


def test_reads_past_the_end(check):
    images = {"x": -np.ones((1, 1, 2, 2), "float32")}
    message = "^other memory beside inputs: array"
    found(check, 2, message, reads_inputs_alone, "pool", images)


def test_lines_that_depend_on_each_other(check):
    arguments = {"x": LINES, "start": 1.0}
    signature = "scan(x: T[..., n], start: float = 0) -> (y: T[..., n], end: T[...])"
    signature += " where T: float32 | float64"
    message = "^elements 1 to 3 of [.]{3}: array"
    found(check, 1, message, is_independent, "scan", arguments, signature=signature)


def test_an_output_that_is_written_before_the_input_is_read(check):
    signature = "softplus(x: T[n], bias: T[n] = None) -> T[n] where T: float32 | float64"
    message = "^with x as out=: array"
    found(check, 2, message, works_in_place, "softplus", {"x": LINES[0]}, signature=signature)


def test_other_results_than_expected(check):
    def expected(x, bias):
        return np.logaddexp(0, x if bias is None else x + bias)

    signature = "softplus(x: T[n], bias: T[n] = None) -> T[n] where T: float32 | float64"
    how = {"signature": signature, "expected": expected}
    check(gives_what_is_expected, "softplus", 3, {"x": LINES[0]}, **how)
    arguments = {"x": LINES[0], "bias": LINES[1]}
    found(check, 3, "^results: array", gives_what_is_expected, "softplus", arguments, **how)
    for wrong, message in (
        (lambda bias: (bias, bias), "^expected_softplus: got 2 results, expected 1"),
        (lambda x, bias: x[:1], r"^got the shape \(2,\), expected \(1,\)"),
    ):
        with pytest.raises(AssertionError, match=message):
            check(gives_what_is_expected, "softplus", 0, arguments, **(how | {"expected": wrong}))


def test_groups_of_dimensions():
    """An output may have several groups, and arrays may lack some."""
    gather = cuplug.find("gather")
    for shape, indices in (((2, 4), (3,)), ((2, 4, 3), ()), ((2,), (3, 2))):
        arguments = {"source": np.ones(shape), "index": np.zeros(indices, int)}
        is_independent(Tried(gather), arguments, signature=gather.signatures[0])
    add = cuplug.elementwise("add(x: float32[...], y: float32[...]) -> float32[...]", "x + y")
    for shape in ((2,), (3, 1), (3, 2), ()):
        is_independent(
            Tried(add), {"x": LINES, "y": np.ones(shape, "float32")}, signature=add.signatures[0]
        )


NUMBERED = """
#include <cuplug/plugin.h>
CUPLUG_ENTRY int numbered_host(const cuplug_call *call) {
  int64_t n = cuplug_n_elements(&call->tensors[0]);
  for (int64_t i = 0; i < n; i++) ((double *)call->outputs[0].data)[i] = (double)i;
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(numbered_host, "numbered(x: float64[*s], axis: int = -1) -> float64[*s]",
                     "A promise that is not kept." CUPLUG_ALONG(axis));
CUPLUG_PLUGIN(numbered, "1.0.0");
"""


def test_all_dimensions_but_an_axis(build_plugin, tmp_path):
    sort = cuplug.find("sort")
    assert promised(sort, parse(sort.signatures[0]), set())["independent"] == "all but axis"
    for axis in (0, -1):
        is_independent(Tried(sort), {"x": LINES, "axis": axis}, signature=sort.signatures[0])
    take = cuplug.find("take_along_axis")
    arguments = {"source": LINES, "indices": np.zeros((3, 5), int), "axis": -1}
    is_independent(Tried(take), arguments, signature=take.signatures[0])
    source = tmp_path / "numbered.c"
    source.write_text(NUMBERED)
    numbered = cuplug.load(build_plugin(source, "numbered")).numbered
    with pytest.raises(AssertionError, match="^elements 1 to 3 of dimension 0: array"):
        arguments = {"x": LINES.astype(float), "axis": -1}
        is_independent(Tried(numbered), arguments, signature=numbered.signatures[0])


def test_promised():
    relu, gather = cuplug.find("relu"), cuplug.find("gather")
    assert promised(relu, parse(relu.signatures[0]), {"expected_relu"}) == {
        "gradient": "relu_backward",
        "in place": "out= is an input",
        "independent": "...",
        "expected results": "expected_relu",
    }
    found = promised(gather, parse(gather.signatures[0]), set())
    assert "in place" not in found
    assert "expected results" not in found
