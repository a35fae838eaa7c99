# SPDX-License-Identifier: Apache-2.0
"""jax.vmap and derivatives of operators, in every order."""

from functools import partial

import cuplug
import numpy as np
import pytest
from jax_devices import jax, on, on_each_device
from places import FIXTURES

from cuplug.jax import (  # isort: skip
    Function,
    cumulative_prod,
    gather,
    join,
    leaky_relu,
    piecewise_scale,
    relu,
    repeat,
    scale,
    topk,
)

jnp = jax.numpy


@pytest.fixture(scope="module")
def functions(build_plugin):
    """Return the operators of the plugins with one for each kind of argument, and gradient."""
    files = [build_plugin(FIXTURES / f"{name}.c", name) for name in ("arguments", "language")]
    operators = [operator for file in files for operator in cuplug.load(file).operators]
    return {operator.name: Function(operator) for operator in operators}


@pytest.fixture(scope="module")
def graded(build_plugin):
    """Return the operators of the plugin with gradients of each kind."""
    operators = cuplug.load(build_plugin(FIXTURES / "gradients.c", "gradients")).operators
    return {operator.name: Function(operator) for operator in operators}


@pytest.fixture
def host():
    """Run programs on the CPU, with dtypes of 64 bits."""
    with on("cpu"), jax.enable_x64(True):
        yield


def points(*shape):
    """Return numbers apart from 0, where relu has a corner."""
    return jnp.linspace(-2.0, 3.0, 2 * int(np.prod(shape)))[::2].reshape(shape) + 0.01


def n_calls(function, *arguments):
    """Return how many calls a compiled program makes."""
    return jax.jit(function).lower(*arguments).compile().as_text().count('custom_call_target="cupl')


# ---- jax.vmap ------------------------------------------------------------------------------------


@on_each_device
def test_one_call_along_loop_dimensions(device):
    with on(device):
        x = points(3, 4)
        batched = jax.vmap(jax.vmap(relu))
        np.testing.assert_array_equal(batched(x), jnp.maximum(x, 0))
        assert n_calls(batched, x) == 1
        assert " while(" not in jax.jit(batched).lower(x).compile().as_text()


@on_each_device
@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0), (1, 0), (-1, None), (0, 1)])
def test_broadcasting_under_vmap(device, axes):
    add = Function(cuplug.elementwise("add(a: T, b: T) -> T", "a + 2 * b"))
    with on(device):
        a, b = points(3, 3), points(3, 3) + 1
        seen = jax.vmap(add, axes)(a, b)
        wanted = jax.vmap(lambda a, b: a + 2 * b, axes)(a, b)
        np.testing.assert_allclose(seen, wanted, rtol=1e-6)


def test_operands_of_other_ranks_under_vmap(host, functions):
    a, b = points(3, 4), points(2, 3, 1)
    batched = jax.vmap(functions["add"], (0, None))  # a vector each, with all of b
    np.testing.assert_allclose(batched(a, b), a[:, None, None] + b)
    assert n_calls(batched, a, b) == 1


def test_arrays_with_other_dimensions_under_vmap(host, build_plugin):
    affine = Function(cuplug.load(build_plugin(AFFINE, "affine")).affine)
    x, w = points(5, 2, 3), points(3)
    np.testing.assert_allclose(jax.vmap(affine, (0, None))(x, w), x * w)
    assert n_calls(jax.vmap(affine, (0, None)), x, w) == 1
    np.testing.assert_allclose(
        jax.vmap(affine, (None, 0))(x, points(5, 3)), x * points(5, 3)[:, None, None]
    )


AFFINE = """
#include <cuplug/plugin.h>
CUPLUG_ENTRY int affine_host(const cuplug_call *call) {
    const double *x = call->tensors[0].data, *w = call->tensors[1].data;
    double *out = call->outputs[0].data;
    const int64_t n = call->tensors[1].shape[0];
    for (int64_t i = 0; i < cuplug_n_elements(call->outputs); i++) out[i] = x[i] * w[i % n];
    return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(affine_host,
    "affine(x: float64[..., n], w: float64[n]) -> float64[..., n]", "x w.");
CUPLUG_PLUGIN(affine, "1.0");
"""


