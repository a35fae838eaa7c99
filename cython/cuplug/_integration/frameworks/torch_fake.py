# SPDX-License-Identifier: Apache-2.0
"""Tensors without elements: what an operator gives where PyTorch traces it, sizes as symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import library

from cuplug._engine.signature.signature import Signature
from cuplug._engine.signature.spec import ArraySpec
from cuplug._engine.signature.symbolic import Misfit, Sizes, walk
from cuplug._integration.frameworks.torch_functions import has_element_wise_rows
from cuplug._integration.frameworks.torch_schema import Entry, Registered

__all__ = ["fake_kernel", "matched_row"]

_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def matched_row(
    whole: Registered, given: dict[str, Any], unknown: Callable[[], Any] | None = None
) -> tuple[int, tuple[ArraySpec, ...]]:
    """Return the row that takes the arguments of a call, and its outputs.

    Parameters
    ----------
    whole : Registered
        The operator.
    given : dict
        The arguments by name.
    unknown : callable, optional
        Makes a size that only the run finds; without it they are -1.

    Raises
    ------
    TypeError, ValueError
        As a call that refuses its arguments.
    """
    specs = {name: _spec(x) for name, x in given.items()}
    if any(map(_is_symbolic, specs.values())):
        return _walked(whole.rows, specs, unknown)
    row, outputs = whole.operator.infer(**specs)
    return row, tuple(_found(x, unknown) for x in outputs)


def _spec(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [_spec(item) for item in x]
    return ArraySpec(x.dtype, x.shape) if isinstance(x, torch.Tensor) else x


def _is_symbolic(x: Any) -> bool:
    if isinstance(x, ArraySpec):
        return any(map(_is_symbolic, x.shape))
    if isinstance(x, list):
        return any(map(_is_symbolic, x))
    return isinstance(x, (torch.SymInt, torch.SymFloat, torch.SymBool))


def _found(x: ArraySpec, unknown: Callable[[], Any] | None) -> ArraySpec:
    if unknown is None or all(size >= 0 for size in x.shape):
        return x
    return ArraySpec(x.dtype, tuple(unknown() if size < 0 else size for size in x.shape))


# ---- Symbols -------------------------------------------------------------------------------------


class _Symbols(Sizes):
    """Sizes of PyTorch: a comparison guards the graph; of what only the run finds, it is checked
    there.
    """

    def __init__(self, unknown: Callable[[], Any] | None) -> None:
        self._unknown = unknown

    def same(self, a: Any, b: Any) -> bool:
        return _holds(a == b)

    def broadcast(self, a: Any, b: Any) -> Any:
        for size, other in ((a, b), (b, a)):
            if isinstance(size, int) and size == 1:
                return other
        return super().broadcast(a, b)

    def is_possible(self, size: Any) -> bool:
        return _holds(size >= 0)

    def unknown(self) -> Any:
        return self._unknown() if self._unknown else -1


def _holds(fact: Any) -> bool:
    try:
        return bool(fact)
    except RuntimeError as error:
        if type(error).__name__ != "GuardOnDataDependentSymNode":
            raise
        torch._check(fact)
        return True


def _walked(
    rows: Sequence[Signature], specs: dict[str, Any], unknown: Any
) -> tuple[int, tuple[ArraySpec, ...]]:
    refusal = Misfit(f"{rows[0].name}: no row takes the arguments")
    for number, row in enumerate(rows):
        if not specs.keys() <= {x.name for x in row.parameters}:
            continue
        arguments = [specs.get(x.name, x.default) for x in row.parameters]
        try:
            return number, walk([row], arguments, _Symbols(unknown)).outputs
        except Misfit as misfit:
            refusal = misfit
    raise refusal


# ---- The kernel ----------------------------------------------------------------------------------


def fake_kernel(entry: Entry) -> Callable[..., Any]:
    """Return the kernel of an overload for tensors without elements."""

    def fake(*args: Any) -> Any:
        given = entry.named(args)
        specs = matched_row(entry.whole, given, _unknown)[1]
        device = _device(entry.whole.operator.name, given)
        strides = _channels_last(entry, given)
        outputs = [
            torch.empty(x.shape, dtype=getattr(torch, x.dtype), device=device)
            if strides is None
            else torch.empty_strided(x.shape, strides, dtype=getattr(torch, x.dtype), device=device)
            for x in specs
        ]
        return outputs[0] if len(outputs) == 1 else tuple(outputs) or None

    return fake


def _channels_last(entry: Entry, given: dict[str, Any]) -> Any:
    """Return the strides of the outputs if all tensors of an element-wise call have that format."""
    tensors = [x for x in given.values() if isinstance(x, torch.Tensor) and x.ndim]
    if not tensors or tensors[0].ndim not in _FORMATS:
        return None
    first = tensors[0]
    form = _FORMATS[first.ndim]
    if first.is_contiguous() or not first.is_contiguous(memory_format=form):
        return None
    shape, strides = first.shape, first.stride()
    if any(x.shape != shape or x.stride() != strides for x in tensors[1:]):
        return None
    return strides if has_element_wise_rows(entry.whole.operator) else None


def _unknown() -> Any:
    return library.get_ctx().new_dynamic_size()


def _device(operator: str, given: dict[str, Any]) -> torch.device:
    """Return where all tensors of a call are; it is the host of a call without any."""
    items = [(name, y) for name, x in given.items() for y in (x if isinstance(x, list) else [x])]
    places = [(name, x.device) for name, x in items if isinstance(x, torch.Tensor)]
    if not places:
        return torch.device("cpu")
    first, device = places[0]
    for name, other in places:
        if other != device:
            raise ValueError(
                f"{operator}: {name}: it is on {other} but {first} is on {device}; "
                "move one to the other"
            )
    return device
