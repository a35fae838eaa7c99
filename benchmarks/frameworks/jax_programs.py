# SPDX-License-Identifier: Apache-2.0
"""Operators in programs of JAX: one call, and each further one, on the GPU or else the CPU."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import numpy as np
from measurement import Comparison, Contender, Target, statement
from module import Run, run_module

SIZE = 16
X = np.linspace(-1, 1, SIZE, dtype=np.float32)
N_CALLS = 1000  # calls of one program, so that its start takes a small fraction of the time
OURS, PEER = "jax.jit of cuplug.jax.relu", "jax.jit of jax.nn.relu"

Find = Callable[[], Callable[..., Any]]


def cuplug_relu() -> Callable[..., Any]:
    """cuplug's operator as a function of JAX."""
    from cuplug.jax import relu

    return relu


def jax_relu() -> Callable[..., Any]:
    """JAX's own."""
    import jax

    return jax.nn.relu


def jax_relu_apart() -> Callable[..., Any]:
    """JAX's own operation, which XLA must not fuse with the next one."""
    import jax

    return lambda x: jax.lax.optimization_barrier(jax.nn.relu(x))


def called(find: Find) -> Contender:
    """A call outside of a program, without a wait."""
    import jax

    function, x = find(), jax.numpy.asarray(X)
    return statement("call(x)", lambda: np.asarray(function(x)), call=function, x=x)


def compiled(find: Find) -> Contender:
    """A program that is one call."""
    import jax

    return called(lambda: jax.jit(find()))


def by_dlpack() -> Contender:
    """cuplug's operator on an array of JAX, outside of JAX."""
    from cuplug.ops import relu

    return called(lambda: relu)


def chained(find: Find) -> Contender:
    """A program of calls on the results of others. The time is for one call."""
    import jax

    function = find()

    def chain(x: Any) -> Any:
        for _ in range(N_CALLS):
            x = function(x)
        return x

    program, x = jax.jit(chain), jax.numpy.asarray(X)
    timer = timeit.Timer(lambda: program(x).block_until_ready())

    def time_ns(number: int) -> float:
        n_runs = max(number // N_CALLS, 1)
        return timer.timeit(n_runs) * 1e9 * number / (n_runs * N_CALLS)

    return Contender(time_ns, lambda: np.asarray(program(x)))


def wait() -> None:
    """Wait for the work that JAX has started."""
    import jax

    jax.block_until_ready(jax.numpy.zeros(1) + 1)


def platform() -> str:
    """Return the device on which JAX runs programs here."""
    import jax

    return {"gpu": "the GPU", "cpu": "the CPU"}[jax.default_backend()]


def measure(run: Run) -> None:
    """Operators in programs of JAX: one call, and each further one."""
    run.min_rounds = 15
    place, expected = platform(), np.maximum(X, 0)
    target = Target(OURS, "<= 1.00 x jax.nn.relu's", (PEER,))
    one = Comparison(f"relu of {SIZE} floats on {place}, in JAX", "us", PEER, [target], expected)
    one.synchronize = wait
    one.add(OURS, lambda: compiled(cuplug_relu))
    one.add(PEER, lambda: compiled(jax_relu))
    one.add("cuplug.jax.relu", lambda: called(cuplug_relu))
    one.add("cuplug.ops.relu, by DLPack", by_dlpack)
    run.measure(one, 1)
    ours, peer = "cuplug.jax.relu", "jax.nn.relu, kept apart"
    title = f"relu of {SIZE} floats on {place}, each of {N_CALLS} calls in one program of JAX"
    target = Target(ours, "<= 0.5 us", extra=0.5)
    many = Comparison(title, "us", peer, [target], expected, number=N_CALLS)
    many.synchronize = wait
    many.add(ours, lambda: chained(cuplug_relu))
    many.add(peer, lambda: chained(jax_relu_apart))
    run.measure(many, 0)


if __name__ == "__main__":
    run_module(measure)
