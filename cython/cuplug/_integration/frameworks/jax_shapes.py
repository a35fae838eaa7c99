# SPDX-License-Identifier: Apache-2.0
"""Shapes while JAX traces a program: what a call gives, and where its arrays may be cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import InconclusiveDimensionOperation

from cuplug._engine.call.operator import Operator
from cuplug._engine.signature.call_signature import are_alike, by_name
from cuplug._engine.signature.spec import ArraySpec
from cuplug._integration.frameworks import call as calls
from cuplug._integration.frameworks.batching import operand_places
from cuplug._integration.frameworks.jax_arguments import (
    ABSENT,
    TracedCall,
    keyword_at,
    read_call,
    read_values,
    rows_of,
    texts_of,
)

__all__ = ["broadcast_loop", "cut_labels", "match", "read"]


class _Symbols(calls.Symbols):
    """Sizes of jax.export.symbolic_shape: a comparison without an answer is left to the run."""

    def is_possible(self, size: Any) -> bool:
        try:
            return bool(size >= 0)
        except InconclusiveDimensionOperation:
            return True


def match(call: TracedCall, avals: Sequence[Any]) -> calls.Call:
    """Return what a call on such operands is; of one row alone it is by its names."""
    rows = rows_of(call.operator)
    pairs = zip(avals, call.are_read, strict=True)
    values = call.arguments([_spec(call, x, is_read) for x, is_read in pairs])
    absent = [k for k, x in enumerate(values) if x is ABSENT]
    n = 0 if call.row >= 0 else min(absent, default=len(values))
    own = [x.name for x in rows[call.row].parameters] if call.row >= 0 else None
    later = [(k, x) for k, x in enumerate(values) if k >= n and x is not ABSENT]
    keywords = {own[k] if own else keyword_at(call.operator, k): x for k, x in later}
    return calls.match(call.operator, rows, values[:n], keywords, _Symbols(), call.row)


def _spec(call: TracedCall, aval: Any, is_read: bool) -> Any:
    if is_read:
        return True if aval.dtype == bool else calls.Unknown()
    try:
        return ArraySpec(aval.dtype, aval.shape)
    except TypeError as error:
        raise TypeError(f"{call.operator.name}: {error}") from None


def broadcast_loop(call: TracedCall, row: int, operands: Sequence[Any]) -> list[Any]:
    """Return operands with the whole shape of the loop dimensions."""
    places = operand_places(call.parameters(row), [x.ndim for x in operands])
    pairs = [*zip(operands, places, strict=True)]
    loop = jax.numpy.broadcast_shapes(*(x.shape[at] for x, at in pairs if at is not None))
    return [x if at is None else _broadcast(x, at, loop) for x, at in pairs]


def _broadcast(x: Any, at: slice, loop: tuple[Any, ...]) -> Any:
    if x.shape[at] == loop:
        return x
    before, part, behind = x.shape[: at.start], x.shape[at], x.shape[at.stop :]
    ones = (1,) * (len(loop) - len(part))
    x = jax.numpy.reshape(x, (*before, *ones, *part, *behind))
    return jax.numpy.broadcast_to(x, (*before, *loop, *behind))


_Labels = list[list[calls.Label | None]]  # for each dimension of each array; None: not cut


def cut_labels(
    call: TracedCall, matched: calls.Call, shapes: Sequence[Any]
) -> tuple[_Labels, _Labels]:
    """Return the labels of the dimensions of operands and results that all results have.

    Dimensions of size 1, which may be broadcast, have none.
    """
    pairs = zip(call.parameters(matched.row), shapes, strict=True)
    given = [_labels(matched, x, shape) for x, shape in pairs]
    made = [_labels(matched, x, spec.shape) for x, spec in matched.results]
    common = set.intersection(*map(set, made)) if made else set()
    given, made = ([[x if x in common else None for x in y] for y in z] for z in (given, made))
    return given, made


def _labels(matched: calls.Call, x: Any, shape: Any) -> list[calls.Label | None]:
    pairs = zip(matched.labels(x, len(shape)), shape, strict=True)
    return [None if isinstance(size, int) and size == 1 else label for label, size in pairs]


# ---- The overload of a call by name, where overloads give names to other places ---------------


def read(
    operator: Operator, args: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[TracedCall, list[Any]]:
    """Return what a call is, and its operands.

    Raises
    ------
    TypeError, ValueError
        No overload takes the arguments under these names.
    """
    if not keywords or are_alike(texts_of(operator)):
        return read_call(operator, args, keywords)
    error: Exception | None = None
    for row, signature in enumerate(rows_of(operator)):
        given = by_name(signature, args, keywords)
        if given is None:
            continue
        try:
            call, operands = read_values(operator, row, given)
            match(call, [jax.typeof(x) for x in operands])
        except (TypeError, ValueError) as refusal:
            error = error or refusal
        else:
            return call, operands
    if error is not None:
        raise error
    return read_call(operator, args, keywords)  # it says what is wrong, or that nothing takes them
