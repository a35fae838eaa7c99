# SPDX-License-Identifier: Apache-2.0
"""Operators as functions of JAX."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax

from cuplug._engine.call.operator import Operator
from cuplug._engine.call.output_tuples import outputs_class
from cuplug._engine.call.pickled import OperatorFunction
from cuplug._engine.signature.call_signature import to_inspect
from cuplug._engine.signature.signature import parse, refuse_handles
from cuplug._integration.jax import gradient  # noqa: F401  (its rules)
from cuplug._integration.jax.arguments import TracedCall, rows_of, texts_of
from cuplug._integration.jax.call import bind, read

__all__ = ["Function", "function_of"]


class Function(OperatorFunction):
    """An operator as a function of JAX, which can be compiled, batched and differentiated.

    Parameters
    ----------
    operator : cuplug.Operator
        From `cuplug.find`, or created from source.
    """

    def _take(self, operator: Operator) -> None:
        super()._take(operator)
        self.__signature__ = to_inspect(operator.signatures, is_own=False)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        refuse_handles(self.operator, "a function of JAX", "call it outside of jax.jit")
        call, operands = read(self.operator, args, keywords)
        if any(isinstance(x, jax.core.Tracer) for x in operands) or not operands:
            return _apply(*operands, call=call)
        if _finds_sizes(texts_of(self.operator)):
            return self.operator(*args, **keywords)
        return _compiled(call)(*operands)

    def __repr__(self) -> str:
        return f"<cuplug.jax function of {self.operator!r}>"


@cache
def _finds_sizes(texts: tuple[str, ...]) -> bool:
    """Return whether sizes of outputs are known only after the run."""
    return any(("unknown", 0) in x.dims for text in texts for x in parse(text).outputs)


@cache
def _compiled(call: TracedCall) -> Any:
    return jax.jit(partial(_apply, call=call), inline=True)


def _apply(*operands: Any, call: TracedCall) -> Any:
    return _returned(call, [_narrowed(x) for x in bind(call, operands)])


def _narrowed(x: Any) -> Any:
    """Return an output as JAX represents it, with 64-bit dtypes only if these are enabled."""
    return jax.lax.convert_element_type(x, jax.dtypes.canonicalize_dtype(x.dtype))


def _returned(call: TracedCall, results: list[Any]) -> Any:
    """None, one array, or a tuple, which is named if the outputs have names."""
    if len(results) < 2:
        return results[0] if results else None
    numbers = range(len(rows_of(call.operator)))
    given = next(x for k in numbers if len(x := call.results(k)) == len(results))
    names = [x.name for x in given.values()]
    made = outputs_class(call.operator.name, tuple(names)) if all(names) else None
    return tuple(results) if made is None else made(*results)


@cache
def function_of(operator: Operator) -> Function:
    """Return the function of an operator, always the same object."""
    return Function(operator)
