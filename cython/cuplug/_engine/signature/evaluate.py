# SPDX-License-Identifier: Apache-2.0
"""Sizes and conditions of a signature worked out in Python, for tools that make arguments.

The texts are those that the core has parsed: `n - 1`, `s[:axis]`, `0 <= k <= n`. What a name stands
for is a number, the sizes of a group of dimensions, or the items of a list.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from cuplug._engine.signature.signature import Parameter, Signature

__all__ = [
    "ARRAYS",
    "LOOP",
    "broken_by_defaults",
    "conditions_hold",
    "interval",
    "names_in_sizes",
    "shape_of",
    "value_of",
]

ARRAYS = ("array", "inout", "arrays")  # kinds of parameters that are arrays, or lists of them
LOOP = "..."  # the name of the loop dimensions
_FUNCTIONS = {"__builtins__": {}, "len": len, "max": max, "min": min, "prod": math.prod}
# By how many steps one side is less, or more, than the other, at least.
_LESS: dict[type[ast.cmpop], int] = {ast.Lt: 1, ast.LtE: 0, ast.Eq: 0}
_MORE: dict[type[ast.cmpop], int] = {ast.Gt: 1, ast.GtE: 0, ast.Eq: 0}


def value_of(text: str, names: Mapping[str, Any]) -> Any:
    """Work out an expression, in which True is 1 also beside symbols that take integers alone.

    Raises
    ------
    NameError, ArithmeticError, IndexError, TypeError
        A name of it stands for nothing yet, or for None, or there is no such number.
    """
    numbers = {name: int(x) if isinstance(x, bool) else x for name, x in names.items()}
    return eval(_code(text), dict(_FUNCTIONS), numbers)  # the core has parsed it


@cache
def _code(text: str) -> Any:
    return compile(f"({text})", "signature", "eval")


@cache
def _tree(text: str) -> ast.expr:
    return ast.parse(f"({text})", mode="eval").body


def shape_of(
    signature: Signature, x: Parameter, names: Mapping[str, Any], unknown: Any = 0
) -> tuple[int, ...]:
    """Return the shape of an array; `unknown` stands for sizes that the run finds."""
    shape: list[int] = []
    for kind, value in x.dims:
        if kind == "fixed":
            shape.append(int(value))
        elif kind == "unknown":
            shape.append(unknown)
        elif kind == "loop":
            shape += names[LOOP]
        elif isinstance(value, int):
            size = names[signature.dim_names[value]]
            shape += size if kind == "variadic" else [size]
        elif kind == "formula":
            shape.append(value_of(value, names))
        else:  # *s[a:b], and *shape with the items of a list
            shape += value_of(value.lstrip("*"), names)
    return tuple(shape)


def conditions_hold(signature: Signature, names: Mapping[str, Any]) -> bool:
    """Say whether numbers satisfy `where`. One that names a parameter that is None holds."""
    return all(_holds(text, names) for text in signature.conditions)


def broken_by_defaults(signature: Signature) -> list[str]:
    """Return the conditions on parameters with defaults alone that these do not satisfy."""
    defaults = {x.name: x.default for x in signature.parameters if x.has_default}
    alone = [text for text in signature.conditions if _names_in(text) <= defaults.keys()]
    return [text for text in alone if not _holds(text, defaults)]


def _names_in(text: str) -> set[str]:
    return {node.id for node in ast.walk(_tree(text)) if isinstance(node, ast.Name)} - {*_FUNCTIONS}


def names_in_sizes(signature: Signature) -> set[str]:
    """Return the names of which sizes of arrays are worked out."""
    all_dims = [x.dims for x in (*signature.parameters, *signature.outputs)]
    texts = [value for dims in all_dims for _, value in dims if isinstance(value, str)]
    return {name for text in texts for name in _names_in(text.lstrip("*"))}


def _holds(text: str, names: Mapping[str, Any]) -> bool:
    if any(names.get(name, 0) is None for name in _names_in(text)):
        return True
    try:
        return bool(value_of(text, names))
    except (ArithmeticError, IndexError):
        return False


def interval(
    signature: Signature, name: str, names: Mapping[str, Any], step: int = 1
) -> tuple[float, float]:
    """Return between which numbers conditions allow a name to be, as far as the others are known.

    Only sides that are the name alone are looked at: the conditions have to be asked again. `step`
    is how far numbers are from each other, at least: 0 for floats.
    """
    low, high = -math.inf, math.inf
    for text in signature.conditions:
        tree = _tree(text)
        assert isinstance(tree, ast.Compare)
        sides = [tree.left, *tree.comparators]
        for left, relation, right in zip(sides, tree.ops, sides[1:], strict=False):
            for x, other, below, above in (
                (left, right, _LESS, _MORE),
                (right, left, _MORE, _LESS),
            ):
                limit = _known(other, names) if _is_name(x, name) else None
                if limit is not None and type(relation) in below:
                    high = min(high, limit - step * below[type(relation)])
                if limit is not None and type(relation) in above:
                    low = max(low, limit + step * above[type(relation)])
    return low, high


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _known(node: ast.expr, names: Mapping[str, Any]) -> int | float | None:
    try:
        found = value_of(ast.unparse(node), names)
    except (NameError, ArithmeticError, IndexError, TypeError):
        return None
    return found if isinstance(found, (int, float)) else None
