# SPDX-License-Identifier: Apache-2.0
"""Calls as a JAX primitive: traced, compiled, batched. gradient.py has their derivatives.

Programs contain `call_p`. It is compiled to `run_p`, the custom call, which is split along
independent dimensions if arrays are sharded.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import numpy
from jax.experimental.custom_partitioning import custom_partitioning
from jax.extend.core import InconclusiveDimensionOperation, Primitive, mapped_aval
from jax.sharding import NamedSharding, PartitionSpec

from cuplug._engine.call.operator import Operator
from cuplug._engine.interop.jax_private import batching, dispatch, mlir, xla
from cuplug._engine.lookup.find import find
from cuplug._engine.signature.call_signature import are_alike, by_name
from cuplug._engine.signature.spec import ArraySpec
from cuplug._integration.frameworks.batching import join_batch, operand_places
from cuplug._integration.frameworks.call import Call, Label, Symbols, Unknown
from cuplug._integration.frameworks.call import match as match_call
from cuplug._integration.jax import handler
from cuplug._integration.jax.arguments import (
    ABSENT,
    TracedCall,
    keyword_at,
    read_call,
    read_values,
    rows_of,
    texts_of,
)
from cuplug.errors import NotFoundError

__all__ = ["bind", "call_p", "like", "match", "read"]

call_p = Primitive("cuplug")
run_p = Primitive("cuplug_run")
_Labels = list[Label | None]  # for each dimension of an array; None: not split
TARGET, WAITING = "cuplug", "cuplug_waiting"  # the handlers' names in XLA

for name, handlers in ((TARGET, handler.CUDA), (WAITING, handler.CUDA_WAITING)):
    jax.ffi.register_ffi_target(name, handler.CPU, platform="cpu")
    jax.ffi.register_ffi_target(name, handlers, platform="CUDA")


def bind(call: TracedCall, operands: Sequence[Any]) -> list[Any]:
    """Return the results of a call: modified in-out arrays, then outputs."""
    rows = rows_of(call.operator)
    if any(row.outputs or any(x.kind == "inout" for x in row.parameters) for row in rows):
        return call_p.bind(*_varying_alike(operands), call=call)
    run = jax.ffi.ffi_call(_target(call), (), has_side_effect=True, vmap_method="sequential")
    return list(run(*operands, **_attributes(call)))


def _varying_alike(operands: Sequence[Any]) -> list[Any]:
    """Under jax.shard_map: mark replicated operands as varying over the same axes as the others."""
    axes = [_varying(jax.typeof(x)) for x in operands]
    missing = [frozenset().union(*axes) - own for own in axes]
    pairs = zip(operands, missing, strict=True)
    return [jax.lax.pcast(x, tuple(lacks), to="varying") if lacks else x for x, lacks in pairs]


def _varying(aval: Any) -> frozenset[Any]:
    return aval.manual_axis_type.varying


class _Sizes(Symbols):
    """Sizes of jax.export.symbolic_shape. The run decides undecidable comparisons."""

    def is_possible(self, size: Any) -> bool:
        try:
            return bool(size >= 0)
        except InconclusiveDimensionOperation:
            return True


def match(call: TracedCall, avals: Sequence[Any]) -> Call:
    """Return the call on such operands. With a single overload, it is by the overload's names."""
    rows = rows_of(call.operator)
    pairs = zip(avals, call.are_read, strict=True)
    values = call.arguments([_operand(call, x, is_read) for x, is_read in pairs])
    absent = [k for k, x in enumerate(values) if x is ABSENT]
    n = 0 if call.row >= 0 else min(absent, default=len(values))
    own = [x.name for x in rows[call.row].parameters] if call.row >= 0 else None
    later = [(k, x) for k, x in enumerate(values) if k >= n and x is not ABSENT]
    keywords = {own[k] if own else keyword_at(call.operator, k): x for k, x in later}
    return match_call(call.operator, rows, values[:n], keywords, _Sizes(), call.row)


def _operand(call: TracedCall, aval: Any, is_read: bool) -> Any:
    if is_read:
        return True if aval.dtype == bool else Unknown()
    try:
        return ArraySpec(aval.dtype, aval.shape)
    except TypeError as error:
        raise TypeError(f"{call.operator.name}: {error}") from None


# ---- Keyword arguments of overloads whose parameters have different positions -------------------


