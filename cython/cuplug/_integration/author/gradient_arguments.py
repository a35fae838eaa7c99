# SPDX-License-Identifier: Apache-2.0
"""Arguments that the core accepts, with gradients in the shapes of results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cuplug._engine.call.operator import Operator
from cuplug._engine.discovery.table import read_table
from cuplug._engine.lookup.gradient import find_gradient, sibling
from cuplug._engine.signature.gradient import Gradient
from cuplug._engine.signature.signature import Signature, parse
from cuplug.errors import NotFoundError

__all__ = ["Gradients", "misfit"]

REFUSALS = (TypeError, ValueError, IndexError, MemoryError)
SMALLEST = 1 << 10  # the smallest size in bytes that is requested
Shapes = dict[int, tuple[int, ...]]


def misfit(operator: Operator, arguments: dict[str, Any]) -> str:
    """Return the core's message if it rejects arguments, else "".

    No entry runs.
    """
    try:
        operator.infer(**arguments)
    except REFUSALS as error:
        return str(error)
    return ""


class Gradients:
    """The arguments of an operator that are gradients, and their results.

    The signature of a gradient's operator only says that `grad` is an array. It has the shape of
    the result to which it belongs.
    """

    def __init__(self, operator: Operator) -> None:
        self._rows = list(_rows_with_gradient(operator))

    def fitted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return arguments whose gradients have the shapes of results, where these are known."""
        shapes = self._shapes(arguments)
        return arguments | {name: np.resize(arguments[name], shapes[name]) for name in shapes}

    def sized(self, make: Callable[[int], dict[str, Any]], n_bytes: int) -> dict[str, Any]:
        """Return accepted arguments of at most the requested bytes."""
        size = n_bytes
        while True:
            arguments = make(size)
            total = sum(self._bytes_by_name(arguments).values())
            if total <= n_bytes or size <= SMALLEST:
                return self.fitted(arguments)
            size = min(size // 2, size * n_bytes // total)

    def _bytes_by_name(self, arguments: dict[str, Any]) -> dict[str, int]:
        arrays = {name: x for name, x in arguments.items() if isinstance(x, np.ndarray)}
        shapes = {name: x.shape for name, x in arrays.items()} | self._shapes(arguments)
        return {name: math.prod(shapes[name]) * x.itemsize for name, x in arrays.items()}

    def _shapes(self, arguments: dict[str, Any]) -> dict[str, tuple[int, ...]]:
        for forward, signature, how in self._rows:
            takes_all = arguments.keys() <= how.arguments.keys()
            shapes = _result_shapes(forward, signature, how, arguments) if takes_all else {}
            if shapes:
                return {
                    name: shapes[origin.number]
                    for name, origin in how.arguments.items()
                    if origin.kind == "gradient"
                    and origin.number in shapes
                    and isinstance(arguments.get(name), np.ndarray)
                }
        return {}


def _rows_with_gradient(operator: Operator) -> Iterator[tuple[Operator, Signature, Gradient]]:
    """Yield the overloads of the same plugin whose gradient an operator computes."""
    wanted = (operator.name, f"{operator.plugin}.{operator.name}")
    rows = read_table(operator.path).rows if operator.path else []
    for name in dict.fromkeys(x.operator for x in rows if x.properties.get("gradient") in wanted):
        try:
            forward = sibling(operator, name)
            for number, text in enumerate(forward.signatures):
                found = find_gradient(forward, number)
                if found:
                    yield forward, parse(text), found[1]
        except (NotFoundError, ValueError):
            continue  # `cuplug check` reports the error


def _result_shapes(
    forward: Operator, signature: Signature, how: Gradient, arguments: dict[str, Any]
) -> Shapes:
    """Return the shapes of an operator's results: passed as arguments, or inferred from them."""
    given = {name: arguments[name] for name in how.arguments if name in arguments}
    places = [(how.arguments[name], x) for name, x in given.items()]
    known = {place.number: x.shape for place, x in places if place.kind == "result"}
    call = {
        signature.parameters[place.number].name: x
        for place, x in places
        if place.kind == "argument"
    }
    try:
        outputs = forward.infer(**call).outputs
    except REFUSALS:
        return known
    inouts = [call[x.name].shape for x in signature.parameters if x.kind == "inout"]
    shapes = dict(enumerate([*inouts, *(x.shape for x in outputs)]))
    return {k: shape for k, shape in shapes.items() if min(shape, default=0) >= 0} | known
