# SPDX-License-Identifier: Apache-2.0
"""All operators as functions of JAX: `from cuplug.jax import gather`."""

from typing import Any as _Any

import jax as _jax

if _jax.__version_info__ < (0, 10):
    raise ImportError(f"cuplug.jax: got JAX {_jax.__version__}, expected 0.10 or newer")

from cuplug import ops as _ops
from cuplug._engine.lookup.attribute import operator_attribute as _operator_attribute
from cuplug._integration.jax.function import Function
from cuplug._integration.jax.function import function_of as _function_of

__all__ = ["Function", "hand_on"]


def __getattr__(name: str) -> _Any:
    return _function_of(_operator_attribute(__name__, name))


def __dir__() -> list[str]:
    return [*__all__, *dir(_ops)]


def hand_on(operator: _Any, args: tuple[_Any, ...], keywords: dict[str, _Any]) -> _Any:
    """Return the result of a call of an operator in a program that JAX traces.

    NotImplemented if no argument is a tracer: some objects only look like one.
    """
    given = [*args, *keywords.values()]
    items = [
        x for value in given for x in (value if isinstance(value, (list, tuple)) else (value,))
    ]
    if not any(isinstance(x, _jax.core.Tracer) for x in items):
        return NotImplemented
    return _function_of(operator)(*args, **keywords)
