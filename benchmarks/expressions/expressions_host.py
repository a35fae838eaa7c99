# SPDX-License-Identifier: Apache-2.0
"""Functions on the CPU in expressions, against NumPy, numexpr, PyTorch and JAX; strided arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from measurement import SETTLED_S, Comparison, Contender, Target, statement
from module import GIB, Run, run_module

KI, MI = 1 << 10, 1 << 20
PEERS = ("numpy", "numexpr", "torch", "jax")
# NumPy's, PyTorch's and JAX's names of C functions. One text is used by cuplug and numexpr.
PLAIN = ("exp", "log", "sin", "cos", "tanh")
GELU = "{half} * x * (1 + erf(x * {root}))"
TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}
SLOPE = 0.01
Function = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """A computation, its arrays, and each library's spelling."""

    title: str
    arrays: tuple[np.ndarray, ...]
    expected: np.ndarray
    cuplug: Callable[[], Function]
    numpy: Function | None = None
    numexpr: str | None = None
    torch: Callable[[Any], Function] | None = None
    jax: Callable[[Any, Any], Function] | None = None
    wanted: Target = field(default_factory=lambda: Target("cuplug", "<= the best peer", PEERS))


def expression(text: str, n_arrays: int = 1) -> Callable[[], Function]:
    """Return a function that creates cuplug's operator of one or two arrays."""
    given = ", ".join(f"{x}: T" for x in "xy"[:n_arrays])

    def make() -> Function:
        import cuplug

        return cuplug.elementwise(f"of({given}) -> T", text)

    return make


def erf(x: np.ndarray) -> np.ndarray:
    """SciPy's function, since NumPy has none."""
    from scipy import special

    return special.erf(x)


def numpy_gelu(x: np.ndarray, erf: Function = erf) -> np.ndarray:
    """NumPy's and SciPy's usual spelling."""
    half, root = x.dtype.type(0.5), x.dtype.type(0.5**0.5)
    return half * x * (1 + erf(x * root))


def exact_erf(x: np.ndarray) -> np.ndarray:
    """Python's function, one number after the other."""
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def functions(dtype: str) -> Iterator[Case]:
    """Yield functions of 1 Mi numbers."""
    random = np.random.default_rng(1)
    x, y = (random.uniform(0.1, 3, MI).astype(dtype) for _ in "xy")
    within = Target("cuplug", "<= 1.1 x the best peer", PEERS, 1.1)

    def case(
        name: str,
        arrays: tuple[np.ndarray, ...],
        text: str,
        exact: Function | None = None,
        **of: Any,
    ) -> Case:
        expected = (exact or of["numpy"])(*arrays)
        title = f"{name}, 1 Mi {dtype}, CPU"
        return Case(title, arrays, expected, expression(text, len(arrays)), wanted=within, **of)

    for name in PLAIN:
        torch = lambda torch, name=name: getattr(torch, name)  # noqa: E731
        jax = lambda _, jnp, name=name: getattr(jnp, name)  # noqa: E731
        text, function = f"{name}(x)", getattr(np, name)
        yield case(name, (x,), text, numpy=function, numexpr=text, torch=torch, jax=jax)
    of_erf = {"torch": lambda torch: torch.erf, "jax": lambda jax, _: jax.scipy.special.erf}
    yield case("erf", (x,), "erf(x)", exact_erf, numpy=erf, **of_erf)
    powers = {"torch": lambda torch: torch.pow, "jax": lambda _, jnp: jnp.power}
    yield case("pow", (x, y), "pow(x, y)", numpy=np.power, numexpr="x ** y", **powers)
    text = GELU.format(half="(T)0.5", root="(T)0.7071067811865476")
    gelus = {
        "torch": lambda torch: torch.nn.functional.gelu,
        "jax": lambda jax, _: lambda x: jax.nn.gelu(x, approximate=False),
    }
    exact = partial(numpy_gelu, erf=exact_erf)
    yield case("gelu", (x - 1,), text, exact, numpy=numpy_gelu, **gelus)


def stock(name: str, *more: Any) -> Callable[[], Function]:
    """Return a function that finds cuplug's stock operator."""

    def make() -> Function:
        import cuplug

        operator = cuplug.find(name)
        return lambda *arrays: operator(*arrays, *more)

    return make


