# SPDX-License-Identifier: Apache-2.0
"""Tensors without elements: what an operator gives where PyTorch traces it, sizes as symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import library

from cuplug._engine.signature.spec import ArraySpec
from cuplug._integration.frameworks.call import Call, Symbols, match
from cuplug._integration.frameworks.torch_functions import has_element_wise_rows
from cuplug._integration.frameworks.torch_schema import Entry, Registered

__all__ = ["fake_kernel", "matched"]

_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def matched(
    whole: Registered, given: dict[str, Any], unknown: Callable[[], Any] | None = None
) -> Call:
    """Return the call that an overload makes of arguments by name.

    `unknown` makes a size known after the run; without it these are -1.

    Raises
    ------
    TypeError, ValueError
        As a call that rejects its arguments.
    """
    specs = {name: _spec(x) for name, x in given.items()}
    return match(whole.operator, whole.rows, (), specs, _Symbols(unknown))


def _spec(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [_spec(item) for item in x]
    return ArraySpec(x.dtype, x.shape) if isinstance(x, torch.Tensor) else x


class _Symbols(Symbols):
    """Sizes of PyTorch: a comparison guards the graph. One of sizes known after the run is checked
    there.
    """

    types = (torch.SymInt, torch.SymFloat, torch.SymBool)

    def __init__(self, unknown: Callable[[], Any] | None) -> None:
        self._unknown = unknown

    def same(self, a: Any, b: Any) -> bool:
        return _holds(a == b)

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


# ---- The kernel ----------------------------------------------------------------------------------


def fake_kernel(entry: Entry) -> Callable[..., Any]:
    """Return the kernel of an overload for tensors without elements."""

    def fake(*args: Any) -> Any:
        given = entry.named(args)
        specs = matched(entry.whole, given, _unknown).outputs
        on_host = {x.name for row in entry.whole.rows for x in row.parameters if x.is_on_host}
        device = _device(entry.whole.operator.name, given, on_host)
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


def _device(operator: str, given: dict[str, Any], on_host: set[str]) -> torch.device:
    """Return where all tensors of a call but those of the host are; the host without any."""
    items = [(name, y) for name, x in given.items() for y in (x if isinstance(x, list) else [x])]
    places = [(name, x.device) for name, x in items if isinstance(x, torch.Tensor)]
    for name, place in places:
        if name in on_host and place.type not in ("cpu", "meta"):
            raise ValueError(
                f"{operator}: {name}: got a tensor on {place}, expected one in the memory of the "
                f"host; pass {name}.cpu()"
            )
    places = [(name, place) for name, place in places if name not in on_host]
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
