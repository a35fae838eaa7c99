# SPDX-License-Identifier: Apache-2.0
"""Calls as a primitive of JAX: traced, compiled, batched; jax_gradient.py has their derivatives.

`call_p` is what programs have. It is compiled as `run_p`, the custom call itself, which is cut
along independent dimensions where arrays are spread over several devices.
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
from jax.extend.core import Primitive, mapped_aval
from jax.sharding import NamedSharding, PartitionSpec

from cuplug._engine.interop.jax_private import batching, dispatch, mlir, xla
from cuplug._engine.lookup.find import find
from cuplug._engine.signature.parallel_dims import is_kept_whole
from cuplug._engine.signature.spec import Inferred
from cuplug._integration.frameworks import jax_handler
from cuplug._integration.frameworks.jax_arguments import Call, rows_of
from cuplug._integration.frameworks.jax_shapes import (
    LOOP,
    broadcast_loop,
    cut_names,
    groups_of,
    infer,
    loop_shape,
    operand_places,
    result_places,
)
from cuplug.errors import NotFoundError

__all__ = ["bind", "call_p", "like"]

call_p = Primitive("cuplug")
run_p = Primitive("cuplug_run")
TARGET, WAITING = "cuplug", "cuplug_waiting"  # as XLA knows the handlers

for name, handlers in ((TARGET, jax_handler.CUDA), (WAITING, jax_handler.CUDA_WAITING)):
    jax.ffi.register_ffi_target(name, jax_handler.CPU, platform="cpu")
    jax.ffi.register_ffi_target(name, handlers, platform="CUDA")


def bind(call: Call, operands: Sequence[Any]) -> list[Any]:
    """Return the results of a call: its in-out arrays as they are after it, then its outputs."""
    rows = rows_of(call.operator)
    if any(row.outputs or any(x.kind == "inout" for x in row.parameters) for row in rows):
        return call_p.bind(*_varying_alike(operands), call=call)
    run = jax.ffi.ffi_call(_target(call), (), has_side_effect=True, vmap_method="sequential")
    return list(run(*operands, **_attributes(call)))


def _varying_alike(operands: Sequence[Any]) -> list[Any]:
    """Under jax.shard_map: what is the same on all devices, beside what is not, varies as that."""
    axes = [_varying(jax.typeof(x)) for x in operands]
    missing = [frozenset().union(*axes) - own for own in axes]
    pairs = zip(operands, missing, strict=True)
    return [jax.lax.pcast(x, tuple(lacks), to="varying") if lacks else x for x, lacks in pairs]


def _varying(aval: Any) -> frozenset[Any]:
    return aval.manual_axis_type.varying


# ---- Tracing -------------------------------------------------------------------------------------


def _result_avals(*avals: Any, call: Call) -> list[Any]:
    inferred = infer(call, avals)
    for spec in inferred.outputs:
        if any(isinstance(size, int) and size < 0 for size in spec.shape):
            raise TypeError(
                f"{call.operator.name}: an output has a size that is known only after the run, and "
                "shapes in a program of JAX are fixed: call it outside of jax.jit and the like"
            )
    inouts = [avals[k].update(weak_type=False) for k in call.inouts(inferred.row)]
    spread = _spread(call, inferred, avals)
    pairs = zip(inferred.outputs, spread[len(inouts) :], strict=True)
    return inouts + [like(avals, x.dtype, x.shape, own) for x, own in pairs]


def like(avals: Sequence[Any], dtype: str, shape: tuple[Any, ...], spread: Any = ()) -> Any:
    """Return an abstract array on the mesh of others, whose parts vary as theirs."""
    dtype = jax.numpy.dtype(dtype)
    if not avals:
        return jax.core.ShapedArray(shape, dtype)
    sharding = NamedSharding(avals[0].sharding.mesh, PartitionSpec(*spread))
    return avals[0].update(shape=shape, dtype=dtype, weak_type=False, sharding=sharding)


def _spread(call: Call, inferred: Inferred, avals: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the axes of the mesh over which results are spread: as operands, where they are cut.

    Each axis stands once.
    """
    row = inferred.row
    shapes = [avals[k].shape for k in call.inouts(row)] + [x.shape for x in inferred.outputs]
    given, made = _cut_names(call, row, [x.shape for x in avals], shapes)
    found: dict[str, Any] = {}
    for names, aval in zip(given, avals, strict=True):
        for name, axes in zip(names, aval.sharding.spec, strict=True):
            if name and axes not in found.values():
                found.setdefault(name, axes)
    return [tuple(found.get(name) for name in names) for names in made]


def _cut_names(
    call: Call, row: int, operands: Sequence[Any], results: Sequence[Any]
) -> tuple[list[list[str]], list[list[str]]]:
    if is_kept_whole(call.operator.properties[row]):
        return [[""] * len(shape) for shape in operands], [[""] * len(shape) for shape in results]
    return cut_names(call, row, operands, results)


# ---- Compiling -----------------------------------------------------------------------------------


def _lower(context: Any, *operands: Any, call: Call) -> Any:
    module = context.module_context
    devices = getattr(module.axis_context, "device_assignment", None) or ()
    # What is stored for other processes has no place for the function that cuts it.
    is_spread = len(devices) > 1 and not module.lowering_parameters.for_export
    compiled = partial(_compiled, call=call, is_spread=is_spread)
    return mlir.lower_fun(compiled, multiple_results=True)(context, *operands)


