# SPDX-License-Identifier: Apache-2.0
"""An operator in PyTorch's autograd: its gradient, and its forward derivative if it is linear."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from cuplug._engine.interop.torch_private import (
    SingleLevelFunction,
    after_writes,
    base_of,
    below_autograd,
    has_dual_level,
    is_forward,
    is_transformed,
    set_forward,
    single_level,
)
from cuplug._engine.signature.gradient import Gradient, broadcast_inputs, detached_of, linear_names
from cuplug._integration.frameworks.call import gradient_of
from cuplug._integration.torch.fake import matched
from cuplug._integration.torch.schema import Entry, Registered
from cuplug._integration.torch.sharding import add_strategy

__all__ = ["autograd_kernel", "count_writes"]

_GRADIENT = "gradient"  # the kind of a gradient argument
_is_enabled = torch.is_grad_enabled


@dataclass(frozen=True)
class _Plan:
    """How the gradient of one overload of the plugin is computed."""

    whole: Registered  # the operator that computes it
    gradient: Gradient
    written: tuple[str, ...]  # the names of the arguments that it modifies in place
    saved: tuple[tuple[str, bool, int], ...]  # saved values: name, is a result, number
    broadcast: tuple[int, ...]  # the targets that may be broadcast
    detached: tuple[int, ...]  # results that the signature marks as detached


class _NoPlan(NamedTuple):
    """Why an overload of the plugin has no gradient."""

    error: Exception
    detached: tuple[int, ...]


class _Plans:
    """The gradients of the signatures in one PyTorch overload, each found at the first use."""

    def __init__(self, entry: Entry, register: Callable[..., Registered]) -> None:
        self._entry, self._register = entry, register
        self._known: dict[int, _Plan | _NoPlan] = {}
        self.only: _Plan | _NoPlan | None = None  # for a single signature, after it is found

    def of(self, args: Sequence[Any]) -> _Plan | _NoPlan:
        """Return how the gradient of a call is computed, or why it has none."""
        row = self.row_of(args)
        plan = self._known.get(row)
        if plan is None:
            plan = self._known[row] = self._find(row)
        if len(self._entry.whole.rows) == 1:
            self.only = plan
        return plan

    def row_of(self, args: Sequence[Any]) -> int:
        entry = self._entry
        if len(entry.whole.rows) == 1:
            return 0
        return matched(entry.whole, entry.named(args)).row

    def _find(self, row: int) -> _Plan | _NoPlan:
        signature = self._entry.whole.rows[row]
        detached = detached_of(signature)
        try:
            found = gradient_of(self._entry.whole.operator, row)
        except Exception as error:
            return _NoPlan(error, detached)
        whole = self._register(found[0])
        names = dict.fromkeys(x.name for y in whole.rows for x in y.parameters if x.is_inout)
        written = tuple(name for name in names if name in found[1].arguments)
        origins = found[1].arguments.items()
        saved = [(name, x.kind == "result", x.number) for name, x in origins if x.kind != _GRADIENT]
        targets = tuple(k for k in found[1].targets if k in broadcast_inputs(signature))
        return _Plan(whole, found[1], written, tuple(saved), targets, detached)


# ---- The kernels ---------------------------------------------------------------------------------


def autograd_kernel(entry: Entry, register: Callable[..., Registered]) -> Callable[..., Any]:
    """Return the kernel that records the gradient of a call if it is needed.

    `register` registers the operators that compute gradients.
    """
    function = _function(entry, _Plans(entry, register))
    has_lists, mutated = entry.overload.has_lists, entry.overload.mutated

    def kernel(*args: Any) -> Any:
        add_strategy(entry)
        if not _is_recorded(args):
            return _below(entry, args)
        _check_leaves(entry, args)
        _refuse_lists(entry)
        lengths, flat = _flatten(args) if has_lists else (None, args)
        results = _apply(function, lengths, *flat)
        if not mutated:
            return results
        n_written = sum(_at(args, k) is not None for k in mutated)
        outputs = (results if isinstance(results, tuple) else (results,))[n_written:]
        return outputs[0] if len(outputs) == 1 else outputs or None

    return kernel


def count_writes(entry: Entry) -> Callable[..., Any]:
    """Return the kernel that reports to autograd the tensors that a call modifies."""

    def kernel(keyset: Any, *args: Any) -> Any:
        for _, x in entry.written(args):
            torch.autograd.graph.increment_version(x)
        return entry.call.redispatch(after_writes(keyset), *args)

    return kernel


def _check_leaves(entry: Entry, args: Sequence[Any]) -> None:
    """Reject writes to leaves before the call, since torch.autograd.Function rejects them after it.

    Raises
    ------
    RuntimeError
        As in PyTorch's in-place functions.
    """
    for k, x in entry.written(args) if _is_enabled() else ():
        if not x.requires_grad:
            continue
        base = base_of(x)
        if base.is_leaf and base.requires_grad:
            kind = "a leaf Variable" if base is x else "a view of a leaf Variable"
            raise RuntimeError(
                f"{entry.whole.operator.name}: {entry.names[k]}: {kind} that requires grad is "
                "being used in an in-place operation; call it inside torch.no_grad()"
            )


def _refuse_lists(entry: Entry) -> None:
    """Reject recorded changes of tensors in lists, which autograd does not track."""
    for name in entry.overload.mutated_lists:
        raise NotImplementedError(
            f"{entry.whole.operator.name}: {name}: got tensors that require grad in a call that "
            "changes the tensors of a list, expected none; call it inside torch.no_grad()"
        )


def _at(args: Sequence[Any], k: int) -> Any:
    """Return an argument; None if it was omitted."""
    return args[k] if k < len(args) else None


def _is_recorded(args: Sequence[Any]) -> bool:
    return (_is_enabled() and _requires_grad(args)) or is_forward()


def _requires_grad(args: Sequence[Any]) -> bool:
    for x in args:
        if isinstance(x, torch.Tensor):
            if x.requires_grad:
                return True
        elif isinstance(x, (list, tuple)) and _requires_grad(x):
            return True
    return False


def _apply(function: Any, *args: Any) -> Any:
    """Record a call. For nested transforms, such as grad(grad(f)), this is called for each."""
    if not is_transformed():
        return function.apply(*args)
    with single_level():
        return function.apply(*args)


def _below(entry: Entry, args: Sequence[Any]) -> Any:
    with below_autograd():
        return entry.call(*args)


def _flatten(args: Sequence[Any]) -> tuple[tuple[int, ...], list[Any]]:
    """Return the lengths of lists, -1 for other arguments, and all items, which autograd tracks."""
    lengths = tuple(len(x) if isinstance(x, (list, tuple)) else -1 for x in args)
    return lengths, [y for x, n in zip(args, lengths, strict=True) for y in ([x] if n < 0 else x)]


def _unflatten(lengths: tuple[int, ...] | None, flat: Sequence[Any]) -> list[Any]:
    if lengths is None:
        return list(flat)
    items = iter(flat)
    return [next(items) if n < 0 else [next(items) for _ in range(n)] for n in lengths]


# ---- Recording -----------------------------------------------------------------------------------


def _function(entry: Entry, plans: _Plans) -> Any:
    """Return the autograd function of an overload.

    It takes the lengths of lists and the arguments, and returns the results.
    """
    mutated, call = entry.overload.mutated, entry.call

    def forward(ctx: Any, lengths: Any, *flat: Any) -> Any:
        args = flat if lengths is None else _unflatten(lengths, flat)
        plan = plans.only or plans.of(args)
        before = _before(plan, args, mutated) if mutated else args
        # Gradients are disabled here: the call is not recorded again.
        results = _run(entry, args) if mutated or is_transformed() else call(*args)
        if mutated:
            written = [_at(args, k) for k in mutated]  # None if it was omitted
            ctx.mark_dirty(*(x for x in written if x is not None))
            results = (*written, *_as_list(results))
        whole = results if isinstance(results, tuple) else (results,)
        _save(ctx, plan, lengths, before, whole)
        if plan.detached:
            ctx.mark_non_differentiable(*(whole[k] for k in plan.detached))
        if not mutated:
            return results
        # If a result is a view, PyTorch allows only one result. Omitted arrays are not results.
        ctx.present = [x is not None for x in whole]
        return tuple(itertools.compress(whole, ctx.present))

    def backward(ctx: Any, *grads: Any) -> Any:
        plan, lengths, n_args, names, others, shapes = ctx.record
        if not isinstance(plan, _Plan):
            raise plan.error
        if mutated:
            left = iter(grads)
            grads = tuple(next(left) if is_present else None for is_present in ctx.present)
        given = others | dict(zip(names, ctx.saved_tensors, strict=True))
        found = _gradients(plan, shapes, given, grads)
        n = [1 if length < 0 else length for length in lengths or (-1,) * n_args]
        flat = [None, *(found.get(k) for k, times in enumerate(n) for _ in range(times))]
        return tuple(x if y else None for x, y in zip(flat, ctx.needs_input_grad, strict=True))

    def jvp(ctx: Any, _lengths: Any, *flat: Any) -> Any:
        args, results = ctx.call
        tangents = _unflatten(ctx.record[1], flat)
        del ctx.call
        with set_forward(False):
            found = _along(entry, plans, args, results, tangents)
        return tuple(itertools.compress(found, ctx.present)) if mutated else found

    members = {"forward": forward, "backward": backward, "jvp": jvp}
    functions = {key: staticmethod(value) for key, value in members.items()}
    return type(f"{entry.whole.operator.name}_of_cuplug", (SingleLevelFunction,), functions)


def _run(entry: Entry, args: Sequence[Any]) -> Any:
    """Run a call with gradients enabled, for other transforms and changes under torch.compile."""
    with torch.enable_grad(), set_forward(is_transformed()):
        return _below(entry, args)


def _as_list(outputs: Any) -> list[Any]:
    if outputs is None:
        return []
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def _before(plan: Any, args: Sequence[Any], mutated: list[int]) -> list[Any]:
    """Return the arguments, with copies of modified ones that the gradient needs."""
    origins = plan.gradient.arguments.values() if isinstance(plan, _Plan) else ()
    wanted = {origin.number for origin in origins if origin.kind == "argument"}
    given = {k for k in mutated if _at(args, k) is not None}
    copied = {k for k in given if has_dual_level() or k in wanted}
    return [x.clone() if k in copied else x for k, x in enumerate(args)]


def _save(ctx: Any, plan: Any, lengths: Any, args: Sequence[Any], results: tuple[Any, ...]) -> None:
    """Save the inputs of the gradient, except for the gradients of the results."""
    names, tensors, others = [], [], {}
    if type(plan) is _Plan:
        for name, x in _given(plan, args, results):
            if isinstance(x, torch.Tensor):
                names.append(name)
                tensors.append(x)
            elif x is not None:
                others[name] = x
        ctx.save_for_backward(*tensors)
    ctx.record = plan, lengths, len(args), names, others, _shapes(plan, args)
    if has_dual_level():
        ctx.call = args, results


def _given(plan: _Plan, args: Sequence[Any], results: Sequence[Any]) -> list[tuple[str, Any]]:
    places = args, results
    return [
        (name, places[is_result][number])
        for name, is_result, number in plan.saved
        if number < len(places[is_result])  # otherwise it was omitted
    ]


def _shapes(plan: Any, args: Sequence[Any]) -> dict[int, Any]:
    """Return the shapes of the arguments whose gradients may have the broadcast shape."""
    targets = plan.broadcast if type(plan) is _Plan else ()
    if not targets:
        return {}
    given = [k for k in targets if k < len(args) and args[k] is not None]
    return {k: args[k].shape for k in given}


def _gradients(
    plan: _Plan, shapes: dict[int, Any], given: dict[str, Any], grads: Sequence[Any]
) -> dict[int, Any]:
    """Call the operator that computes the gradients. It modifies copies in place."""
    given = dict(given)
    for name, origin in plan.gradient.arguments.items():
        if origin.kind == _GRADIENT and grads[origin.number] is not None:
            given[name] = grads[origin.number]
    for name in plan.written:
        if name in given:
            given[name] = given[name].clone(memory_format=torch.contiguous_format)
    outputs = _as_list(plan.whole(**given))
    written = [given.get(name) for name in plan.written]
    found = zip(plan.gradient.targets, [*written, *outputs], strict=True)
    return {k: _summed(x, shapes[k]) if k in shapes else x for k, x in found if x is not None}


def _summed(gradient: Any, shape: Any) -> Any:
    """Return the gradient of an array that was broadcast."""
    return gradient if gradient.shape == shape else gradient.sum_to_size(shape)


# ---- Forward mode --------------------------------------------------------------------------------


def _along(
    entry: Entry, plans: _Plans, args: list[Any], results: Sequence[Any], tangents: list[Any]
) -> Any:
    """Return the derivatives of the results along the tangents of arguments."""
    operator = entry.whole.operator
    linear = linear_names(operator.properties[plans.row_of(args)].get("linear"))
    moving = {k: x for k, x in enumerate(tangents) if _has_tensor(x)}
    if {entry.names[k] for k in moving} <= {*linear}:
        return _along_linear(entry, linear, args, tangents)
    plan = plans.of(args)
    if not isinstance(plan, _Plan):
        raise plan.error
    if entry.overload.mutated:
        raise NotImplementedError(
            f"{operator.name}: it has no derivative in forward mode: it changes arrays in place "
            f"and is not linear in {', '.join(entry.names[k] for k in moving)}"
        )
    return _along_transposed(plan, args, results, moving)


def _along_linear(entry: Entry, linear: Sequence[str], args: list[Any], tangents: list[Any]) -> Any:
    """For linear operators: the operator's results for the tangents."""
    given = list(args)
    for k, name in enumerate(entry.names[: len(args)]):
        if name in linear and _has_tensor(args[k]):
            given[k] = _tangent(args[k], tangents[k])
    outputs = _as_list(entry.call(*given))
    return (*(_at(given, k) for k in entry.overload.mutated), *outputs)


def _has_tensor(x: Any) -> bool:
    return any(isinstance(item, torch.Tensor) for item in (x if isinstance(x, list) else [x]))


def _tangent(x: Any, tangent: Any) -> Any:
    if isinstance(x, list):
        return [_tangent(*pair) for pair in zip(x, tangent, strict=True)]
    return torch.zeros_like(x) if tangent is None else tangent


def _along_transposed(
    plan: _Plan, args: list[Any], results: Sequence[Any], moving: dict[int, Any]
) -> Any:
    """Return the gradient of the gradient with respect to the results' gradients: it is linear."""
    with torch.enable_grad():
        grads = [torch.zeros_like(x, requires_grad=x.is_floating_point()) for x in results]
        given = {name: x for name, x in _given(plan, args, results) if x is not None}
        found = _gradients(plan, _shapes(plan, args), given, grads)
    inputs = [x for x in grads if x.requires_grad]
    outputs = [found[k] for k in moving if k in found]
    along = torch.autograd.grad(
        outputs, inputs, [moving[k] for k in moving if k in found], materialize_grads=True
    )
    by_id = dict(zip(map(id, inputs), along, strict=True))
    return tuple(by_id.get(id(x)) for x in grads)
