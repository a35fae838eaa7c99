# SPDX-License-Identifier: Apache-2.0
"""Gradients of adopted functions, as their descriptions name them."""

import pickle

import cuplug
import numpy as np
import pytest
from cuplug._engine.lookup.gradient import find_gradient
from places import FIXTURES

pytest.importorskip("cffi")

DESCRIPTION = {
    "prototypes": """
        void square(const double *x, long n, double *y);
        void square_backward(const double *x, const double *grad, long n, double *y);
    """,
    "square": {
        "signature": "square(x: float64[n]) -> y: float64[n]",
        "arguments": "x, n, y",
        "gradient": "square_backward",
    },
    "square_backward": {
        "signature": "square_backward(x: float64[n], grad: float64[n]) -> grad_x: float64[n]",
        "arguments": "x, grad, n, grad_x",
        "linear": "grad",
    },
}


@pytest.fixture
def library(build_plugin):
    return build_plugin(FIXTURES / "habits.c", "habits", extra=["-fvisibility=default"])


def changed(name, **items):
    return {**DESCRIPTION, name: {**DESCRIPTION[name], **items}}


def test_the_gradient_is_that_of_the_description(library):
    found = cuplug.adopt(library, DESCRIPTION)
    operator, gradient = find_gradient(found.square, 0)
    assert operator == found.square_backward
    assert [x.kind for x in gradient.arguments.values()] == ["argument", "gradient"]
    assert gradient.targets == (0,)
    assert find_gradient(found.square_backward, 0) is None


def test_two_descriptions_have_gradients_of_their_own(library):
    """Both have operators of the same names, in the same library."""
    one = cuplug.adopt(library, DESCRIPTION)
    other = cuplug.adopt(library, changed("square_backward", doc="Another."))
    assert find_gradient(one.square, 0)[0] == one.square_backward
    assert find_gradient(other.square, 0)[0] == other.square_backward
    assert one.square_backward != other.square_backward


def test_a_gradient_that_is_its_own(library):
    found = cuplug.adopt(library, changed("square_backward", gradient="square_backward"))
    assert find_gradient(found.square_backward, 0)[0] == found.square_backward


def test_pickled_operators_have_it(library):
    square = pickle.loads(pickle.dumps(cuplug.adopt(library, DESCRIPTION).square))
    operator, _ = find_gradient(square, 0)
    x = np.array([1.0, 3.0])
    np.testing.assert_array_equal(operator(x, np.ones(2)), 2 * x)


@pytest.mark.parametrize(
    ("name", "items", "message"),
    [
        ("square", {"gradient": "cube"}, "square: gradient: got 'cube', expected an operator of"),
        ("square_backward", {"linear": "n"}, "linear: got 'n', expected one of x, grad"),
    ],
)
def test_wrong_names(library, name, items, message):
    with pytest.raises(ValueError, match=message):
        cuplug.adopt(library, changed(name, **items))


def test_a_gradient_that_does_not_fit(library):
    signature = "square_backward(x: float64[n], other: float64[n]) -> grad_x: float64[n]"
    wrong = {"signature": signature, "arguments": "x, other, n, grad_x", "linear": ""}
    found = cuplug.adopt(library, changed("square_backward", **wrong))
    with pytest.raises(
        ValueError, match="no parameter takes the gradient of a result: expected grad"
    ):
        find_gradient(found.square, 0)


def test_torch_and_jax(library):
    """They differentiate it."""
    torch = pytest.importorskip("torch")
    square = cuplug.adopt(library, DESCRIPTION).square
    x = torch.tensor([1.0, 3.0], dtype=torch.float64, requires_grad=True)
    square(x).sum().backward()
    assert x.grad.tolist() == [2, 6]
    torch.autograd.gradcheck(square, (x,))
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        found = jax.grad(lambda y: square(y).sum())(jax.numpy.array([1.0, 3.0]))
    assert found.tolist() == [2, 6]