def _compiled(*operands: Any, call: Call, is_spread: bool) -> list[Any]:
    """What a call is in a program: its operands broadcast, and the run itself, cut if need be."""
    avals = [jax.typeof(x) for x in operands]
    row = infer(call, avals).row
    results = [x.shape for x in _result_avals(*avals, call=call)]
    if not jax_handler.takes_strides(call.operator, row):
        places = operand_places(call, row, [x.ndim for x in avals])
        loop = loop_shape([x.shape for x in avals], places)
        pairs = zip(operands, places, strict=True)
        operands = tuple(broadcast_loop(x, at, loop) for x, at in pairs)
    run = partial(run_p.bind, call=call)
    if not is_spread:
        return run(*operands)
    given, made = _cut_names(call, row, [x.shape for x in operands], results)
    return list(_partitioned(run, given, made)(*operands)) if any(made[0]) else run(*operands)


def _lower_run(context: Any, *operands: Any, call: Call) -> Any:
    row = infer(call, context.avals_in).row
    aliases = {k: at for at, k in enumerate(call.inouts(row))}
    rule = jax.ffi.ffi_lowering(_target(call), operand_output_aliases=aliases)
    return rule(context, *operands, **_attributes(call))


def _target(call: Call) -> str:
    return WAITING if any(call.are_read) else TARGET


def _attributes(call: Call) -> dict[str, Any]:
    row = {"row": numpy.int64(call.row + 1)} if call.row >= 0 else {}
    return {**_known_as(call), **row, "arguments": call.letters, **call.constants()}


def _known_as(call: Call) -> dict[str, Any]:
    """Say how the handler finds an operator: by name, or, made in this process, by its address."""
    name = f"{call.operator.plugin}.{call.operator.name}"
    with contextlib.suppress(NotFoundError):
        if jax_handler.address_of(find(name)) == call.address:
            return {"operator": name}
    return {"address": numpy.int64(call.address), "process": numpy.int64(jax_handler.PROCESS)}


# ---- Arrays on several devices: each works on what it has ----------------------------------------


def _partitioned(
    run: Callable[..., Any], operands: list[list[str]], results: list[list[str]]
) -> Callable[..., Any]:
    """Return a function that XLA's partitioner may cut.

    Parameters
    ----------
    run : callable
        What each device does.
    operands, results : list of list of str
        A name for each dimension of each array: those of one name are cut alike, "" is not cut.
    """

    def partition(mesh: Any, arg_shapes: Any, result_shape: Any) -> Any:
        axes = dict(zip(results[0], tuple(result_shape[0].sharding.spec), strict=False))
        made, given = (
            tuple(NamedSharding(mesh, _spec(names, axes)) for names in arrays)
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


def _spec(names: list[str], axes: dict[str, Any]) -> PartitionSpec:
    """Return over which axes of the mesh an array is spread."""
    return PartitionSpec(*(axes[name] if name and name in axes else None for name in names))


def _factors(names: list[str]) -> dict[str, str]:
    """Return what Shardy calls each name: a letter and a number."""
    return {name: f"i{k}" for k, name in enumerate(names) if name}


def _named(names: list[str], factors: dict[str, str], others: Iterator[str]) -> list[str]:
    return [factors[name] if name else next(others) for name in names]


# ---- jax.vmap ------------------------------------------------------------------------------------


def _batch(operands: Sequence[Any], dims: Sequence[int | None], *, call: Call) -> Any:
    """One call with one dimension more in a group, or a call for each element."""
    pairs = [*zip(operands, dims, strict=True)]
    moved = [x if d is None else jax.numpy.moveaxis(x, d, 0) for x, d in pairs]
    avals = [_of_element(x, d is not None) for x, (_, d) in zip(moved, pairs, strict=True)]
    results = [x.ndim for x in _result_avals(*avals, call=call)]
    row = infer(call, avals).row
    batched = [k for k, d in enumerate(dims) if d is not None]
    groups = [] if is_kept_whole(call.operator.properties[row]) else groups_of(call, row)
    for group in groups:
        places = operand_places(call, row, [x.ndim for x in avals], group)
        n_dims = max((at.stop - at.start for at in places if at), default=0)
        made = result_places(call, row, results, n_dims, group)
        if None not in made and all(places[k] is not None for k in batched):
            whole = call.inouts(row) if group == LOOP else [k for k, at in enumerate(places) if at]
            joined = _joined(moved, batched, whole, places, n_dims)
            return call_p.bind(*joined, call=call), [at.start for at in made if at]
    return _map(moved, batched, call)


def _of_element(x: Any, is_batched: bool) -> Any:
    return mapped_aval(x.shape[0], 0, jax.typeof(x)) if is_batched else jax.typeof(x)


def _joined(
    operands: Sequence[Any],
    batched: Sequence[int],
    whole: Sequence[int],
    places: Sequence[slice | None],
    n_dims: int,
) -> list[Any]:
    """Return operands with the new dimension before those of a group: `whole` are not broadcast."""
    joined = [*operands]
    n = operands[batched[0]].shape[0]
    for k in {*batched, *whole}:
        x, at = operands[k], places[k]
        assert at is not None
        x = x if k in batched else jax.numpy.broadcast_to(x, (n, *x.shape))
        x = jax.numpy.moveaxis(x, 0, at.start)
        ones = (1,) * (n_dims - (at.stop - at.start))
        joined[k] = jax.numpy.reshape(
            x, (*x.shape[: at.start + 1], *ones, *x.shape[at.start + 1 :])
        )
    return joined


def _map(operands: Sequence[Any], batched: Sequence[int], call: Call) -> Any:
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
    # The function that cuts calls is told of devices, as that of custom_partitioning itself is.
    dispatch.prim_requires_devices_during_lowering.add(call_p)
    mlir.register_lowering(run_p, _lower_run)
    batching.primitive_batchers[call_p] = _batch


_register()
