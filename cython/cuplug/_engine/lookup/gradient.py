# SPDX-License-Identifier: Apache-2.0
"""The operator that computes another one's gradient, which the property `gradient` names."""

from __future__ import annotations

import contextlib

from cuplug._engine.adoption.adopt import adopted_sibling
from cuplug._engine.call.operator import Operator
from cuplug._engine.lookup.find import find, load
from cuplug._engine.signature.gradient import Gradient, linear_in, match_gradient
from cuplug._engine.signature.signature import parse
from cuplug.errors import NotFoundError

__all__ = ["find_gradient", "sibling"]


def find_gradient(operator: Operator, row: int) -> tuple[Operator, Gradient] | None:
    """Find the operator that computes the gradient of one overload of an operator.

    Parameters
    ----------
    operator : Operator
    row : int
        The number of the overload.

    Returns
    -------
    tuple of Operator and Gradient, or None
        The operator and its arguments; None if the overload has no gradient.

    Raises
    ------
    NotFoundError
        The plugin has no operator of that name.
    ValueError
        If it does not fit the overload.
    """
    name = operator.properties[row].get("gradient")
    if not name:
        return None
    found = find(name) if "." in name else sibling(operator, name)
    rows = [parse(text) for text in found.signatures]
    linear = linear_in(found.properties)
    return found, match_gradient(parse(operator.signatures[row]), rows, linear)


def sibling(operator: Operator, name: str) -> Operator:
    """Return an operator of the same file, even if a search for its name finds another one.

    Raises
    ------
    NotFoundError
        The file has no operator of that name.
    """
    if (adopted := adopted_sibling(operator, name)) is not None:
        return adopted
    with contextlib.suppress(NotFoundError):
        found = find(f"{operator.plugin}.{name}")
        if found.path == operator.path:
            return found
    for other in load(operator.path).operators:
        if other.name == name:
            return other
    raise NotFoundError(
        f"{operator.plugin}.{operator.name}: its gradient: there is no {name} in {operator.path}"
    )
