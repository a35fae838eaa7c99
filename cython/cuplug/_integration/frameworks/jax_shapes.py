# SPDX-License-Identifier: Apache-2.0
"""Shapes while a program is traced: what a call gives, and where its loop dimensions are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import InconclusiveDimensionOperation

from cuplug._engine.call.operator import Operator
from cuplug._engine.signature.call_signature import are_alike, by_name
from cuplug._engine.signature.evaluate import names_in_sizes
from cuplug._engine.signature.parallel_dims import dimension_name, independent
from cuplug._engine.signature.signature import GROUP_KINDS, Parameter, Signature
from cuplug._engine.signature.spec import ArraySpec, Inferred
from cuplug._engine.signature.steps import Extent
from cuplug._engine.signature.symbolic import Misfit, Sizes, walk
from cuplug._integration.frameworks.jax_arguments import (
    ABSENT,
    Call,
    keyword_at,
    read_call,
    read_values,
    rows_of,
    texts_of,
)

__all__ = [
    "LOOP",
    "broadcast_loop",
    "cut_names",
    "groups_of",
    "infer",
    "loop_shape",
    "operand_places",
    "read",
    "result_places",
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
    """By position up to the first argument that is left out, and by name behind it.

    Of one row alone all are by its names: another that has the same ones must not take them.
    """
    if call.row >= 0:
        names = [x.name for x in rows_of(call.operator)[call.row].parameters]
        pairs = zip(names, arguments, strict=False)
        found = call.operator.infer(**{name: x for name, x in pairs if x is not ABSENT})
        if found.row != call.row:
            raise TypeError(f"{call.operator.name}: another overload takes these arguments")
        return found
    n = next((k for k, x in enumerate(arguments) if x is ABSENT), len(arguments))
    later = [(k, x) for k, x in enumerate(arguments) if k > n and x is not ABSENT]
    keywords = {keyword_at(call.operator, k): x for k, x in later}
    return call.operator.infer(*arguments[:n], **keywords)


def _walk(call: Call, arguments: list[Any]) -> Inferred:
    error = Misfit("there are no signatures")
    for row, signature in enumerate(rows_of(call.operator)):
        if call.row not in (row, -1):
            continue
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


# ---- Groups of dimensions: elements along them have nothing to do with each other ----------------

LOOP = ("loop", 0)  # as a parameter's dimensions have it; others are ("variadic", number of a name)


def groups_of(call: Call, row: int) -> list[tuple[str, int]]:
    """Return the groups along which a row may be called for several elements at once."""
    signature, properties = rows_of(call.operator)[row], call.operator.properties[row]
    counted = names_in_sizes(signature).union(*(x.names for x in signature.ranges))
    names = independent(signature, properties) - counted
    dims = {dim for x in signature.parameters for dim in x.dims if dim[0] == "variadic"}
    numbers = [k for k, name in enumerate(signature.dim_names) if name in names]
    return [LOOP, *(("variadic", k) for k in numbers if ("variadic", k) in dims)]


def operand_places(
    call: Call, row: int, ndims: Sequence[int], group: tuple[str, int] = LOOP
) -> list[slice | None]:
    """Return where a group's dimensions are in each operand; None where it has none."""
    pairs = zip(call.parameters(row), ndims, strict=True)
    return [_of_operand(x, n, group) for x, n in pairs]


def result_places(
    call: Call, row: int, ndims: Sequence[int], n_dims: int, group: tuple[str, int] = LOOP
) -> list[slice | None]:
    """Return where the `n_dims` dimensions of a group are in each result.

    None also where other groups on both sides hide the place.
    """
    results = call.results(row).values()
    return [_of_result(x, n, n_dims, group) for x, n in zip(results, ndims, strict=True)]


def loop_shape(shapes: Sequence[Any], places: Sequence[slice | None]) -> tuple[Any, ...]:
    """Return what the loop dimensions of operands are broadcast to."""
    parts = [shape[at] for shape, at in zip(shapes, places, strict=True) if at is not None]
    return jax.numpy.broadcast_shapes(*parts)


