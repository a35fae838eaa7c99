# SPDX-License-Identifier: Apache-2.0
"""Sizes, conditions and ranges of a signature for given numbers, for tools that create arguments.

The value of a name is a number, the sizes of a group of dimensions, or the items of a list.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from cuplug._engine.signature import steps
from cuplug._engine.signature.signature import Parameter, Signature
from cuplug._engine.signature.steps import Formula, NoValue, Side, Slice

__all__ = [
    "ARRAYS",
    "LOOP",
    "broken_by_defaults",
    "choices",
    "conditions_hold",
    "elements_hold",
    "interval",
    "names_in_sizes",
    "shape_of",
]

ARRAYS = ("array", "inout", "arrays")  # kinds of parameters that are arrays, or lists of them
LOOP = "..."  # the name of the loop dimensions
# The minimum number of steps by which one side is less, or more, than the other.
_LESS = {steps.LESS: 1, steps.AT_MOST: 0, steps.EQUAL: 0}
_MORE = {steps.GREATER: 1, steps.AT_LEAST: 0, steps.EQUAL: 0}


def shape_of(
    signature: Signature, x: Parameter, names: Mapping[str, Any], unknown: Any = 0
) -> tuple[Any, ...]:
    """Return the shape of an array; sizes that are known after the run are `unknown`.

    Raises
    ------
    NoValue
        A size has no value.
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
    """Return whether numbers satisfy `where`. A condition with a parameter that is None holds.

    `elements_hold` checks the conditions of elements of arrays.
    """
    return all(x.holds(names) for x in signature.ranges if not x.element)


def elements_hold(signature: Signature, array: str, element: Any, names: Mapping[str, Any]) -> bool:
    """Return whether an element of an array satisfies the conditions of its elements."""
    names = {**names, array: element}
    return all(x.holds(names) for x in signature.ranges if x.element == array)


def broken_by_defaults(signature: Signature) -> list[str]:
    """Return the conditions that name only parameters with defaults and that these violate."""
    defaults = {x.name: x.default for x in signature.parameters if x.has_default}
    alone = [x for x in signature.ranges if x.names <= defaults.keys() and not x.element]
    return [condition.text for condition in alone if not condition.holds(defaults)]


def names_in_sizes(signature: Signature) -> set[str]:
    """Return the names from which sizes of arrays are computed."""
    all_dims = [x.dims for x in (*signature.parameters, *signature.outputs)]
    worked_out = [value for dims in all_dims for _, value in dims if not isinstance(value, int)]
    return {name for value in worked_out for name in value.names}


def interval(
    signature: Signature, name: str, names: Mapping[str, Any], step: int = 1
) -> tuple[float, float]:
    """Return the interval that conditions allow for a name, as far as the others are known.

    Only sides that consist of the name count, so the caller checks the conditions again. `step` is
    the minimum distance between two numbers: 0 for floats. The name of an array means its elements.
    """
    low, high = -math.inf, math.inf
    for condition in signature.ranges:
        parts = [_chain_interval(x, name, names, step) for x in condition.alternatives]
        low = max(low, min(part[0] for part in parts))
        high = min(high, max(part[1] for part in parts))
    return low, high


def _chain_interval(
    sides: Sequence[Side], name: str, names: Mapping[str, Any], step: int
) -> tuple[float, float]:
    low, high = -math.inf, math.inf
    chain = [side for side in sides if side[0] != steps.IN]
    for (_, left), (relation, right) in itertools.pairwise(chain):
        for x, other, below, above in ((left, right, _LESS, _MORE), (right, left, _MORE, _LESS)):
            limit = _known(other, names) if x.is_name(name) else None
            if limit is not None and relation in below:
                high = min(high, limit - step * below[relation])
            if limit is not None and relation in above:
                low = max(low, limit + step * above[relation])
    members = _members(sides, name, names)
    return (max(low, min(members)), min(high, max(members))) if members else (low, high)


def choices(signature: Signature, name: str, names: Mapping[str, Any]) -> list[Any] | None:
    """Return the only values that sets, `name in {64, 128}`, allow for a name; None for any."""
    for condition in signature.ranges:
        found = [_members(sides, name, names) for sides in condition.alternatives]
        if all(found):
            return [x for members in found for x in members]
    return None


def _members(sides: Sequence[Side], name: str, names: Mapping[str, Any]) -> list[int | float]:
    """Return the known values of a set that contains a name; an empty list without a set."""
    members = [side for relation, side in sides if relation == steps.IN]
    if not members or not sides[len(sides) - len(members) - 1][1].is_name(name):
        return []
    return [x for x in (_known(side, names) for side in members) if x is not None]


def _known(side: Formula, names: Mapping[str, Any]) -> int | float | None:
    try:
        found = side.value(names)
    except NoValue:
        return None
    return found if isinstance(found, (int, float)) else None
