# SPDX-License-Identifier: Apache-2.0
"""Derivatives of calls: forward if an operator is linear, backward by the plugin's operator.

If an operator is not linear, its forward derivative is a primitive, `tangent_p`, which jax.grad and
jax.vjp transpose. Other transformations apply to the transposed gradient that it represents.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
from jax.extend.core import Primitive

from cuplug._engine.interop.jax_private import ad, batching, mlir, xla
from cuplug._engine.signature.gradient import Gradient, linear_names
from cuplug._integration.frameworks.call import gradient_of
from cuplug._integration.jax.arguments import ABSENT, TracedCall, rows_of
from cuplug._integration.jax.call import bind, call_p, like, match, read

__all__: list[str] = []  # the import registers the rules with JAX

tangent_p = Primitive("cuplug_tangent")
_REMEDY = "; jax.lax.stop_gradient takes arguments as constants"


# ---- Forward -------------------------------------------------------------------------------------


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, call: TracedCall) -> Any:
    results = call_p.bind(*primals, call=call)
    moving = [k for k, x in enumerate(tangents) if not isinstance(x, ad.Zero)]
    row = match(call, [jax.typeof(x) for x in primals]).row
    linear = linear_names(call.operator.properties[row].get("linear"))
    names = [x.name for x in call.parameters(row)]
    if {names[k] for k in moving} <= {*linear}:
        along = [
            ad.instantiate_zeros(t) if name in linear else x
            for x, t, name in zip(primals, tangents, names, strict=True)
        ]
        return results, _floating(results, call_p.bind(*along, call=call))
    _refuse_scalars(call, row, moving)
    return results, _tangents(call, row, primals, results, [(k, tangents[k]) for k in moving])


def _floating(results: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Return the tangents of results. Integers have none."""
    avals = [jax.typeof(x).to_tangent_aval() for x in results]
    pairs = zip(avals, tangents, strict=True)
    return [ad.Zero(aval) if aval.dtype == jax.dtypes.float0 else x for aval, x in pairs]


def _refuse_scalars(call: TracedCall, row: int, moving: Sequence[int]) -> None:
    for k in moving:
        if call.are_read[k]:
            name = call.parameters(row)[k].name
            raise NotImplementedError(
                f"{call.operator.name}: {name}: there are no derivatives with respect to scalars; "
                "jax.lax.stop_gradient takes it as a constant"
            )


def _tangents(
    call: TracedCall,
    row: int,
    primals: Sequence[Any],
    results: Sequence[Any],
    moving: Sequence[tuple[int, Any]],
) -> list[Any]:
    """Return a primitive that represents the results' tangents until it is transposed."""
    _, gradient = gradient_of(call.operator, row, _REMEDY)
    kept = _kept(call, row, gradient)
    values = [(primals if kind == "operand" else results)[k] for kind, k in kept]
    made = tangent_p.bind(
        *(x for _, x in moving),
        *values,
        call=call,
        row=row,
        moving=tuple(k for k, _ in moving),
        kept=kept,
        results=tuple((x.dtype.name, x.shape) for x in results),
        operands=tuple((x.dtype.name, x.shape) for x in primals),
    )
    return _floating(results, made)


def _kept(call: TracedCall, row: int, gradient: Gradient) -> tuple[tuple[str, int], ...]:
    """Return the operands and results that the gradient needs."""
    origins = [*gradient.arguments.values()]
    of_parameters = {x.number for x in origins if x.kind == "argument"}
    numbers = [k for k, leaf in enumerate(call.leaves) for _ in range(leaf.n_operands)]
    operands = [("operand", k) for k, at in enumerate(numbers) if at in of_parameters]
    places = [*call.results(row)]
    results = [x.number for x in origins if x.kind == "result" and x.number in places]
    return (*operands, *(("result", places.index(k)) for k in results))


# ---- Backward ------------------------------------------------------------------------------------


def _transpose_tangents(
    cotangents: Sequence[Any],
    *args: Any,
    call: TracedCall,
    row: int,
    moving: Any,
    kept: Any,
    results: Any,
    operands: Any,
) -> list[Any]:
    known = dict(zip(kept, args[len(moving) :], strict=True))
    found = _pull_back(call, row, cotangents, known, operands, results)
    return [found.get(k) for k in moving] + [None] * len(kept)


def _transpose(cotangents: Sequence[Any], *operands: Any, call: TracedCall) -> list[Any]:
    """For a call that is linear in unknown operands. The gradient needs only their shapes."""
    avals = [x.aval if ad.is_undefined_primal(x) else jax.typeof(x) for x in operands]
    row = match(call, avals).row
    known = {
        ("operand", k): jax.numpy.zeros(aval.shape, aval.dtype) if ad.is_undefined_primal(x) else x
        for k, (x, aval) in enumerate(zip(operands, avals, strict=True))
    }
    results = [
        (x.aval.dtype, x.aval.shape) if isinstance(x, ad.Zero) else (x.dtype, x.shape)
        for x in cotangents
    ]
    known |= {
        ("result", k): jax.numpy.zeros(shape, dtype)
        for k, (dtype, shape) in enumerate(results)
        if dtype != jax.dtypes.float0
    }
    specs = [(aval.dtype.name, aval.shape) for aval in avals]
    found = _pull_back(call, row, cotangents, known, specs, results)
    return [found.get(k) if ad.is_undefined_primal(x) else None for k, x in enumerate(operands)]


