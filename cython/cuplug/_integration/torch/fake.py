# SPDX-License-Identifier: Apache-2.0
"""Tensors without elements: an operator's results when PyTorch traces it, with symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import library

from cuplug._engine.signature.signature import Parameter
from cuplug._engine.signature.spec import ArraySpec
from cuplug._integration.frameworks.batching import LOOP
from cuplug._integration.frameworks.call import Call, Symbols, match
from cuplug._integration.torch.schema import Entry, Registered

__all__ = ["fake_kernel", "matched"]

Shape = Sequence[Any]
Strides = Sequence[Any]
Order = Sequence[int]


def matched(
    whole: Registered, given: dict[str, Any], unknown: Callable[[], Any] | None = None
) -> Call:
    """Return the call of an overload with arguments by name.

    `unknown` creates a size known after the run. Without it, such sizes are -1.

    Raises
    ------
    TypeError, ValueError
        As in a call that rejects its arguments.
    """
    specs = {name: _spec(x) for name, x in given.items()}
    return match(whole.operator, whole.rows, (), specs, _Symbols(unknown))


def _spec(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [_spec(item) for item in x]
    return ArraySpec(x.dtype, x.shape) if isinstance(x, torch.Tensor) else x


class _Symbols(Symbols):
    """PyTorch's sizes.

    A comparison becomes a guard of the graph, or a check at run time if a size is then known.
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
        on_host = {x.name for row in entry.whole.rows for x in row.parameters if x.is_on_host}
        device = _device(entry.whole.operator.name, given, on_host)
        outputs = [
            torch.empty(x.shape, dtype=getattr(torch, x.dtype), device=device)
            if strides is None
            else torch.empty_strided(x.shape, strides, dtype=getattr(torch, x.dtype), device=device)
            for x, strides in zip(call.outputs, _output_strides(call, given), strict=True)
        ]
        return outputs[0] if len(outputs) == 1 else tuple(outputs) or None

    return fake


def _unknown() -> Any:
    return library.get_ctx().new_dynamic_size()


def _device(operator: str, given: dict[str, Any], on_host: set[str]) -> torch.device:
    """Return the device of all tensors in a call, without host tensors; the host if none remain."""
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
                f"{operator}: {name}: got a tensor on {other}, expected {device} (as {first}); "
                "move one to the other"
            )
    return device


# ---- Strides, as set by the core -----------------------------------------------------------------


def _output_strides(call: Call, given: dict[str, Any]) -> list[Strides | None]:
    """Return the strides of each output of a call, from its arguments by name.

    None: C order.
    """
    kept = _kept(call, given)
    pairs = zip(call.signature.outputs, call.outputs, strict=True)
    return [kept or _like(call, x, given, spec.shape) for x, spec in pairs]


def _like(call: Call, output: Parameter, given: dict[str, Any], shape: Shape) -> Strides | None:
    """Return the strides of an output that follows a tensor; None if they are in C order."""
    x = given[output.like] if output.like else None
    if x is None or x.is_contiguous():
        return None
    strides = _dense(shape, _order_like(call, output, x, shape))
    return None if _is_same(shape, strides, _dense(shape, range(len(shape)))) else strides


def _kept(call: Call, given: dict[str, Any]) -> Strides | None:
    """Return the strides of all tensors, if the overload treats all elements equally."""
    arrays = call.signature.arrays
    is_alike = all(x.dims == (LOOP,) for x in arrays) and "no_split" not in call.properties
    tensors = [x for x in given.values() if isinstance(x, torch.Tensor) and not _is_repeated(x)]
    if not is_alike or not tensors or tensors[0].is_contiguous():
        return None
    shape, strides = tensors[0].shape, tensors[0].stride()
    if any(x.shape != shape or x.stride() != strides for x in tensors[1:]):
        return None
    if not _is_same(shape, strides, _dense(shape, _order(shape, strides))):
        return None
    return strides if all(x.shape == tuple(shape) for x in call.outputs) else None


def _is_same(shape: Shape, first: Strides, other: Strides) -> bool:
    """Return whether two layouts are the same, except in dimensions of size 1."""
    whole = zip(shape, first, other, strict=True)
    return any(size == 0 for size in shape) or all(n == 1 or a == b for n, a, b in whole)


def _is_repeated(x: torch.Tensor) -> bool:
    return all(size == 1 or not stride for size, stride in zip(x.shape, x.stride(), strict=True))


def _order_like(call: Call, output: Parameter, x: torch.Tensor, shape: Shape) -> Order:
    """Return the order in memory of the dimensions of a tensor, after broadcasting."""
    dims = next(p.dims for p in call.signature.parameters if p.name == output.like)
    sizes, strides = list(x.shape), list(x.stride())
    if LOOP in dims:
        first, at, n_new = dims.index(LOOP), output.dims.index(LOOP), len(shape) - x.ndim
        sizes[first:first], strides[first:first] = [1] * n_new, [0] * n_new
        for k in range(len(shape) - len(dims) + 1):
            if sizes[first + k] != shape[at + k]:
                strides[first + k] = 0
    return _order(sizes, strides)


def _order(sizes: Shape, strides: Strides) -> Order:
    """Return dimensions from the outermost to the innermost.

    Comparisons that decide nothing are skipped, and the order is then C order.
    """
    order = list(range(len(sizes)))
    for last in order.copy():
        at = last
        for k in range(last - 1, -1, -1):
            a, b = order[k], order[at]
            inside = _inside((strides[a], sizes[a] == 1), (strides[b], sizes[b] == 1))
            if inside < 0:
                break
            if inside:
                order[k], order[at], at = b, a, k
    return order


def _inside(first: tuple[Any, Any], other: tuple[Any, Any]) -> int:
    """Return 1 if a dimension is inside another, -1 if outside, 0 if either order is possible.

    A dimension is (stride, whether its size is 1).
    """
    if not first[0] or not other[0]:
        return 0
    if first[0] != other[0]:
        return 1 if first[0] < other[0] else -1
    return bool(first[1]) - bool(other[1])


def _dense(shape: Shape, order: Order) -> list[Any]:
    """Return the strides of an array without gaps, from the order of its dimensions in memory."""
    strides, stride = [1] * len(shape), 1
    for d in reversed(order):
        strides[d] = stride
        stride = stride * torch.sym_max(shape[d], 1)
    return strides
