# SPDX-License-Identifier: Apache-2.0
"""The arguments of the operator that computes a gradient, and the parameters of its results."""

import re

import pytest
from cuplug._engine.signature.gradient import linear_names, match_gradient, results_of
from cuplug._engine.signature.signature import parse


def of_floats(text):
    return parse(text + " where T: floating" * ("T[" in text))


def matched(operator, *gradient, linear=()):
    found = match_gradient(of_floats(operator), [of_floats(text) for text in gradient], linear)
    arguments = {name: (x.kind, x.number) for name, x in found.arguments.items()}
    return arguments, found.targets


def test_names_decide():
    operator = "f(k: int, x: T[n], w: T[m]) -> (y: T[n], z: T[m])"
    gradient = "g(grad_z: T[m], w: T[m], grad_y: T[n], y: T[n], eps: float = 1.0) -> "
    gradient += "(grad_w: T[m], grad_x: T[n])"
    arguments, targets = matched(operator, gradient)
    assert arguments == {
        "grad_z": ("gradient", 1),
        "w": ("argument", 2),
        "grad_y": ("gradient", 0),
        "y": ("result", 0),
    }
    assert targets == (2, 1)


def test_the_only_result_of_each():
    arguments, targets = matched("f(i: T, x: T[n]) -> T[n]", "g(grad: T[n], x: T[n]) -> T[n]")
    assert arguments == {"grad": ("gradient", 0), "x": ("argument", 1)}
    assert targets == (1,)
    assert matched("f(x: T[n]) -> (y: T[n])", "g(grad_y: T[n]) -> (grad_x: T[n])")[1] == (0,)


def test_an_operator_that_is_its_own_gradient():
    backward = "g(grad: T[...], x: T[...]) -> T[...]"
    assert matched(backward, backward) == (
        {"grad": ("gradient", 0), "x": ("argument", 1)},
        (0,),
    )


def test_detached_outputs_have_no_gradient():
    operator = "f(x: T[n]) -> (y: T[n], detached scale: T[n])"
    arguments, targets = matched(operator, "g(grad_y: T[n], scale: T[n]) -> T[n]")
    assert arguments == {"grad_y": ("gradient", 0), "scale": ("result", 1)}
    assert targets == (0,)
    with pytest.raises(ValueError, match="^g: grad_scale: f has no such parameter or result$"):
        matched(operator, "g(grad_y: T[n], grad_scale: T[n]) -> T[n]")
    with pytest.raises(
        ValueError, match="^g: no parameter takes the gradient of a result: expected"
    ):
        matched("f(x: T[n]) -> detached y: T[n]", "g(grad: T[n]) -> T[n]")
    missing = "g: got no parameter for the gradient of scale, expected grad_scale; add it, or"
    with pytest.raises(ValueError, match=f"^{missing}"):
        matched("f(x: T[n]) -> (y: T[n], scale: T[n])", "g(grad_y: T[n]) -> T[n]")


def test_in_out_arrays_are_results():
    operator = "f(inout data: T[n], factor: T)"
    assert [x.name for x in results_of(of_floats(operator))] == ["data"]
    for name in ("grad", "grad_data"):
        found = matched(operator, f"g({name}: T[n], factor: T) -> T[n]")
        assert found == ({name: ("gradient", 0), "factor": ("argument", 1)}, (0,))
    back = matched("g(grad: T[n], factor: T) -> T[n]", operator, linear=("data",))
    assert back == ({"data": ("gradient", 0), "factor": ("argument", 1)}, (0,))


def test_a_linear_operator_of_several_arrays_is_the_gradient_of_its_gradient():
    back = "g(grad: T[n], k: int) -> (grad_y: T[n], grad_x: T[n])"
    put = "f(x: T[n], y: T[n], k: int) -> T[n]"
    wanted = {"x": ("gradient", 1), "y": ("gradient", 0), "k": ("argument", 1)}
    assert matched(back, put, linear=("x", "y")) == (wanted, (0,))
    with pytest.raises(ValueError, match="f: y: g has no such parameter or result"):
        matched(back, put, linear=("x",))


