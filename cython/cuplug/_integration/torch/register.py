# SPDX-License-Identifier: Apache-2.0
"""`torch.ops.cuplug`: operators as PyTorch operators, created at the first use of their names."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import numpy
import torch
from torch import library

from cuplug._engine.call.operator import Operator
from cuplug._engine.call.output_tuples import all_outputs, named_outputs
from cuplug._engine.interop.libtorch import is_tracing
from cuplug._engine.interop.torch_private import (
    OpNamespace,
    add_kernel,
    has_dual_level,
    is_transformed,
    untraced,
)
from cuplug._engine.lookup.find import find
from cuplug._engine.signature.call_signature import are_alike, by_name
from cuplug._engine.signature.signature import refuse_handles, signatures_of
from cuplug._integration.torch.batched import batched_rule
from cuplug._integration.torch.fake import fake_kernel, matched
from cuplug._integration.torch.functions import is_available
from cuplug._integration.torch.gradient import autograd_kernel, count_writes
from cuplug._integration.torch.schema import Entry, Registered, overloads_of
from cuplug._integration.torch.sharding import add_strategy
from cuplug.errors import NotFoundError

__all__ = ["hand_on", "register"]

NAMESPACE = "cuplug"
_TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order)
_LETTERS = {"Tensor": "T", "SymInt": "i", "bool": "b", "float": "f", "str": "s"}
_library = vars(library)["Library"](NAMESPACE, "FRAGMENT")
_lock = threading.RLock()
_registered: dict[Operator, Registered] = {}
_names: set[str] = set()


def register(operator: Operator) -> Registered:
    """Return an operator's PyTorch operator, created at the first use."""
    known = _registered.get(operator)
    if known is None:
        with _lock:
            with untraced():  # this computation is not part of a program
                known = _registered.get(operator) or _define(operator)
            _registered[operator] = known
    return known


class _Namespace(OpNamespace):  # type: ignore[misc]
    """`torch.ops.cuplug`, which creates an operator at the first use of its name."""

    __module__ = OpNamespace.__module__  # part of names in exported programs

    def __getattr__(self, name: str) -> Any:
        with _lock:  # another thread's operator is then complete
            if name in self.__dict__:
                return self.__dict__[name]
            with contextlib.suppress(AttributeError):
                return super().__getattr__(name)
            packet = None if name in _names else _packet_of(name)
        if packet is None:
            raise AttributeError(f"torch.ops.{NAMESPACE}.{name}: there is no such operator")
        return packet


def _packet_of(name: str) -> Any:
    plugin, _, operator = name.partition("__")
    for full_name in (name, f"{plugin}.{operator}") if plugin and operator else (name,):
        with contextlib.suppress(NotFoundError):
            packet = register(find(full_name)).packet
            if packet.__name__ == name:
                return packet
    return None


def _define(operator: Operator) -> Registered:
    refuse_handles(operator, "what PyTorch registers", "call it outside of that on x.detach()")
    rows = signatures_of(operator)
    name = _free_name(operator)
    tags = _TAGS + (torch.Tag.dynamic_output_shape,) * any(
        kind == "unknown" for row in rows for x in row.outputs for kind, _ in x.dims
    )
    _names.add(name)
    overloads = overloads_of(rows)
    for x in overloads:
        full_name = f"{name}.{x.name}" if x.name else name
        _library.define(full_name + x.text, tags=tags)
    arguments = [argument for x in overloads for argument in x.arguments]
    spelled = {x.name: x.spelled for x in arguments if x.name != x.spelled}
    choose = None if are_alike(operator.signatures) else _choose
    whole = Registered(operator, rows, getattr(torch.ops.cuplug, name), spelled, choose)
    for x in overloads:
        entry = Entry(whole, x, getattr(whole.packet, x.name or "default"))
        _implement(f"{name}.{x.name}" if x.name else name, entry)
    return whole


