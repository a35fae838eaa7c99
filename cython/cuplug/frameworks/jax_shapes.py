# SPDX-License-Identifier: Apache-2.0
"""Shapes while a program is traced: what a call gives, and where its loop dimensions are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import InconclusiveDimensionOperation

from cuplug.frameworks.jax_arguments import ABSENT, Call, keyword_at, rows_of
from cuplug.signature.gradient import results_of
from cuplug.signature.signature import GROUP_KINDS, Parameter, Signature
from cuplug.signature.spec import ArraySpec, Inferred
from cuplug.signature.symbolic import Misfit, Sizes, walk

__all__ = [
    "broadcast_loop",
    "infer",
    "loop_axes",
    "loop_shape",
    "operand_loops",
    "result_loops",
]


# ---- What a call gives ---------------------------------------------------------------------------


class _Read:
    """A scalar whose value the run knows: any condition on it may hold."""

    def _same(self, *_: Any) -> _Read:
        return self

    def _holds(self, _: Any) -> bool:
        return True

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = _same
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _same
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _holds  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class _JaxSizes(Sizes):
    """Those of jax.export.symbolic_shape: what cannot be decided is left to the run."""

    def is_possible(self, size: Any) -> bool:
        try:
            return bool(size >= 0)
        except InconclusiveDimensionOperation:
            return True


def infer(call: Call, avals: Sequence[Any]) -> Inferred:
    """Return what a call on such operands gives: asked of the core where all of it is known."""
    are_read = call.are_read
    arguments = call.arguments(
        [_spec(call, x, is_read) for x, is_read in zip(avals, are_read, strict=True)]
    )
    are_known = all(isinstance(size, int) for aval in avals for size in aval.shape)
    if any(are_read) or not are_known:
        return _walk(call, arguments)
    return _ask(call, arguments)


def _spec(call: Call, aval: Any, is_read: bool) -> Any:
    if is_read:
        return True if aval.dtype == bool else _Read()
    try:
        return ArraySpec(aval.dtype, aval.shape)
    except TypeError as error:
        raise TypeError(f"{call.operator.name}: {error}") from None


def _ask(call: Call, arguments: list[Any]) -> Inferred:
    """By position up to the first argument that is left out, and by name behind it."""
    n = next((k for k, x in enumerate(arguments) if x is ABSENT), len(arguments))
    later = [(k, x) for k, x in enumerate(arguments) if k > n and x is not ABSENT]
    keywords = {keyword_at(call.operator, k): x for k, x in later}
    return call.operator.infer(*arguments[:n], **keywords)


def _walk(call: Call, arguments: list[Any]) -> Inferred:
    error = Misfit("there are no signatures")
    for row, signature in enumerate(rows_of(call.operator)):
        try:
            outputs = walk([signature], _filled(signature, arguments), _JaxSizes()).outputs
        except Misfit as misfit:
            error = misfit
        else:
            return Inferred(row, outputs)
    raise error


def _filled(signature: Signature, arguments: list[Any]) -> list[Any]:
    """Return the arguments with a row's defaults in place of those left out."""
    defaults = [x.default for x in signature.parameters[: len(arguments)]]
    defaults += [None] * (len(arguments) - len(defaults))
    pairs = zip(arguments, defaults, strict=True)
    return [default if x is ABSENT else x for x, default in pairs]


# ---- Loop dimensions: elements along them have nothing to do with each other --------------------


def operand_loops(call: Call, row: int, ndims: Sequence[int]) -> list[slice | None]:
    """Return where the loop dimensions of each operand are; None where it has none."""
    return [_of_operand(x, n) for x, n in zip(call.parameters(row), ndims, strict=True)]


def result_loops(call: Call, row: int, ndims: Sequence[int], n_loop: int) -> list[slice | None]:
    """Return where they are in each result; None also where groups on both sides hide the place."""
    results = results_of(rows_of(call.operator)[row])
    return [_of_result(x, n, n_loop) for x, n in zip(results, ndims, strict=True)]


def loop_shape(shapes: Sequence[Any], places: Sequence[slice | None]) -> tuple[Any, ...]:
    """Return what the loop dimensions of operands are broadcast to."""
    parts = [shape[at] for shape, at in zip(shapes, places, strict=True) if at is not None]
    return jax.numpy.broadcast_shapes(*parts)


def loop_axes(arrays: Sequence[tuple[Any, Any]], places: Sequence[slice | None]) -> tuple[Any, ...]:
    """Return the axes of a mesh over which loop dimensions are spread; each axis stands once.

    Parameters
    ----------
    arrays : sequence of tuple
        Shapes, and the axes of each dimension.
    places : sequence of slice or None
        Where the loop dimensions are.
    """
    pairs = zip(arrays, places, strict=True)
    parts = [(shape[at], spec[at]) for (shape, spec), at in pairs if at is not None]
    found: list[Any] = [None] * max((len(shape) for shape, _ in parts), default=0)
    for shape, spec in parts:
        for k, (size, axes) in enumerate(zip(shape, spec, strict=True), len(found) - len(shape)):
            if found[k] is None and size != 1 and axes not in found:
                found[k] = axes
    return tuple(found)


def broadcast_loop(x: Any, at: slice | None, loop: tuple[Any, ...]) -> Any:
    """Return an operand with the whole shape of the loop dimensions."""
    if at is None or x.shape[at] == loop:
        return x
    before, part, behind = x.shape[: at.start], x.shape[at], x.shape[at.stop :]
    ones = (1,) * (len(loop) - len(part))
    x = jax.numpy.reshape(x, (*before, *ones, *part, *behind))
    return jax.numpy.broadcast_to(x, (*before, *loop, *behind))


def _of_operand(x: Parameter, ndim: int) -> slice | None:
    if ("loop", 0) not in x.dims:
        return None
    before = x.dims.index(("loop", 0))
    return slice(before, ndim - (len(x.dims) - 1 - before))


def _of_result(x: Parameter, ndim: int, n_loop: int) -> slice | None:
    """Beside groups, whose lengths are not known here, it is found from the other end."""
    kinds = [kind for kind, _ in x.dims]
    if "loop" not in kinds:
        return None
    at = kinds.index("loop")
    groups = {*GROUP_KINDS, "slice", "listed"}
    if not groups & {*kinds[:at]}:
        return slice(at, at + n_loop)
    if groups & {*kinds[at + 1 :]}:
        return None
    end = ndim - (len(kinds) - 1 - at)
    return slice(end - n_loop, end)