def read(
    operator: Operator, args: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[TracedCall, list[Any]]:
    """Return a call without its operands, and the operands.

    Raises
    ------
    TypeError, ValueError
        No overload accepts arguments with these names.
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
            match(call, [jax.typeof(x) for x in operands])
        except (TypeError, ValueError) as refusal:
            error = error or refusal
        else:
            return call, operands
    if error is not None:
        raise error
    return read_call(operator, args, keywords)  # its error names the cause


# ---- Tracing -------------------------------------------------------------------------------------


def _result_avals(*avals: Any, call: TracedCall) -> list[Any]:
    return _results(call, match(call, avals), avals)


def _results(call: TracedCall, matched: Call, avals: Sequence[Any]) -> list[Any]:
    for spec in matched.outputs:
        if any(isinstance(size, int) and size < 0 for size in spec.shape):
            raise TypeError(
                f"{call.operator.name}: an output has a size that is known only after the run, and "
                "shapes in a program of JAX are fixed: call it outside of jax.jit and the like"
            )
    inouts = [avals[k].update(weak_type=False) for k in call.inouts(matched.row)]
    spread = _spread(call, matched, avals)
    pairs = zip(matched.outputs, spread[len(inouts) :], strict=True)
    return inouts + [like(avals, x.dtype, x.shape, own) for x, own in pairs]


def like(avals: Sequence[Any], dtype: str, shape: tuple[Any, ...], spread: Any = ()) -> Any:
    """Return an abstract array on the mesh of others, which varies over the same axes."""
    dtype = jax.numpy.dtype(dtype)
    if not avals:
        return jax.core.ShapedArray(shape, dtype)
    sharding = NamedSharding(avals[0].sharding.mesh, PartitionSpec(*spread))
    return avals[0].update(shape=shape, dtype=dtype, weak_type=False, sharding=sharding)


def _spread(call: TracedCall, matched: Call, avals: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the mesh axes over which results are sharded: the operands', if they may be split.

    Each axis occurs once.
    """
    given, made = _cut_labels(call, matched, [x.shape for x in avals])
    found: dict[Label | None, Any] = {}
    for labels, aval in zip(given, avals, strict=True):
        for label, axes in zip(labels, aval.sharding.spec, strict=True):
            if label and axes not in found.values():
                found.setdefault(label, axes)
    return [tuple(found.get(label) for label in labels) for labels in made]


def _cut_labels(
    call: TracedCall, matched: Call, shapes: Sequence[Any]
) -> tuple[list[_Labels], list[_Labels]]:
    """Return the labels of the dimensions of operands and results that all results have.

    Dimensions of size 1, which may be broadcast, have none.
    """
    pairs = zip(call.parameters(matched.row), shapes, strict=True)
    given = [_labels(matched, x, shape) for x, shape in pairs]
    made = [_labels(matched, x, spec.shape) for x, spec in matched.results]
    common = set.intersection(*map(set, made)) if made else set()
    given, made = ([[x if x in common else None for x in y] for y in z] for z in (given, made))
    return given, made


def _labels(matched: Call, x: Any, shape: Any) -> _Labels:
    pairs = zip(matched.labels(x, len(shape)), shape, strict=True)
    return [None if isinstance(size, int) and size == 1 else label for label, size in pairs]


# ---- Compiling -----------------------------------------------------------------------------------


def _lower(context: Any, *operands: Any, call: TracedCall) -> Any:
    module = context.module_context
    devices = getattr(module.axis_context, "device_assignment", None) or ()
    # Programs that are stored for other processes cannot contain the partitioning function.
    is_spread = len(devices) > 1 and not module.lowering_parameters.for_export
    compiled = partial(_compiled, call=call, is_spread=is_spread)
    return mlir.lower_fun(compiled, multiple_results=True)(context, *operands)


def _compiled(*operands: Any, call: TracedCall, is_spread: bool) -> list[Any]:
    """The code of a call in a program: broadcast operands, and the run, which may be split."""
    avals = [jax.typeof(x) for x in operands]
    matched = match(call, avals)
    if not handler.takes_strides(call.operator, matched.row):
        operands = tuple(_broadcast_loop(call, matched.row, operands))
    run = partial(run_p.bind, call=call)
    if not is_spread:
        return run(*operands)
    given, made = _cut_labels(call, matched, [x.shape for x in operands])
    return list(_partitioned(run, given, made)(*operands)) if any(made[0]) else run(*operands)


def _broadcast_loop(call: TracedCall, row: int, operands: Sequence[Any]) -> list[Any]:
    """Return operands broadcast along the loop dimensions."""
    places = operand_places(call.parameters(row), [x.ndim for x in operands])
    pairs = [*zip(operands, places, strict=True)]
    loop = jax.numpy.broadcast_shapes(*(x.shape[at] for x, at in pairs if at is not None))
    return [x if at is None else _broadcast(x, at, loop) for x, at in pairs]


def _broadcast(x: Any, at: slice, loop: tuple[Any, ...]) -> Any:
    if x.shape[at] == loop:
        return x
    before, part, behind = x.shape[: at.start], x.shape[at], x.shape[at.stop :]
    ones = (1,) * (len(loop) - len(part))
    x = jax.numpy.reshape(x, (*before, *ones, *part, *behind))
    return jax.numpy.broadcast_to(x, (*before, *loop, *behind))


def _lower_run(context: Any, *operands: Any, call: TracedCall) -> Any:
    row = match(call, context.avals_in).row
    _refuse_host_arrays(call, row, context.module_context.platforms)
    aliases = {k: at for at, k in enumerate(call.inouts(row))}
    rule = jax.ffi.ffi_lowering(_target(call), operand_output_aliases=aliases)
    return rule(context, *operands, **_attributes(call))


def _refuse_host_arrays(call: TracedCall, row: int, platforms: Sequence[str]) -> None:
    for x in call.parameters(row):
        if x.is_on_host and {"cuda", "gpu"} & {*platforms}:
            raise TypeError(
                f"{call.operator.name}: {x.name}: got an operand of a JAX program on a GPU, which "
                "is in its memory, expected one of the host; call "
                f"cuplug.ops.{call.operator.name} outside of jax.jit"
            )


def _target(call: TracedCall) -> str:
    return WAITING if any(call.are_read) else TARGET


def _attributes(call: TracedCall) -> dict[str, Any]:
    overload = {"overload": numpy.int64(call.row + 1)} if call.row >= 0 else {}
    return {**_known_as(call), **overload, "arguments": call.letters, **call.constants()}


def _known_as(call: TracedCall) -> dict[str, Any]:
    """Return the handler's key of an operator: its name or, if created in memory, its address."""
    name = f"{call.operator.plugin}.{call.operator.name}"
    with contextlib.suppress(NotFoundError):
        if handler.address_of(find(name)) == call.address:
            return {"operator": name}
    return {"address": numpy.int64(call.address), "process": numpy.int64(handler.PROCESS)}


# ---- Arrays on several devices: each device computes its shard -----------------------------------


def _partitioned(
    run: Callable[..., Any], operands: list[_Labels], results: list[_Labels]
) -> Callable[..., Any]:
    """Return a function that XLA's partitioner may split.

    Parameters
    ----------
    run : callable
        The work of each device.
    operands, results : list of list of Label or None
        A label for each dimension of each array. Dimensions with equal labels are split at the same
        positions, and None is not split.
    """

    def partition(mesh: Any, arg_shapes: Any, result_shape: Any) -> Any:
        axes = dict(zip(results[0], tuple(result_shape[0].sharding.spec), strict=False))
        made, given = (
            tuple(NamedSharding(mesh, _spec(labels, axes)) for labels in arrays)
            for arrays in (results, operands)
        )
        return mesh, run_alike, made, given

    def run_alike(*arrays: Any) -> tuple[Any, ...]:
        return tuple(run(*arrays))

    factors = _factors(results[0])
    others = (f"a{k}" for k in itertools.count())
    left, right = ([_named(x, factors, others) for x in side] for side in (operands, results))
    rule = " -> ".join(", ".join(map(" ".join, side)) for side in (left, right))
    whole = {name for x in (*left, *right) for name in x if name.startswith("a")}
    cut = custom_partitioning(run_alike)
    cut.def_partition(partition, sharding_rule=rule, need_replication_factors=tuple(sorted(whole)))
    return cut


def _spec(labels: _Labels, axes: dict[Label | None, Any]) -> PartitionSpec:
    """Return the mesh axes over which an array is sharded."""
    return PartitionSpec(*(axes[x] if x and x in axes else None for x in labels))


def _factors(labels: _Labels) -> dict[Label, str]:
    """Return Shardy's names of labels: a letter and a number."""
    return {label: f"i{k}" for k, label in enumerate(labels) if label}


def _named(labels: _Labels, factors: dict[Label, str], others: Iterator[str]) -> list[str]:
    return [factors[label] if label else next(others) for label in labels]


# ---- jax.vmap ------------------------------------------------------------------------------------


def _batch(operands: Sequence[Any], dims: Sequence[int | None], *, call: TracedCall) -> Any:
    """One call with an additional dimension in a group, or a call for each element."""
    pairs = [*zip(operands, dims, strict=True)]
    moved = [x if d is None else jax.numpy.moveaxis(x, d, 0) for x, d in pairs]
    avals = [_of_element(x, d is not None) for x, (_, d) in zip(moved, pairs, strict=True)]
    matched = match(call, avals)
    _results(call, matched, avals)  # rejects sizes known after the run
    batched = [k for k, d in enumerate(dims) if d is not None]
    found = join_batch(jax.numpy, matched, call.parameters(matched.row), moved, batched)
    if found is None:
        return _map(moved, batched, call)
    return call_p.bind(*found[0], call=call), found[1]


def _of_element(x: Any, is_batched: bool) -> Any:
    return mapped_aval(x.shape[0], 0, jax.typeof(x)) if is_batched else jax.typeof(x)


def _map(operands: Sequence[Any], batched: Sequence[int], call: TracedCall) -> Any:
    def run(elements: list[Any]) -> list[Any]:
        arguments = [*operands]
        for k, x in zip(batched, elements, strict=True):
            arguments[k] = x
        return call_p.bind(*arguments, call=call)

    results = jax.lax.map(run, [operands[k] for k in batched])
    return results, [0] * len(results)


# ---- The primitives ------------------------------------------------------------------------------


def _register() -> None:
    for primitive in (call_p, run_p):
        primitive.multiple_results = True
        primitive.def_impl(partial(xla.apply_primitive, primitive))
        primitive.def_abstract_eval(_result_avals)
    mlir.register_lowering(call_p, _lower)
    # The partitioning function receives devices, as custom_partitioning's own does.
    dispatch.prim_requires_devices_during_lowering.add(call_p)
    mlir.register_lowering(run_p, _lower_run)
    batching.primitive_batchers[call_p] = _batch


_register()
