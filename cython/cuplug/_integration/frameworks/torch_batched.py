# SPDX-License-Identifier: Apache-2.0
"""Operators inside of `torch.vmap`: one call where loop dimensions lead, else one for each part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from cuplug._engine.signature.parallel_dims import is_kept_whole
from cuplug._engine.signature.signature import Parameter, Signature
from cuplug._engine.signature.spec import ArraySpec
from cuplug._integration.frameworks.torch_fake import matched_row
from cuplug._integration.frameworks.torch_schema import Entry

__all__ = ["batched_rule"]

_LOOP = ("loop", 0)


def batched_rule(entry: Entry) -> Callable[..., Any]:
    """Return what PyTorch's `register_vmap` takes, for an overload."""

    def rule(info: Any, in_dims: Sequence[Any], *args: Any) -> Any:
        _check_written(entry, args, in_dims)
        first = [_first(x, d) for x, d in zip(args, in_dims, strict=True)]
        row, outputs = matched_row(entry.whole, entry.named([*map(_one, first, in_dims)]))
        batched = [k for k, d in enumerate(in_dims) if _is_batched(d)]
        if _is_looped(entry, row, batched):
            results = _call_once(entry, entry.whole.rows[row], batched, first)
        else:
            results = _call_each(entry, info.batch_size, in_dims, first, outputs)
        _write_back(entry, args, in_dims, first)
        if len(results) == 1:
            return results[0], 0
        return (tuple(results), (0,) * len(results)) if results else (None, None)

    return rule


def _is_batched(d: Any) -> bool:
    return any(map(_is_batched, d)) if isinstance(d, (list, tuple)) else d is not None


def _first(x: Any, d: Any) -> Any:
    """Return arguments with the dimension of the batch as the first."""
    if isinstance(d, (list, tuple)):
        return [_first(*pair) for pair in zip(x, d, strict=True)]
    return x if d is None else x.movedim(d, 0).contiguous()


def _one(x: Any, d: Any) -> Any:
    """Return an argument of one part of the batch, without its elements."""
    if isinstance(d, (list, tuple)):
        return [_one(*pair) for pair in zip(x, d, strict=True)]
    return x if d is None else ArraySpec(x.dtype, x.shape[1:])


def _part(x: Any, d: Any, number: int) -> Any:
    if isinstance(d, (list, tuple)):
        return [_part(*pair, number) for pair in zip(x, d, strict=True)]
    return x if d is None else x[number]


def _check_written(entry: Entry, args: Sequence[Any], in_dims: Sequence[Any]) -> None:
    """Refuse to write all parts of a batch to one tensor."""
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
                f"{entry.whole.operator.name}: {entry.names[k]}: seen a tensor without the "
                "dimension of torch.vmap, wanted one that has it, as it is changed in place"
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


def _is_looped(entry: Entry, row: int, batched: list[int]) -> bool:
    """Say whether a dimension before all others is one more loop dimension of the row."""
    signature = entry.whole.rows[row]
    if is_kept_whole(entry.whole.operator.properties[row]):
        return False
    moved = [signature.parameters[k] for k in batched]
    return all(x.kind != "arrays" and _LOOP in x.dims[:1] for x in (*moved, *signature.outputs))


def _call_once(entry: Entry, row: Signature, batched: list[int], args: Sequence[Any]) -> list[Any]:
    looped = {
        k: args[k].ndim - (k in batched) - (len(x.dims) - 1)
        for k, x in enumerate(row.parameters[: len(args)])
        if _is_loop(x) and isinstance(args[k], torch.Tensor)
    }
    most = max(looped.values(), default=0)
    given = list(args)
    for k in batched:  # the dimension of the batch stands before the loop dimensions of all
        x = args[k]
        given[k] = x.reshape(x.shape[0], *(1,) * (most - looped[k]), *x.shape[1:])
    return _as_list(entry.call(*given))


def _is_loop(x: Parameter) -> bool:
    return x.is_array and _LOOP in x.dims


# ---- A call for each part ------------------------------------------------------------------------


def _call_each(
    entry: Entry, n: int, in_dims: Sequence[Any], args: Sequence[Any], outputs: Sequence[ArraySpec]
) -> list[Any]:
    if not n:
        like = next(x for x in args if isinstance(x, torch.Tensor))
        return [like.new_empty((0, *x.shape), dtype=getattr(torch, x.dtype)) for x in outputs]
    parts = [
        _as_list(entry.call(*(_part(x, d, k) for x, d in zip(args, in_dims, strict=True))))
        for k in range(n)
    ]
    return [torch.stack(same) for same in zip(*parts, strict=True)]
