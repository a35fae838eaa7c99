# SPDX-License-Identifier: Apache-2.0
"""A batch of calls as one call: `jax.vmap` and `torch.vmap` add a dimension to a group."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from cuplug._engine.signature.evaluate import names_in_sizes
from cuplug._engine.signature.parallel_dims import independent, is_kept_whole
from cuplug._engine.signature.signature import GROUP_KINDS, Parameter
from cuplug._integration.frameworks.call import Call

__all__ = ["LOOP", "join_batch", "operand_places"]

# in the form of a parameter's dimensions; others are ("variadic", number of a name)
LOOP = ("loop", 0)


def join_batch(
    xp: Any,
    call: Call,
    parameters: Sequence[Parameter],
    arrays: Sequence[Any],
    batched: Collection[int],
) -> tuple[list[Any], list[int]] | None:
    """Return the arrays of one call for a batch, and its results' batch dimensions.

    Returns None if no group of dimensions can have it.

    Parameters
    ----------
    xp : module
        `torch` or `jax.numpy`.
    call : Call
        The call for one element of the batch.
    parameters, arrays : sequence
        Its parameters and their arrays. Arrays in `batched` begin with the batch's dimension.
    """
    ndims = [x.ndim - (k in batched) for k, x in enumerate(arrays)]
    for group in _groups(call):
        places = operand_places(parameters, ndims, group)
        n_dims = max((at.stop - at.start for at in places if at), default=0)
        made = [_of_result(x, spec.ndim, n_dims, group) for x, spec in call.results]
        if None not in made and all(places[k] is not None for k in batched):
            starts = [at.start for at in made if at]
            return _joined(xp, parameters, arrays, batched, places, n_dims, group), starts
    return None


def _groups(call: Call) -> list[tuple[str, int]]:
    """Return the groups along which elements do not depend on each other."""
    if is_kept_whole(call.properties):
        return []
    signature = call.signature
    counted = names_in_sizes(signature).union(*(x.names for x in signature.ranges))
    names = independent(signature, call.properties) - counted
    dims = {dim for x in signature.parameters for dim in x.dims if dim[0] == "variadic"}
    numbers = [k for k, name in enumerate(signature.dim_names) if name in names]
    return [LOOP, *(("variadic", k) for k in numbers if ("variadic", k) in dims)]


def operand_places(
    parameters: Sequence[Parameter], ndims: Sequence[int], group: tuple[str, int] = LOOP
) -> list[slice | None]:
    """Return the position of a group's dimensions in each operand; None for operands without it."""
    return [_of_operand(x, n, group) for x, n in zip(parameters, ndims, strict=True)]


def _of_operand(x: Parameter, ndim: int, group: tuple[str, int]) -> slice | None:
    if group not in x.dims:
        return None
    before = x.dims.index(group)
    return slice(before, ndim - (len(x.dims) - 1 - before))


def _of_result(x: Parameter, ndim: int, n_dims: int, group: tuple[str, int]) -> slice | None:
    """After groups whose lengths differ, it is counted from the end; None between such groups."""
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


def _joined(
    xp: Any,
    parameters: Sequence[Parameter],
    arrays: Sequence[Any],
    batched: Collection[int],
    places: Sequence[slice | None],
    n_dims: int,
    group: tuple[str, int],
) -> list[Any]:
    """Return arrays with the new dimension before the group's.

    The call broadcasts loop dimensions, except in arrays that it changes.
    """
    joined = [*arrays]
    n = next(arrays[k].shape[0] for k in batched)
    for k, (x, at) in enumerate(zip(arrays, places, strict=True)):
        is_whole = group != LOOP or parameters[k].kind == "inout"
        if at is None or not (k in batched or is_whole):
            continue
        whole = x if k in batched else xp.broadcast_to(x, (n, *x.shape))
        moved = xp.moveaxis(whole, 0, at.start)
        ones = (1,) * (n_dims - (at.stop - at.start))
        shape = (*moved.shape[: at.start + 1], *ones, *moved.shape[at.start + 1 :])
        joined[k] = xp.reshape(moved, shape)
    return joined