def _choose(
    whole: Registered, args: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[Any, dict[str, Any]] | None:
    """Return the first overload that accepts the arguments, and the arguments by its names."""
    if torch.compiler.is_compiling():  # PyTorch selects by names
        return None
    for number, row in enumerate(whole.rows):
        given = by_name(row, args, keywords)
        if given is None:
            continue
        given = {name: x for name, x in given.items() if x is not None}
        with contextlib.suppress(TypeError, ValueError):
            if matched(whole, given).row == number:
                found = next(x for x in overloads_of(whole.rows) if number in x.rows)
                return getattr(whole.packet, found.name or "default"), given
    return None


def _free_name(operator: Operator) -> str:
    """Return the operator's name if it finds this operator; otherwise with the plugin's name."""
    name = operator.name if _is_found(operator) else f"{operator.plugin}__{operator.name}"
    number = 1
    free = name
    while free in _names:  # names another operator, such as one from source
        number += 1
        free = f"{name}__{number}"
    return free


def _is_found(operator: Operator) -> bool:
    try:
        return find(operator.name) == operator
    except NotFoundError:
        return False


def _implement(name: str, entry: Entry) -> None:
    kernel, recording = _kernel(entry), autograd_kernel(entry, register)
    add_strategy(entry)  # `recording` does this for operators created before DTensor's import
    keys = ("CPU", "CUDA") if entry.overload.has_tensor else ("CompositeExplicitAutograd",)
    for key in keys:
        if not _implement_boxed(name, key, entry, kernel):
            _library.impl(name, kernel, key)
    _library.impl(name, recording, "Autograd")
    if not entry.overload.mutated:  # their writes must be counted
        for key in (f"Autograd{key}" for key in keys):
            # If sizes are symbols, a boxed kernel would receive integers as numbers.
            if _implement_boxed(name, key, entry, recording):
                add_kernel(entry.call, key, recording)
    if entry.overload.mutated:
        _library.impl(name, count_writes(entry), "ADInplaceOrView", with_keyset=True)
    qualified = f"{NAMESPACE}::{name}"
    library.register_fake(qualified, fake_kernel(entry), lib=_library)
    if hasattr(library, "register_vmap"):  # PyTorch 2.5 and newer
        library.register_vmap(qualified, batched_rule(entry), lib=_library)


def _implement_boxed(name: str, key: str, entry: Entry, kernel: Callable[..., Any]) -> bool:
    """Register a kernel without Python if possible; return whether it was."""
    types = [_LETTERS.get(x.type) for x in entry.overload.arguments]
    if None in types or not entry.overload.has_tensor or not is_available():
        return False
    if not are_alike(entry.whole.operator.signatures):  # arguments must be passed by name
        return False
    from cuplug._integration.torch.boxed import implement

    optional = [x.is_optional for x in entry.overload.arguments]
    kinds, n_outputs = "".join(map(str, types)), entry.overload.n_outputs
    return implement(name, key, entry.whole.operator, kinds, optional, n_outputs, kernel)


def _kernel(entry: Entry) -> Callable[..., Any]:
    operator = entry.whole.operator
    differ = not are_alike(operator.signatures)
    mutated = {*entry.overload.mutated}

    def kernel(*args: Any) -> Any:
        """Gradients are already recorded: tensors that require them need no special treatment."""
        plain = [_uncounted(x) if k in mutated else _without_grad(x) for k, x in enumerate(args)]
        if differ or any(x is None for x in plain):
            return _as_tensors(operator(**entry.named(plain), **all_outputs(operator)))
        return _as_tensors(operator(*plain, **all_outputs(operator)))

    return kernel


def _uncounted(x: Any) -> Any:
    """Return tensors of the same memory with other version counters: the write is counted."""
    if isinstance(x, torch.Tensor):
        return x.data
    return [_uncounted(item) for item in x] if isinstance(x, (list, tuple)) else x


def _without_grad(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return x.detach() if x.requires_grad else x
    return [_without_grad(item) for item in x] if isinstance(x, (list, tuple)) else x


def _as_tensors(result: Any) -> Any:
    """Convert outputs. A call without tensors returns NumPy arrays."""
    if isinstance(result, tuple):
        return tuple(map(_as_tensors, result))
    return torch.from_numpy(result) if isinstance(result, numpy.ndarray) else result


def hand_on(operator: Operator, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Call an operator on tensors that PyTorch records or traces.

    Returns NotImplemented for objects that only resemble them.

    Raises
    ------
    TypeError
        `out`, `device` or `stream` is passed, which PyTorch's operators do not have.
    """
    given = {name: x for name, x in keywords.items() if x is not None}
    if not _has_tensor([*args, *given.values()]):
        return NotImplemented
    own = [name for name in ("out", "device", "stream") if name in given]
    if own and _is_unrecorded([*args, *given.values()]):
        return _call_detached(operator, args, given)
    if own:
        raise TypeError(
            f"{operator.name}: {own[0]}: got with a tensor that PyTorch records or traces, "
            "expected without (or pass x.detach())"
        )
    whole = register(operator)
    keeps = not any(x.is_inout for row in whole.rows for x in row.parameters)
    tensors = {name: _as_tensor(x, keeps) for name, x in given.items()}
    result = whole(*(_as_tensor(x, keeps) for x in args), **tensors)
    names, *others = {tuple(x.name for x in row.outputs) for row in whole.rows}
    if isinstance(result, tuple) and all(names) and not others:
        return named_outputs(operator.name, names, tuple(result))
    return result


def _is_unrecorded(x: Any) -> bool:
    """Return whether tensors that require grad need no special treatment, as in torch.no_grad()."""
    if isinstance(x, (list, tuple)):
        return all(map(_is_unrecorded, x))
    if torch.is_grad_enabled() or has_dual_level() or is_transformed() or is_tracing():
        return False
    return not isinstance(x, torch.Tensor) or type(x) in (torch.Tensor, torch.nn.Parameter)


def _call_detached(operator: Operator, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Call an operator outside of autograd; return the tensors in `out` themselves."""
    plain = {name: _detached(x) for name, x in keywords.items()}
    result = operator(*map(_detached, args), **plain)
    out = keywords.get("out")
    if not isinstance(out, tuple):
        return result if out is None else out
    found = [y if x is None else x for x, y in zip(out, result, strict=True)]
    return type(result)._make(found) if hasattr(result, "_make") else tuple(found)


def _detached(x: Any) -> Any:
    """Return tensors without their history, which share memory and version with the originals."""
    if isinstance(x, (list, tuple)):
        return tuple(map(_detached, x)) if isinstance(x, tuple) else [*map(_detached, x)]
    return x.detach() if isinstance(x, torch.Tensor) else x


def _as_tensor(x: Any, keeps: bool) -> Any:
    """Return NumPy arrays, which may be mixed with tensors, as tensors.

    If `keeps` is true, no array is modified, and a read-only one may be copied.
    """
    if isinstance(x, (list, tuple)):
        return [_as_tensor(item, keeps) for item in x]
    if not isinstance(x, numpy.ndarray) or not (keeps or x.flags.writeable):
        return x
    return torch.from_numpy(x if x.flags.writeable else x.copy())


def _has_tensor(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_has_tensor, x))
    return isinstance(x, (torch.Tensor, torch.fx.Proxy))


torch.ops.cuplug = _Namespace(NAMESPACE)
