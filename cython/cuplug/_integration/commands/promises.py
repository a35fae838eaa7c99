# SPDX-License-Identifier: Apache-2.0
"""Properties that overloads declare, and results that a fixture expects.

They are functions of one example, as in `properties`, and raise AssertionError.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cuplug._engine.call.operator import Operator
from cuplug._engine.signature.gradient import linear_names
from cuplug._engine.signature.parallel_dims import along, dimension_name, independent
from cuplug._engine.signature.signature import Parameter, Signature, parse
from cuplug._integration.commands.properties import (
    EPSILONS,
    Arguments,
    Array,
    arrays_of,
    as_list,
    assert_same,
    given_as_out,
    inouts,
    outcome,
    with_arrays,
)
from cuplug._integration.commands.property_outcomes import REFUSALS, Tried

AxisOf = Callable[[Parameter, int], int | None]

EXPECTED = "expected_"  # prefix of the operator's name in a fixture's function


def promised(operator: Operator, signature: Signature, functions: set[str]) -> dict[str, str]:
    """Return the properties that an overload declares, with their values.

    Parameters
    ----------
    operator : Operator
    signature : Signature
        The overload's signature.
    functions : set of str
        The names of a fixture's functions.
    """
    said = operator.properties[operator.signatures.index(signature.text)]
    found = {}
    if "gradient" in said:
        found["gradient"] = str(said["gradient"])
    if "linear" in said:
        found["linear"] = ", ".join(linear_names(said["linear"]))
    if "in_place" in said:
        found["in place"] = "out= is an input"
    cuts = independent(signature, said)
    if cuts or along(said):
        found["independent"] = ", ".join(sorted(cuts)) or f"all but {along(said)}"
    if EXPECTED + operator.name in functions:
        found["expected results"] = EXPECTED + operator.name
    return found


def works_in_place(
    operator: Tried, arguments: Arguments, device: str = "cpu", signature: str = ""
) -> None:
    """An input as `out=` gets the result of another array."""
    wanted = outcome(operator, arguments, device=device)
    outputs = parse(signature).outputs
    if isinstance(wanted, type) or any(kind == "unknown" for x in outputs for kind, _ in x.dims):
        return
    for name, x in arguments.items():
        for k, y in enumerate(wanted[: len(outputs)]):
            if not isinstance(x, np.ndarray) or (x.shape, x.dtype) != (y.shape, y.dtype):
                continue
            given = with_arrays(arguments, np.copy)
            outs = [given[name] if k == n else z.copy() for n, z in enumerate(wanted)]
            outs = outs[: len(outputs)]
            try:
                operator(**given, **given_as_out(outs), device=device)
            except REFUSALS:
                continue
            seen = [*outs, *inouts(operator.signatures, given)]
            assert_same(seen, wanted, EPSILONS, f"with {name} as out=")


def is_independent(
    operator: Tried, arguments: Arguments, device: str = "cpu", signature: str = ""
) -> None:
    """A call on both halves of a dimension returns both halves of one call's result."""
    parsed = parse(signature)
    wanted = outcome(operator, arguments, device=device)
    if isinstance(wanted, type):
        return
    by_name = {x.name: x for x in parsed.parameters}
    changed = [
        by_name[name]
        for name in arguments
        if name in by_name and by_name[name].is_inout
        for _ in as_list_of_arrays(arguments[name])
    ]
    results = [*parsed.outputs, *changed]
    properties = operator.operator.properties[operator.signatures.index(signature)]
    lengths = _group_lengths(parsed, arguments)
    names = sorted(independent(parsed, properties))
    cuts: dict[str, AxisOf] = {name: partial(_axis, parsed, lengths, name) for name in names}
    if selector := along(properties):
        axis = arguments.get(selector, by_name[selector].default)
        ndim = next(x.ndim for x in arguments.values() if isinstance(x, np.ndarray))
        others = [k for k in range(ndim) if k != axis % ndim]
        cuts |= {f"dimension {k}": partial(_same_axis, k) for k in others}
    for name, axis_of in cuts.items():
        axes = [axis_of(x, y.ndim) for x, y in zip(results, wanted, strict=True)]
        if not axes or any(axis is None for axis in axes):
            continue  # without such a dimension, or modified as a whole: calls are not split
        n = max(y.shape[axis] for y, axis in zip(wanted, axes, strict=True))
        for part in (slice(0, n // 2), slice(n // 2, n)) if n > 1 else ():
            given = {
                key: _cut(x, partial(axis_of, by_name[key]), n, part) if key in by_name else x
                for key, x in arguments.items()
            }
            seen = outcome(operator, given, device=device)
            if isinstance(seen, type):
                break
            halves = [_part(y, axis, part) for y, axis in zip(wanted, axes, strict=True)]
            assert_same(seen, halves, EPSILONS, f"elements {part.start} to {part.stop} of {name}")


def as_list_of_arrays(x: Any) -> list[Array]:
    """Return the arrays of an argument."""
    return list(arrays_of({"": x}).values())


GROUPS = ("loop", "variadic", "slice", "listed")


def _group_lengths(signature: Signature, arguments: Arguments) -> dict[str, int]:
    """Return the number of dimensions in groups; an input has at most one group."""
    lengths: dict[str, int] = {}
    for x in signature.parameters:
        for kind, value in x.dims:
            name = dimension_name(signature, kind, value) if kind in GROUPS else ""
            for array in as_list_of_arrays(arguments.get(x.name)) if name else ():
                lengths[name] = max(lengths.get(name, 0), array.ndim - len(x.dims) + 1)
    return lengths


def _same_axis(axis: int, x: Parameter, ndim: int) -> int | None:
    return axis


def _axis(
    signature: Signature, lengths: dict[str, int], name: str, x: Parameter, ndim: int
) -> int | None:
    """Return the dimension with a name, for a group its last one; None if an array lacks it."""
    groups = [kind for kind, _ in x.dims if kind in GROUPS]
    end = 0
    for kind, value in x.dims:
        own = dimension_name(signature, kind, value)
        length = 1
        if kind in GROUPS:
            length = ndim - len(x.dims) + 1 if len(groups) == 1 else lengths.get(own, -1)
        if length < 0:
            return None
        end += length
        if own == name:
            return end - 1 if length else None
    return None


def _cut(value: Any, axis_of: Callable[[int], int | None], n: int, part: slice) -> Any:
    if isinstance(value, list):
        return [_cut(item, axis_of, n, part) for item in value]
    axis = axis_of(value.ndim) if isinstance(value, np.ndarray) else None
    return value if axis is None or value.shape[axis] != n else _part(value, axis, part)


def _part(x: Array, axis: int | None, part: slice) -> Array:
    assert axis is not None
    return np.take(x, range(part.start, part.stop), axis)


def gives_what_is_expected(
    operator: Tried,
    arguments: Arguments,
    device: str = "cpu",
    signature: str = "",
    expected: Callable[..., Any] | None = None,
) -> None:
    """A call returns the same results, and makes the same changes, as a function of the fixture."""
    assert expected
    parsed = parse(signature)
    seen = outcome(operator, arguments, device=device)
    if isinstance(seen, type):
        return
    given = {x.name: x.default for x in parsed.parameters}
    given |= with_arrays(arguments, np.copy)
    names = inspect.signature(expected).parameters.keys() & given.keys()
    results = as_list(expected(**{name: given[name] for name in names}))
    n_outputs = len(parsed.outputs)
    assert len(results) == n_outputs, (
        f"{EXPECTED}{parsed.name}: got {len(results)} results, expected {n_outputs}"
    )
    wanted = [np.asarray(x) for x in (*results, *inouts(operator.signatures, given))]
    for x, y in zip(seen, wanted, strict=True):
        assert x.shape == y.shape, f"got the shape {x.shape}, expected {y.shape}"
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = [y.astype(x.dtype) for x, y in zip(seen, wanted, strict=True)]
    assert_same(seen, wanted, EPSILONS, "results")