def broadcast_loop(x: Any, at: slice | None, loop: tuple[Any, ...]) -> Any:
    """Return an operand with the whole shape of the loop dimensions."""
    if at is None or x.shape[at] == loop:
        return x
    before, part, behind = x.shape[: at.start], x.shape[at], x.shape[at.stop :]
    ones = (1,) * (len(loop) - len(part))
    x = jax.numpy.reshape(x, (*before, *ones, *part, *behind))
    return jax.numpy.broadcast_to(x, (*before, *loop, *behind))


def cut_names(
    call: Call, row: int, operands: Sequence[Any], results: Sequence[Any]
) -> tuple[list[list[str]], list[list[str]]]:
    """Return a name for each dimension along which arrays may be cut, "" for others.

    Dimensions of one name are cut alike: those that are independent, and that all results have.

    Parameters
    ----------
    call, row : Call, int
        The call, and the row that takes it.
    operands, results : sequence of tuple
        Their shapes.
    """
    signature = rows_of(call.operator)[row]
    if any(x.is_each for x in signature.parameters):  # names have a value for each item
        return [[""] * len(x) for x in operands], [[""] * len(x) for x in results]
    allowed = independent(signature, call.operator.properties[row])
    lengths: dict[tuple[str, Extent], int] = {}
    pairs = [*zip(call.parameters(row), operands, strict=True)]
    for x, shape in pairs:
        groups = [dim for dim in x.dims if dim[0] in GROUP_KINDS]
        lengths |= {dim: len(shape) - len(x.dims) + 1 for dim in groups if dim != LOOP}
    lengths[LOOP] = max((len(s) - len(x.dims) + 1 for x, s in pairs if LOOP in x.dims), default=0)
    given = [_names(signature, x, shape, allowed, lengths) for x, shape in pairs]
    wanted = zip(call.results(row).values(), results, strict=True)
    made = [_names(signature, x, shape, allowed, lengths) for x, shape in wanted]
    common = set.intersection(*map(set, made)) if made else set()
    given, made = (
        [[name * (name in common) for name in names] for names in side] for side in (given, made)
    )
    return given, made


def _names(
    signature: Signature,
    x: Parameter,
    shape: Any,
    allowed: set[str],
    lengths: dict[tuple[str, Extent], int],
) -> list[str]:
    """Return the names of an array's dimensions; none of it where it has parts of a group."""
    found: list[str] = []
    for kind, value in x.dims:
        if kind in ("slice", "listed"):
            return [""] * len(shape)
        n = lengths[kind, value] if kind in GROUP_KINDS else 1
        if kind == "loop":  # broadcast, from its end; an operand may have fewer
            n = min(n, len(shape) - len(x.dims) + 1) if x.kind != "output" else n
        is_cut = dimension_name(signature, kind, value) in allowed
        found += [f"{kind[0]}{value}x{n - k}" if is_cut else "" for k in range(n)]
    pairs = zip(found, shape, strict=True)
    return ["" if isinstance(size, int) and size == 1 else name for name, size in pairs]


def _of_operand(x: Parameter, ndim: int, group: tuple[str, int]) -> slice | None:
    if group not in x.dims:
        return None
    before = x.dims.index(group)
    return slice(before, ndim - (len(x.dims) - 1 - before))


def _of_result(x: Parameter, ndim: int, n_dims: int, group: tuple[str, int]) -> slice | None:
    """Beside other groups, whose lengths are not known here, it is found from the other end."""
    if group not in x.dims:
        return None
    at, kinds = x.dims.index(group), [kind for kind, _ in x.dims]
    groups = {*GROUP_KINDS, "slice", "listed"}
    if not groups & {*kinds[:at]}:
        return slice(at, at + n_dims)
    if groups & {*kinds[at + 1 :]}:
        return None
    end = ndim - (len(kinds) - 1 - at)
    return slice(end - n_dims, end)


# ---- The overload of a call by name, where overloads give names to other places ---------------


def read(
    operator: Operator, args: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[Call, list[Any]]:
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
            infer(call, [jax.typeof(x) for x in operands])
        except (TypeError, ValueError) as refusal:
            error = error or refusal
        else:
            return call, operands
    if error is not None:
        raise error
    return read_call(operator, args, keywords)  # it says what is wrong, or that nothing takes them