@on_each_device
def test_one_call_along_independent_dimensions(device):
    with on(device):
        x, i = points(4, 3), jnp.array([[0, 2], [1, 1], [3, 0]])
        several = jax.vmap(gather, (None, 0))
        np.testing.assert_array_equal(several(x, i), x[i])
        assert n_calls(several, x, i) == 1
        assert " while(" not in jax.jit(several).lower(x, i).compile().as_text()
        y = points(4, 3, 2)
        for axis in (1, 2):
            columns = jax.vmap(gather, (axis, None))
            wanted = jax.vmap(lambda y, i: y[i], (axis, None))(y, i[0])
            np.testing.assert_array_equal(columns(y, i[0]), wanted)
            assert n_calls(columns, y, i[0]) == 1


@on_each_device
def test_no_such_dimensions(device):
    """A call is made for each element."""
    with on(device):
        x, i = points(3, 4, 2), jnp.array([[0, 2], [1, 1], [3, 0]])
        seen, wanted = (jax.jit(jax.vmap(f))(x, i) for f in (gather, lambda x, i: x[i]))
        np.testing.assert_array_equal(seen, wanted)


@on_each_device
def test_arrays_in_place_under_vmap(device):
    with on(device):
        x, factors = points(3, 4), jnp.arange(3.0)
        np.testing.assert_allclose(jax.vmap(lambda x: scale(x, 2.0))(x), 2 * x)
        np.testing.assert_allclose(jax.vmap(scale)(x, factors), x * factors[:, None])
        np.testing.assert_allclose(
            jax.vmap(scale, (None, 0))(x, factors), x * factors[:, None, None]
        )


def test_named_outputs_and_lists_under_vmap(host, functions):
    x = points(3, 4)
    assert jax.vmap(functions["split"])(x)._fields == ("low", "high")
    seen = jax.vmap(lambda x, y: functions["stack"]([x, y]))(x, x + 1)
    np.testing.assert_array_equal(seen, jnp.stack([x, x + 1], axis=1))


# ---- Derivatives ---------------------------------------------------------------------------------


@on_each_device
@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (relu, lambda x: jnp.maximum(x, 0)),
        (lambda x: leaky_relu(x, 0.25), lambda x: jnp.where(x > 0, x, 0.25 * x)),
        (leaky_relu, lambda x: jnp.where(x > 0, x, 0.01 * x)),
        (lambda x: scale(x, 3.0), lambda x: 3 * x),
    ],
)
def test_gradients_of_stock_operators(device, function, wanted):
    with on(device):
        x = points(3, 4)
        for order in (
            lambda f: jax.grad(lambda x: (f(x) ** 3).sum()),
            lambda f: jax.jit(jax.grad(lambda x: (f(x) ** 3).sum())),
            lambda f: jax.vmap(jax.grad(lambda x: (f(x) ** 3).sum())),
            lambda f: jax.grad(lambda x: (jax.vmap(f)(x) ** 3).sum()),
            lambda f: jax.grad(jax.checkpoint(lambda x: (f(x) ** 3).sum())),
            lambda f: jax.grad(lambda x: (jax.grad(lambda y: (f(y) ** 3).sum())(x) ** 2).sum()),
            lambda f: jax.jit(jax.vmap(jax.jacrev(jax.grad(lambda x: (f(x) ** 3).sum())))),
        ):
            np.testing.assert_allclose(order(function)(x), order(wanted)(x), rtol=2e-5, atol=1e-6)


@on_each_device
def test_the_gradient_of_piecewise_scale(device):
    with on(device):
        x = points(9)
        factors = piecewise_scale(x) / x
        seen = jax.jit(jax.grad(lambda x: (piecewise_scale(x) ** 2).sum()))(x)
        np.testing.assert_allclose(seen, 2 * x * factors**2, rtol=1e-5)


