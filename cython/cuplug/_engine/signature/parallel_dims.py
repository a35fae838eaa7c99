# SPDX-License-Identifier: Apache-2.0
"""Dimensions along which elements are independent of each other, so that arrays may be split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cuplug._engine.signature.evaluate import LOOP
from cuplug._engine.signature.signature import Parameter, Signature
from cuplug._engine.signature.steps import Extent

__all__ = [
    "CUT",
    "UNKNOWN",
    "along",
    "dimension_name",
    "independent",
    "invalid_along",
    "invalid_independent",
    "is_kept_whole",
    "loop_axes",
]

UNKNOWN = "?"
# An attribute of errors about blocks: the array, and the dimension, counted from the last one.
CUT = "cuplug_loop_split"


def loop_axes(signature: Signature, names: Mapping[str, Any]) -> set[int] | None:
    """Return the loop dimensions along which a reduction or scan needs all elements.

    Its results are independent along the others. Returns None for other operators.

    Parameters
    ----------
    signature : Signature
    names : mapping
        The loop dimensions, and the arguments, by their names.
    """
    if not (signature.reduces or signature.scans):
        return None
    axis, every = names["axis"], range(len(names[LOOP]))
    numbers = [axis] if isinstance(axis, int) else every if axis is None else axis
    possible = range(-len(every), len(every))
    if not (
        isinstance(numbers, Iterable) and all(isinstance(k, int) and k in possible for k in numbers)
    ):
        return set(every)  # known after the run, or wrong
    return {k % len(every) for k in numbers}


def independent(signature: Signature, properties: Mapping[str, str | None]) -> set[str]:
    """Return the names of the dimensions that may be split, `...` for the loop dimensions.

    Parameters
    ----------
    signature : Signature
    properties : mapping
        The properties of its overload: `independent` names dimensions, `no_split` overrides it.
    """
    sizes = {name for x in signature.outputs for name in _names(signature, x)}
    if is_kept_whole(properties) or UNKNOWN in sizes:
        return set()
    return {name for name in (LOOP, *_promised(properties)) if _can_be(signature, name)}


def along(properties: Mapping[str, str | None]) -> str:
    """Return the parameter that selects the one dimension along which elements depend on others.

    All arrays then have the same dimensions, except for this one. Returns "" for other operators.
    """
    return "" if is_kept_whole(properties) else properties.get("along") or ""


def invalid_along(signature: Signature, properties: Mapping[str, str | None]) -> bool:
    """Return whether an overload declares `along`, and its parameter or arrays do not allow it."""
    if not (name := along(properties)):
        return False
    is_number = any(
        x.name == name and x.kind == "scalar" and "int64" in signature.variables[x.type_variable][1]
        for x in signature.parameters
    )
    dims = [x.dims for x in signature.parameters if x.is_array]
    return not is_number or not all(len(x) == 1 and x[0][0] == "variadic" for x in dims)


def is_kept_whole(properties: Mapping[str, str | None]) -> bool:
    """Return whether a call of an overload with such properties is neither split nor joined."""
    return "no_split" in properties


def invalid_independent(signature: Signature, properties: Mapping[str, str | None]) -> list[str]:
    """Return the dimensions that an overload declares independent but that cannot be."""
    return [name for name in _promised(properties) if not _can_be(signature, name)]


def dimension_name(signature: Signature, kind: str, value: Extent) -> str:
    """Return the name of a dimension: `...`, `?`, or "" if it has none."""
    if kind in ("named", "variadic") and isinstance(value, int):
        return signature.dim_names[value]
    return {"loop": LOOP, "unknown": UNKNOWN}.get(kind, "")


def _promised(properties: Mapping[str, str | None]) -> list[str]:
    return (properties.get("independent") or "").replace(",", " ").split()


def _can_be(signature: Signature, name: str) -> bool:
    """Return whether each output has a dimension once, and inputs have it at most once."""
    outputs = [_names(signature, x).count(name) for x in signature.outputs]
    inputs = [_names(signature, x).count(name) for x in signature.parameters]
    return all(n == 1 for n in outputs) and max(inputs, default=0) == 1


def _names(signature: Signature, x: Parameter) -> list[str]:
    return [dimension_name(signature, *dim) for dim in x.dims]