def _pull_back(
    call: TracedCall,
    row: int,
    cotangents: Sequence[Any],
    known: dict[tuple[str, int], Any],
    operands: Sequence[tuple[str, Any]],
    results: Sequence[tuple[str, Any]],
) -> dict[int, Any]:
    """Return the cotangents of operands, by number."""
    operator, gradient = gradient_of(call.operator, row, _REMEDY)
    given = call.arguments([known.get(("operand", k)) for k in range(len(operands))])
    defaults = [x.default for x in rows_of(call.operator)[row].parameters]
    places = {number: k for k, number in enumerate(call.results(row))}
    arguments = {}
    for name, origin in gradient.arguments.items():
        k = origin.number if origin.kind == "argument" else places.get(origin.number, -1)
        if k < 0:  # for an omitted in-out array
            continue
        if origin.kind == "gradient":
            arguments[name] = _conjugate(_instantiated(cotangents[k], results[k]))
        elif origin.kind == "result":
            arguments[name] = known["result", k]
        else:
            is_left_out = k >= len(given) or given[k] is ABSENT
            arguments[name] = defaults[k] if is_left_out else given[k]
    backward, values = read(operator, (), arguments)
    own = match(backward, [jax.typeof(x) for x in values]).row
    targets = [gradient.targets[k] for k in backward.results(own)]
    numbers = _operands_of(call)
    pairs = zip(targets, bind(backward, values), strict=True)
    return {
        numbers[k]: _summed(_conjugate(x), operands[numbers[k]][1])
        for k, x in pairs
        if k in numbers
    }


def _operands_of(call: TracedCall) -> dict[int, int]:
    """Return the number of the operand of each parameter that is a single array."""
    found, n = {}, 0
    for k, leaf in enumerate(call.leaves):
        if leaf.letters == "a":
            found[k] = n
        n += leaf.n_operands
    return found


def _instantiated(cotangent: Any, result: tuple[str, Any]) -> Any:
    if isinstance(cotangent, ad.Zero):
        return jax.numpy.zeros(result[1], result[0])
    return cotangent


def _conjugate(x: Any) -> Any:
    """Convert to or from plugins' gradients: as in PyTorch, the conjugates of JAX gradients."""
    return jax.numpy.conj(x) if jax.numpy.issubdtype(x.dtype, jax.numpy.complexfloating) else x


def _summed(x: Any, shape: tuple[int, ...]) -> Any:
    """Return a gradient summed over the dimensions along which its array was broadcast."""
    n_new = x.ndim - len(shape)
    pairs = enumerate(zip(x.shape[n_new:], shape, strict=True), n_new)
    repeated = [k for k, (size, own) in pairs if own == 1 and size != 1]
    axes = (*range(n_new), *repeated)
    return jax.numpy.reshape(x.sum(axes), shape) if axes else x


# ---- The rules -----------------------------------------------------------------------------------


def _tangent_avals(*avals: Any, results: Any, **_: Any) -> list[Any]:
    return [like(avals, dtype, shape) for dtype, shape in results]


def _along(
    *args: Any,
    call: TracedCall,
    row: int,
    moving: Sequence[int],
    kept: Any,
    results: Sequence[tuple[str, Any]],
    operands: Any,
) -> list[Any]:
    """Return the results' tangents: the gradient is linear in cotangents, and is transposed."""
    known = dict(zip(kept, args[len(moving) :], strict=True))
    cotangents = [ad.Zero(jax.core.ShapedArray(shape, dtype)) for dtype, shape in results]
    floating = [k for k, x in enumerate(cotangents) if _is_floating(x.aval)]

    def gradient(*given: Any) -> list[Any]:
        values = dict(zip(floating, given, strict=True))
        all_of_them = [values.get(k, x) for k, x in enumerate(cotangents)]
        found = _pull_back(call, row, all_of_them, known, operands, results)
        zeros = {k: jax.numpy.zeros(operands[k][1], operands[k][0]) for k in moving}
        return [found.get(k, zeros[k]) for k in moving]

    try:
        transposed = jax.linear_transpose(gradient, *(cotangents[k].aval for k in floating))
        made = transposed([*args[: len(moving)]])
    except NotImplementedError as error:
        raise NotImplementedError(
            f"{call.operator.name}: it is differentiated backward alone, by jax.grad, jax.vjp and "
            f"jax.jacrev, as its gradient has none: {error}"
        ) from None
    values = dict(zip(floating, made, strict=True))
    return [values.get(k, ad.instantiate_zeros(x)) for k, x in enumerate(cotangents)]


def _is_floating(aval: Any) -> bool:
    return bool(jax.numpy.issubdtype(aval.dtype, jax.numpy.inexact))


def _jvp_of_tangents(primals: Sequence[Any], tangents: Sequence[Any], **of_call: Any) -> Any:
    moving = [k for k, x in enumerate(tangents) if not isinstance(x, ad.Zero)]

    def along(*moved: Any) -> list[Any]:
        values = dict(zip(moving, moved, strict=True))
        return _along(*(values.get(k, x) for k, x in enumerate(primals)), **of_call)

    given = ([x[k] for k in moving] for x in (primals, tangents))
    results, made = jax.jvp(along, *given)
    return results, _floating(results, made)


def _batch_tangents(args: Sequence[Any], dims: Sequence[Any], **of_call: Any) -> Any:
    results = jax.vmap(partial(_along, **of_call), tuple(dims))(*args)
    return results, [0] * len(results)


def _register() -> None:
    tangent_p.multiple_results = True
    tangent_p.def_impl(partial(xla.apply_primitive, tangent_p))
    tangent_p.def_abstract_eval(_tangent_avals)
    mlir.register_lowering(tangent_p, mlir.lower_fun(_along, multiple_results=True))
    batching.primitive_batchers[tangent_p] = _batch_tangents
    ad.primitive_jvps[tangent_p] = _jvp_of_tangents
    ad.primitive_transposes[tangent_p] = _transpose_tangents
    ad.primitive_jvps[call_p] = _jvp
    ad.primitive_transposes[call_p] = _transpose


_register()