@on_each_device
def test_forward_along_what_is_linear(device):
    with on(device):
        x = points(4)
        for transform in (jax.jacfwd, jax.jacrev, lambda f: jax.jit(jax.jacfwd(f))):
            np.testing.assert_allclose(transform(lambda x: scale(x, 3.0))(x), 3 * np.eye(4))
        hessian = jax.hessian(lambda x: (scale(x, 2.0) ** 2).sum())(x)
        np.testing.assert_allclose(hessian, 8 * np.eye(4))


@on_each_device
@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (relu, jax.nn.relu),
        (partial(leaky_relu, slope=0.25), partial(jax.nn.leaky_relu, negative_slope=0.25)),
        (lambda x: topk(x, 2).values, lambda x: jax.lax.top_k(x, 2)[0]),
    ],
    ids=["relu", "leaky_relu", "topk"],
)
def test_forward_along_what_is_not_linear(device, function, wanted):
    """By the transpose of the gradient."""

    def loss(f):
        return lambda x: (f(x) ** 3).sum()

    with on(device):
        x, t = points(2, 5), points(2, 5)[::-1]
        for order in (
            lambda f: jax.jvp(f, (x,), (t,)),
            lambda f: jax.jit(lambda x, t: jax.jvp(f, (x,), (t,)))(x, t),
            lambda f: jax.vmap(lambda x, t: jax.jvp(f, (x,), (t,)))(x, t),
            lambda f: jax.linearize(f, x)[1](t),
            lambda f: jax.jacfwd(jax.jacfwd(loss(f)))(x),
            lambda f: jax.jit(jax.hessian(loss(f)))(x),
            lambda f: jax.jvp(jax.checkpoint(loss(f)), (x,), (t,)),
            lambda f: jax.jvp(jax.grad(loss(f)), (x,), (t,)),
            lambda f: jax.grad(lambda x: jax.jvp(loss(f), (x,), (t,))[1])(x),
        ):
            for a, b in zip(*map(jax.tree.leaves, (order(function), order(wanted))), strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


@on_each_device
def test_derivatives_of_programs_with_loops(device):
    def loop(f):
        def step(carry, _):
            return f(carry) * 0.9 + 0.1, carry.sum()

        return lambda x: jax.lax.scan(step, x, None, length=4)[0].sum()

    with on(device):
        x = points(3, 4)
        wanted = jax.grad(loop(lambda x: jnp.maximum(x, 0)))(x)
        np.testing.assert_allclose(jax.grad(loop(relu))(x), wanted, rtol=1e-6)
        np.testing.assert_allclose(jax.vmap(jax.grad(loop(relu)))(x), wanted, rtol=1e-6)


@on_each_device
def test_gradients_of_complex_numbers_are_those_of_jax(device):
    with on(device):
        z = (points(4) + 1j * points(4)[::-1]).astype("complex64")
        factor = 2 + 3j

        def loss(function):
            return lambda z: jnp.abs(function(z)).sum()

        def seen(z):
            return scale(z, factor)

        def wanted(z):
            return z * factor

        gradients = [jax.grad(loss(function))(z) for function in (seen, wanted)]
        np.testing.assert_allclose(*gradients, rtol=1e-5)
        pushed = [jax.jvp(function, (z,), (1j * z,))[1] for function in (seen, wanted)]
        np.testing.assert_allclose(*pushed, rtol=1e-6)


def test_arrays_that_are_broadcast(host, graded):
    x, w = points(3, 4), points(4) + 1

    def loss(multiply):
        return lambda x, w: (multiply(x, w) ** 2).sum()

    for shape in [(4,), (1, 4), (3, 1), (1, 1), (2, 3, 4)]:
        w = points(*shape)
        seen = jax.grad(loss(graded["weigh"]), (0, 1))(x, w)
        wanted = jax.grad(loss(jnp.multiply), (0, 1))(x, w)
        for a, b in zip(seen, wanted, strict=True):
            np.testing.assert_allclose(a, b)


def test_arrays_that_are_left_out(host, graded):
    x = points(4)
    for function in (graded["weigh"], lambda x: graded["weigh"](x, None)):
        np.testing.assert_allclose(jax.grad(lambda x, f=function: f(x).sum())(x), 1)
    seen = jax.grad(lambda w: graded["weigh"](x, w).sum())(x)  # x itself does not move
    np.testing.assert_allclose(seen, x)


def test_several_results(host, graded):
    x = points(4)

    def both(split):
        return lambda x: split(x)[0].sum() * 3 + (split(x)[1] ** 2).sum()

    def wanted(x):
        return -x, x * x

    np.testing.assert_allclose(jax.grad(both(graded["split"]))(x), jax.grad(both(wanted))(x))
    seen = jax.grad(lambda x: graded["split"](x).high.sum())(x)  # of one of them
    np.testing.assert_allclose(seen, 2 * x)


def test_arrays_in_place(host, graded):
    x = points(4)
    seen = jax.grad(lambda x: (graded["square"](x) ** 2).sum())(x)
    np.testing.assert_allclose(seen, 4 * x**3)
    stretched = jax.grad(lambda x: (graded["stretch"](x, 3.0) ** 2).sum())
    np.testing.assert_allclose(stretched(x), 18 * x)
    np.testing.assert_allclose(jax.vmap(stretched)(x[:, None]), 18 * x[:, None])


# ---- Refusals ------------------------------------------------------------------------------------


def test_forward_where_the_gradient_has_none(host, graded):
    x = points(3)
    weigh = partial(graded["weigh"], w=x)
    for run in (lambda x: jax.jvp(weigh, (x,), (x,)), jax.jit(jax.jacfwd(weigh))):
        with pytest.raises(NotImplementedError, match="weigh: it is differentiated backward alone"):
            run(x)
    np.testing.assert_allclose(jax.grad(lambda x: weigh(x).sum())(x), x)


def test_operators_without_a_gradient(host, graded):
    x = points(3)
    with pytest.raises(NotImplementedError, match="total: it has no gradient"):
        jax.grad(lambda x: graded["total"]([x, x]).sum())(x)
    constant = jax.grad(
        lambda x: graded["total"]([jax.lax.stop_gradient(x), x * 0]).sum() * 0 + x[0]
    )
    with pytest.raises(NotImplementedError, match="stop_gradient"):
        constant(x)
    seen = jax.grad(lambda x: (graded["total"](list(jax.lax.stop_gradient([x]))) * x).sum())(x)
    np.testing.assert_allclose(seen, x)


def test_derivatives_with_respect_to_scalars(host):
    x = points(3)
    with pytest.raises(NotImplementedError, match="scale: factor: .*stop_gradient"):
        jax.grad(lambda factor: scale(x, factor).sum())(2.0)
    seen = jax.grad(lambda x: scale(x, jax.lax.stop_gradient(x[1])).sum())(x)
    np.testing.assert_allclose(seen, x[1])


@on_each_device
def test_gradients_of_rows_and_products(device):
    """Against the functions of JAX, with a zero among the factors."""
    with on(device):
        x = points(3, 4).at[1, 2].set(0)
        pairs = [
            (lambda x: join(x, x[:, 1:] ** 2), lambda x: jnp.concatenate([x, x[:, 1:] ** 2], 1)),
            (lambda x: repeat(x, 3), lambda x: jnp.tile(x, (1, 3))),
            (lambda x: cumulative_prod(x, axis=1), lambda x: jnp.cumprod(x, 1)),
        ]
        for own, other in pairs:
            seen, wanted = (jax.jit(jax.jacrev(f))(x) for f in (own, other))
            np.testing.assert_allclose(seen, wanted, rtol=1e-5, atol=1e-6)
