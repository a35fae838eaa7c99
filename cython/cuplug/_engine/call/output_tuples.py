# SPDX-License-Identifier: Apache-2.0
"""Several outputs with names, as a named tuple."""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import Any

from cuplug._engine.base.public import public


@public
def named_outputs(operator: str, names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    """Return the outputs of an operator as a named tuple, the form in which they are pickled.

    Parameters
    ----------
    operator : str
        The operator's name.
    names : tuple of str
        The names of the outputs.
    values : tuple
        The outputs.

    Examples
    --------
    >>> cuplug.named_outputs("minmax", ("low", "high"), (1, 2))
    minmax(low=1, high=2)
    """
    made = outputs_class(operator, names)
    return tuple(values) if made is None else made(*values)


def all_outputs(operator: Any) -> dict[str, bool]:
    """Return the keywords with which a call also computes the optional outputs."""
    return dict.fromkeys(operator.returns, True)


@cache
def outputs_class(operator: str, names: tuple[str, ...]) -> Any:
    """Return the named tuple of an operator; None if Python does not accept the names."""

    def reduce(self: tuple) -> tuple:
        return named_outputs, (operator, names, tuple(self))

    try:
        plain = namedtuple(operator, names)  # type: ignore[misc]
    except ValueError:
        return None
    doc = f"The outputs of {operator}: {', '.join(names)}."
    members = {"__slots__": (), "__reduce__": reduce, "__doc__": doc, "__module__": "cuplug"}
    return type(operator, (plain,), members)
