# SPDX-License-Identifier: Apache-2.0
"""`cuplug test` checks gradients, and `linear`, against an operator's results."""

import inspect

import cuplug
import numpy as np
import pytest
from cuplug._integration.commands import property_runner
from cuplug._integration.commands.differentiation import gradient_agrees, linear_agrees
from cuplug._integration.commands.property_outcomes import Tried
from places import FIXTURES
from processes import run


@pytest.fixture(scope="module")
def graded(build_plugin):
    return str(build_plugin(FIXTURES / "graded.c", "graded", extra=["-lm"]))


@pytest.fixture(scope="module")
def results(graded):
    found = property_runner.try_all(graded, examples=8)
    return {(r.operator, r.property): r for r in found}


def on_one_example(check, graded, name):
    operator = getattr(cuplug.load(graded), name)
    shapes = {"x": (3,), "y": (2, 1)} if ", y:" in operator.signatures[0] else {"x": (3,)}
    arguments = {x: np.zeros(shape) for x, shape in shapes.items()}
    check(Tried(operator), arguments, signature=operator.signatures[0])


RIGHT = {"right": "square_backward", "blend": "blend_backward", "root": "root_backward"}


@pytest.mark.parametrize("operator", RIGHT)
def test_one_example_of_what_is_right(graded, operator):
    on_one_example(gradient_agrees, graded, operator)


@pytest.mark.slow
@pytest.mark.parametrize("operator", RIGHT)
def test_a_gradient_that_is_right(results, operator):
    result = results[operator, "gradient"]
    assert (result.ok, result.tried, result.text) == (True, True, f"checked: {RIGHT[operator]}")


WRONG = {
    "halved": "half_of_it: the gradient of x along a random direction: got ",
    "unsigned_one": "of_positive: the gradient of x along a random direction: got ",
    "refused": "ValueError: refusing: x: got a number, expected none",
    "narrow": "it refuses what narrow took: narrow_backward: got n = ",
    "missing": "graded.missing: its gradient: there is no nowhere in ",
}


@pytest.mark.parametrize("operator", WRONG)
def test_one_example_of_what_is_wrong(graded, operator):
    with pytest.raises((AssertionError, ValueError)) as error:
        on_one_example(gradient_agrees, graded, operator)
    assert str(error.value).startswith(WRONG[operator].removeprefix("ValueError: "))


def test_one_example_of_linear(graded):
    on_one_example(linear_agrees, graded, "blend")
    for operator in ("half_linear", "not_linear"):
        with pytest.raises(AssertionError, match="^it is not linear in x: a combination of arrays"):
            on_one_example(linear_agrees, graded, operator)


@pytest.mark.slow
@pytest.mark.parametrize("operator", WRONG)
def test_a_gradient_that_is_wrong(results, operator):
    result = results[operator, "gradient"]
    assert not result.ok
    assert result.text.startswith(WRONG[operator])
    assert f"{operator}(x=np.array([" in result.code


@pytest.mark.slow
def test_linear(results):
    assert results["blend", "linear"].text == "checked: x, y"
    assert results["blend", "linear"].ok
    for operator in ("half_linear", "not_linear"):
        result = results[operator, "linear"]
        assert not result.ok
        assert result.text.startswith("it is not linear in x: a combination of arrays and that of")


@pytest.mark.slow
def test_what_is_not_declared_is_not_tried():
    names = {r.property for r in property_runner.try_all("hello", examples=1)}
    assert names & {"gradient", "linear"} == set()


def test_an_optional_in_out_array_that_is_left_out():
    operator = cuplug.find("rows.rotary")
    tables = {name: np.ones((3, 2), "float32") for name in ("cos", "sin")}
    arguments = {"q": np.ones((2, 1, 4), "float32"), **tables, "positions": np.array([2, 0])}
    for k in (None, np.ones((2, 3, 4), "float32")):
        gradient_agrees(Tried(operator), arguments | {"k": k}, signature=operator.signatures[0])


def test_of_stock_operators():
    """Also complex numbers, in-out arrays, and a gradient whose own gradient is the operator."""
    for name in ("scale", "scale_backward"):
        operator = cuplug.find(name)
        array, *_ = inspect.signature(operator).parameters
        for dtype, factor in (("float32", 2.5), ("complex64", 2 - 3j)):
            arguments = {array: np.zeros((2, 3), dtype), "factor": factor}
            for check in (gradient_agrees, linear_agrees):
                check(Tried(operator), arguments, signature=operator.signatures[0])


def test_the_command_says_what_was_checked():
    done = run("test", "relu_backward", "--examples", "3")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["ok", "gradient", "checked:", "relu_backward"] in lines
    assert ["ok", "linear", "checked:", "grad"] in lines