def strided() -> Iterator[Case]:
    """Yield operators on rows sliced from a matrix, and on arrays broadcast along the last axis."""
    x = np.random.default_rng(2).standard_normal((1024, 1536), np.float32)[:, 256:1280]
    where = "of (1024, 1024) floats cut from (1024, 1536), CPU"
    plain = np.ascontiguousarray(x)
    relu = {"torch": lambda torch: torch.relu, "jax": lambda jax, _: jax.nn.relu}
    yield Case(
        f"relu {where}",
        (x,),
        np.maximum(plain, 0),
        stock("relu"),
        lambda x: np.maximum(x, 0),
        "where(x > 0, x, 0)",
        **relu,
    )
    leaky = {
        "torch": lambda torch: lambda x: torch.nn.functional.leaky_relu(x, SLOPE),
        "jax": lambda jax, _: lambda x: jax.nn.leaky_relu(x, SLOPE),
    }
    of_leaky: Function = lambda x: np.maximum(x, np.float32(SLOPE) * x)  # noqa: E731
    title, expected = f"leaky_relu {where}", of_leaky(plain)
    yield Case(title, (x,), expected, stock("leaky_relu", SLOPE), of_leaky, **leaky)
    text = f"x > 0 ? x : (T){SLOPE} * x"
    title = f"leaky_relu from an expression {where}"
    yield Case(title, (x,), expected, expression(text), of_leaky, **leaky)
    column = plain[:, :1]
    sums = {"torch": lambda torch: torch.add, "jax": lambda _, jnp: jnp.add}
    yield Case(
        "(1024, 1024) + (1024, 1) floats, CPU",
        (plain, column),
        plain + column,
        expression("x + y", 2),
        np.add,
        "x + y",
        **sums,
    )


def near(result: Function, case: Case) -> Function:
    """Check a first result. Libraries round functions differently."""
    np.testing.assert_allclose(result(), case.expected, TOLERANCE[case.expected.dtype.name], 1e-6)
    return result


def numexpr_contender(case: Case) -> Contender:
    """numexpr, with its text compiled ahead."""
    import numexpr

    assert case.numexpr
    given = dict(zip("xy", case.arrays, strict=False))
    call: Function = lambda: numexpr.evaluate(case.numexpr, given)  # noqa: E731
    return statement("call()", near(call, case), call=call)


def torch_contender(case: Case) -> Contender:
    """PyTorch on the memory of the NumPy arrays."""
    import torch

    assert case.torch
    function, arrays = case.torch(torch), [torch.from_numpy(x) for x in case.arrays]
    result = near(lambda: function(*arrays).numpy(), case)
    return statement("function(*arrays)", result, function=function, arrays=arrays)


def jax_contender(case: Case) -> Contender:
    """JAX's compiled function on its own arrays."""
    import jax

    jax.config.update("jax_enable_x64", True)
    assert case.jax
    function = jax.jit(case.jax(jax, jax.numpy))
    arrays = [jax.device_put(x, jax.devices("cpu")[0]) for x in case.arrays]
    call: Function = lambda: jax.block_until_ready(function(*arrays))  # noqa: E731
    return statement("call()", near(lambda: np.asarray(call()), case), call=call)


def compare(case: Case) -> Comparison:
    """Return the comparison of a case among the libraries that support it."""
    n_bytes = sum(x.nbytes for x in case.arrays) + case.expected.nbytes
    comparison = Comparison(case.title, "us", "numpy", [case.wanted], None, n_bytes)
    comparison.pause_s = SETTLED_S

    def plain(make: Callable[[], Function]) -> Contender:
        function = make()
        result = near(lambda: function(*case.arrays), case)
        return statement("function(*arrays)", result, function=function, arrays=case.arrays)

    comparison.add("cuplug", lambda: plain(case.cuplug))
    if function := case.numpy:
        comparison.add("numpy", lambda: plain(lambda: function))
    for name, contender in (("numexpr", numexpr_contender), ("torch", torch_contender)):
        if getattr(case, name):
            comparison.add(name, lambda contender=contender: contender(case))
    if case.jax:
        comparison.add("jax", lambda: jax_contender(case))
    return comparison


def measure(run: Run) -> None:
    """Functions on the CPU in expressions, against NumPy, numexpr, PyTorch and JAX."""
    run.require_memory(GIB)
    dtypes = ["float32"] if run.quick else ["float32", "float64"]
    cases = [case for dtype in dtypes for case in functions(dtype)]
    cases += strided()
    run.measure_all(partial(compare, case) for case in cases)


if __name__ == "__main__":
    run_module(measure)
