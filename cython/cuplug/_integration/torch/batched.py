# SPDX-License-Identifier: Apache-2.0
"""Operators in `torch.vmap`: one call if dimensions can include the batch, else one per element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from cuplug._engine.signature.spec import ArraySpec
from cuplug._integration.frameworks.batching import join_batch
from cuplug._integration.frameworks.call import Call
from cuplug._integration.torch.fake import matched
from cuplug._integration.torch.schema import Entry

__all__ = ["batched_rule"]


def batched_rule(entry: Entry) -> Callable[..., Any]:
    """Return a rule for PyTorch's `register_vmap`, for an overload."""

    def rule(info: Any, in_dims: Sequence[Any], *args: Any) -> Any:
        _check_written(entry, args, in_dims)
        first = [_first(x, d) for x, d in zip(args, in_dims, strict=True)]
        call = matched(entry.whole, entry.named([*map(_one, first, in_dims)]))
        found = _call_once(entry, call, in_dims, first)
        if found is None:
            found = _call_each(entry, info.batch_size, in_dims, first, call.outputs)
        results, places = found
        _write_back(entry, args, in_dims, first)
        if len(results) == 1:
            return results[0], places[0]
        return (tuple(results), tuple(places)) if results else (None, None)

    return rule


def _is_batched(d: Any) -> bool:
    return any(map(_is_batched, d)) if isinstance(d, (list, tuple)) else d is not None


def _first(x: Any, d: Any) -> Any:
    """Return arguments with the batch as the first dimension."""
    if isinstance(d, (list, tuple)):
        return [_first(*pair) for pair in zip(x, d, strict=True)]
    return x if d is None else x.movedim(d, 0).contiguous()


def _one(x: Any, d: Any) -> Any:
    """Return an argument for one element of the batch, without its elements."""
    if isinstance(d, (list, tuple)):
        return [_one(*pair) for pair in zip(x, d, strict=True)]
    return x if d is None else ArraySpec(x.dtype, x.shape[1:])


def _part(x: Any, d: Any, number: int) -> Any:
    if isinstance(d, (list, tuple)):
        return [_part(*pair, number) for pair in zip(x, d, strict=True)]
    return x if d is None else x[number]


def _check_written(entry: Entry, args: Sequence[Any], in_dims: Sequence[Any]) -> None:
    """Reject calls that would write all elements of a batch to one tensor."""
    for name in entry.overload.mutated_lists:
        raise TypeError(
            f"{entry.whole.operator.name}: {name}: got a list whose tensors are changed in place "
            "in torch.vmap, expected a call outside of it"
        )
    for k in entry.overload.mutated:
        if k >= len(args) or args[k] is None:
            continue
        if not _is_batched(in_dims[k]):
            raise ValueError(
                f"{entry.whole.operator.name}: {entry.names[k]}: got a tensor without the "
                "dimension of torch.vmap, expected one that has it, as it is changed in place"
            )


def _write_back(entry: Entry, args: Sequence[Any], in_dims: Sequence[Any], first: list) -> None:
    for k in entry.overload.mutated:
        if k >= len(args) or args[k] is None:
            continue
        there = args[k].movedim(in_dims[k], 0)
        if there.data_ptr() != first[k].data_ptr():
            there.copy_(first[k])


def _as_list(outputs: Any) -> list[Any]:
    if outputs is None:
        return []
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


# ---- One call ------------------------------------------------------------------------------------


def _call_once(
    entry: Entry, call: Call, in_dims: Sequence[Any], args: Sequence[Any]
) -> tuple[list[Any], list[int]] | None:
    """Return the results of one call, and the position of the batch in each; None if impossible."""
    parameters = call.signature.parameters[: len(args)]
    if any(x.kind == "arrays" for x in parameters):
        return None
    numbers = [k for k, x in enumerate(parameters) if x.is_array and args[k] is not None]
    batched = [at for at, k in enumerate(numbers) if _is_batched(in_dims[k])]
    arrays = [parameters[k] for k in numbers], [args[k] for k in numbers]
    found = join_batch(torch, call, *arrays, batched)
    if found is None:
        return None
    given = dict(zip(numbers, found[0], strict=True))
    results = _as_list(entry.call(*(given.get(k, x) for k, x in enumerate(args))))
    return results, found[1][len(found[1]) - len(results) :]


# ---- A call for each element of the batch --------------------------------------------------------


def _call_each(
    entry: Entry, n: int, in_dims: Sequence[Any], args: Sequence[Any], outputs: Sequence[ArraySpec]
) -> tuple[list[Any], list[int]]:
    if not n:
        like = next(x for x in args if isinstance(x, torch.Tensor))
        empty = [like.new_empty((0, *x.shape), dtype=getattr(torch, x.dtype)) for x in outputs]
        return empty, [0] * len(empty)
    parts = [
        _as_list(entry.call(*(_part(x, d, k) for x, d in zip(args, in_dims, strict=True))))
        for k in range(n)
    ]
    stacked = [torch.stack(same) for same in zip(*parts, strict=True)]
    return stacked, [0] * len(stacked)