def test_a_linear_operator_is_the_gradient_of_its_gradient():
    taking = "take(x: T[n], i: int64[m]) -> T[m]"
    adding = "add(grad: T[m], i: int64[m], x: T[n]) -> T[n]"
    there = {"grad": ("gradient", 0), "i": ("argument", 1), "x": ("argument", 0)}
    assert matched(taking, adding) == (there, (0,))
    back = {"x": ("gradient", 0), "i": ("argument", 1)}
    assert matched(adding, taking, linear=("x",)) == (back, (0,))


def test_a_parameter_of_any_row_is_given():
    rows = ("g(grad: T[n]) -> T[n]", "g(grad: T[n], axis: int) -> T[n]")
    assert matched("f(x: T[n], axis: int) -> T[n]", *rows)[0]["axis"] == ("argument", 1)
    assert "axis" not in matched("f(x: T[n]) -> T[n]", *rows)[0]


BROKEN = {
    "g(x: T[n]) -> T[n]": "g: no parameter takes the gradient of a result: expected grad",
    "g(grad: T[n], z: T[n]) -> T[n]": "g: z: f has no such parameter or result",
    "g(grad: T[n], k: T[n]) -> T[n]": "g: k: its type is not that of f",
    "g(grad: int32[n]) -> float32[n]": "g: grad: its type is not that of f",
    "g(grad: T[n, n]) -> T[n]": "g: grad: its type is not that of f",
    "g(grad: T[n])": "g: got no output, expected a gradient",
    "g(grad: T[n]) -> int32[n]": "g: the gradient of x: its type is not that of f",
    "g(grad: T[n]) -> T[n, n]": "g: the gradient of x: its type is not that of f",
    "g(grad: T[n]) -> (T[n], T[n])": "g: an output without a name: expected the name of an array "
    "of f behind grad_",
    "g(grad: T[n]) -> (grad_i: T[n], grad_x: T[n])": "g: grad_i: expected the name of an array of "
    "f behind grad_",
    "g(grad: T[n]) -> (grad_z: T[n])": "g: grad_z: expected the name of an array of f behind grad_",
}


@pytest.mark.parametrize("gradient", BROKEN)
def test_what_does_not_fit_is_named(gradient):
    operator = "f(i: int32[n], x: T[n], k: int = 1) -> (y: T[n])"
    with pytest.raises(ValueError, match=f"^{re.escape(BROKEN[gradient])}$"):
        matched(operator, gradient)


def test_operators_without_gradients():
    gradient = "g(grad: int32[n]) -> int32[n]"
    with pytest.raises(ValueError, match="^g: f has no array of floating or complex numbers$"):
        matched("f(x: int32[n]) -> int32[n]", gradient)
    with pytest.raises(
        ValueError, match="takes the gradient of a result: expected results with nam"
    ):
        matched("f(x: T[n]) -> (T[n], T[n])", gradient)


def test_rows_that_take_different_parameters():
    rows = ("g(grad: T[n], x: T[n]) -> T[n]", "g(grad: T[n], k: int) -> T[n]")
    with pytest.raises(ValueError, match="^g: k: another row takes it, this one does not: g"):
        matched("f(x: T[n], k: int) -> T[n]", *rows)


@pytest.mark.parametrize("value", ["x, y", "x,y", " x , y "])
def test_names_of_linear_arrays(value):
    assert linear_names(value) == ("x", "y")
    assert linear_names(None) == ()


@pytest.mark.parametrize(
    ("operator", "gradient", "missing"),
    [
        ("f(x: T[n]) -> (y: T[n], total: T[])", "g(grad_y: T[n]) -> (grad_x: T[n])", "total"),
        (
            "f(x: T[n]) -> (y: T[n], total: T[])",
            "g(grad_total: T[], x: T[n]) -> (grad_x: T[n])",
            "y",
        ),
        ("f(x: T[n], inout z: T[n]) -> (y: T[n])", "g(grad_y: T[n]) -> (grad_x: T[n])", "z"),
    ],
)
def test_a_result_whose_gradient_nothing_takes(operator, gradient, missing):
    wanted = f"g: got no parameter for the gradient of {missing}, expected grad_{missing}; add it"
    with pytest.raises(ValueError, match=wanted):
        matched(operator, gradient)


def test_results_of_integers_have_no_gradient():
    operator = "f(x: T[n]) -> (y: T[n], at: int64[n])"
    wanted = {"grad_y": ("gradient", 0)}
    assert matched(operator, "g(grad_y: T[n]) -> (grad_x: T[n])")[0] == wanted
