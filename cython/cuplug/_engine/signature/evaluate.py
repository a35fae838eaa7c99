# SPDX-License-Identifier: Apache-2.0
"""Sizes, conditions and ranges of a signature for given numbers, for tools that make arguments.

What a name stands for is a number, the sizes of a group of dimensions, or the items of a list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from cuplug._engine.signature import steps
from cuplug._engine.signature.signature import Parameter, Signature
from cuplug._engine.signature.steps import Formula, NoValue, Slice

__all__ = [
    "ARRAYS",
    "LOOP",
    "broken_by_defaults",
    "conditions_hold",
    "interval",
    "names_in_sizes",
    "shape_of",
]

ARRAYS = ("array", "inout", "arrays")  # kinds of parameters that are arrays, or lists of them
LOOP = "..."  # the name of the loop dimensions
# By how many steps one side is less, or more, than the other, at least.
_LESS = {steps.LESS: 1, steps.AT_MOST: 0, steps.EQUAL: 0}
_MORE = {steps.GREATER: 1, steps.AT_LEAST: 0, steps.EQUAL: 0}


def shape_of(
    signature: Signature, x: Parameter, names: Mapping[str, Any], unknown: Any = 0
) -> tuple[Any, ...]:
    """Return the shape of an array; `unknown` stands for sizes that the run finds.

    Raises
    ------
    NoValue
        A size has none.
    """
    shape: list[Any] = []
    for kind, value in x.dims:
        if isinstance(value, Formula):
            shape.append(value.value(names))
        elif isinstance(value, Slice):
            shape += value.value(names)
        elif kind == "fixed":
            shape.append(value)
        elif kind == "unknown":
            shape.append(unknown)
        elif kind == "loop":
            shape += names[LOOP]
        else:
            size = names[signature.dim_names[value]]
            shape += size if kind == "variadic" else [size]
    return tuple(shape)


def conditions_hold(signature: Signature, names: Mapping[str, Any]) -> bool:
    """Say whether numbers satisfy `where`. One that names a parameter that is None holds."""
    return all(condition.holds(names) for condition in signature.ranges)


def broken_by_defaults(signature: Signature) -> list[str]:
    """Return the conditions on parameters with defaults alone that these do not satisfy."""
    defaults = {x.name: x.default for x in signature.parameters if x.has_default}
    alone = [condition for condition in signature.ranges if condition.names <= defaults.keys()]
    return [condition.text for condition in alone if not condition.holds(defaults)]


def names_in_sizes(signature: Signature) -> set[str]:
    """Return the names of which sizes of arrays are worked out."""
    all_dims = [x.dims for x in (*signature.parameters, *signature.outputs)]
    worked_out = [value for dims in all_dims for _, value in dims if not isinstance(value, int)]
    return {name for value in worked_out for name in value.names}


def interval(
    signature: Signature, name: str, names: Mapping[str, Any], step: int = 1
) -> tuple[float, float]:
    """Return between which numbers conditions allow a name to be, as far as the others are known.

    Only sides that are the name alone are looked at: the conditions have to be asked again. `step`
    is how far numbers are from each other, at least: 0 for floats.
    """
    low, high = -math.inf, math.inf
    for condition in signature.ranges:
        for (_, left), (relation, right) in zip(condition.sides, condition.sides[1:], strict=False):
            for x, other, below, above in (
                (left, right, _LESS, _MORE),
                (right, left, _MORE, _LESS),
            ):
                limit = _known(other, names) if x.is_name(name) else None
                if limit is not None and relation in below:
                    high = min(high, limit - step * below[relation])
                if limit is not None and relation in above:
                    low = max(low, limit + step * above[relation])
    return low, high


def _known(side: Formula, names: Mapping[str, Any]) -> int | float | None:
    try:
        found = side.value(names)
    except NoValue:
        return None
    return found if isinstance(found, (int, float)) else None
