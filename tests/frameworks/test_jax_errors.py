# SPDX-License-Identifier: Apache-2.0
"""Errors of operators inside XLA: JAX shows their text, and no later call raises them."""

import cuplug
import numpy as np
import pytest
from cuplug.ops import gather, relu
from jax_devices import jax, on

from cuplug.jax import Function  # isort: skip

jnp = jax.numpy
RAISED = (jax.errors.JaxRuntimeError, ValueError)
bad = cuplug.elementwise("bad(x: T) -> T", "x + unknown")


@pytest.fixture(autouse=True)
def host():
    with on("cpu"):
        yield


def fail_inside_xla():
    with pytest.raises(RAISED, match=r"bad: CompileError: .*unknown"):
        Function(bad)(jnp.zeros(3)).block_until_ready()


def test_the_next_failing_call_raises_its_own_error():
    for _ in range(2):
        fail_inside_xla()
        with pytest.raises(IndexError, match="index 9 at position 0"):
            gather(np.ones(3), np.array([9]))


def test_an_operator_from_source_raises_its_own_error_after_it():
    fail_inside_xla()
    other = cuplug.elementwise("other(x: T) -> T", "x + missing")
    with pytest.raises(cuplug.CompileError, match="missing"):
        other(np.zeros(3))
    with pytest.raises(cuplug.CompileError, match="unknown"):
        bad(np.zeros(3))


def test_deleted_arrays_are_named():
    x = jnp.ones(2)
    x.delete()
    for call in (relu, cuplug.fuse(lambda a: a + 1), cuplug.asarray, relu.infer):
        with pytest.raises(TypeError, match="it is an array of JAX that was deleted or donated"):
            call(x)
    with pytest.raises(TypeError, match=r"relu: out: got ArrayImpl .* deleted or donated"):
        relu(np.ones(2, "float32"), out=x)
