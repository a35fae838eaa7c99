# SPDX-License-Identifier: Apache-2.0
"""Tensors without elements: what an operator gives where PyTorch traces it, sizes as symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import library

from cuplug._engine.signature.spec import ArraySpec
from cuplug._integration.frameworks.call import Call, Symbols, match
from cuplug._integration.frameworks.torch_layouts import output_strides
from cuplug._integration.frameworks.torch_schema import Entry, Registered

__all__ = ["fake_kernel", "matched"]


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
        call = matched(entry.whole, given, _unknown)
        device = _device(entry.whole.operator.name, given)
        outputs = [
            torch.empty(x.shape, dtype=getattr(torch, x.dtype), device=device)
            if strides is None
            else torch.empty_strided(x.shape, strides, dtype=getattr(torch, x.dtype), device=device)
            for x, strides in zip(call.outputs, output_strides(call, given), strict=True)
        ]
        return outputs[0] if len(outputs) == 1 else tuple(outputs) or None

    return fake


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
