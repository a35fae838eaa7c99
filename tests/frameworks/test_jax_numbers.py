# SPDX-License-Identifier: Apache-2.0
"""Python numbers in JAX programs: calls return the same results with and without jit."""

import cuplug
import numpy as np
import pytest
from jax_devices import jax, on

from cuplug.jax import Function  # isort: skip

jnp = jax.numpy
add = Function(cuplug.elementwise("add(a: T, b: T) -> T", "a + b"))
mixed = Function(cuplug.elementwise("mixed(a: T, b: float32, c: U) -> T", "a + (T)b + (T)c"))
DTYPES = ["bool", "int8", "uint8", "int16", "int32", "uint32", "float16", "bfloat16", "float32"]
NUMBERS = [True, 2, 2.5, 1j]


@pytest.fixture(autouse=True)
def host():
    with on("cpu"):
        yield


def outcome(function, *args):
    try:
        y = function(*args)
    except TypeError:
        return TypeError
    return y.dtype, np.asarray(y).tolist()


@pytest.mark.parametrize("dtype", [*DTYPES, "complex64"])
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("is_first", [False, True])
def test_jit_changes_nothing(dtype, number, is_first):
    x = jnp.ones(2, dtype)
    args = (number, x) if is_first else (x, number)
    assert outcome(jax.jit(add), *args) == outcome(add, *args)


def test_gradients_and_vmap():
    x = jnp.arange(3.0)
    assert jax.jit(jax.vmap(add, (0, None)))(x, 2).tolist() == [2, 3, 4]
    assert jax.jit(lambda x, n: add(add(x, n), n))(x, 1).dtype == x.dtype
    assert jax.make_jaxpr(add)(x, 2).out_avals[0].dtype == x.dtype


def test_each_parameter_decides_for_itself():
    x, c = jnp.ones(2, "float16"), jnp.ones(2, "int8")
    assert outcome(jax.jit(mixed), x, 2, c) == outcome(mixed, x, 2, c)
    assert jax.jit(mixed)(x, 2, c).dtype == "float16"


def test_arrays_that_are_not_weak_are_refused_as_before():
    with pytest.raises(TypeError, match="int32"):
        jax.jit(add)(jnp.ones(2), jnp.int32(2) + jnp.zeros((), "int32"))
    assert jax.jit(add)(1, 2) == 3
