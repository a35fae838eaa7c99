# SPDX-License-Identifier: Apache-2.0
"""Arguments of a given size, from signatures: for measurements, and for tests of large arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cuplug._engine.base.numpy_dtypes import name_of_descr, numpy_dtype
from cuplug._engine.signature.evaluate import ARRAYS, LOOP, shape_of
from cuplug._engine.signature.parallel_dims import dimension_name
from cuplug._engine.signature.signature import Parameter, Signature
from cuplug._engine.signature.solver import Names, Unsolved, element_range, solve
from cuplug._engine.signature.steps import NoValue

__all__ = ["n_bytes_of", "sized_arguments"]

GROUPS = ("variadic", "loop")


def sized_arguments(
    signature: Signature,
    n_bytes: int,
    dtype: str | None = None,
    pinned: Mapping[str, Any] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    made: Mapping[str, Callable[[Names], Any]] | None = None,
    optional: bool = False,
) -> dict[str, Any]:
    """Return arguments whose arrays have about `n_bytes` bytes in total, including outputs.

    Named and loop dimensions have one size, a multiple of 64 from 256 on. A group of dimensions
    (`*n`) is one dimension of that size if it comes first in an array, and empty otherwise.
    Integers are in 0 <= i < size, so that they can be indices. Other numbers are between -1 and 1.

    Parameters
    ----------
    signature : Signature
    n_bytes : int
    dtype : str, optional
        For all type variables that may have it. Others are float32 or, if they may not be, their
        first dtype.
    pinned : dict, optional
        Values of scalars, strings and dimensions, by name. None omits an optional array.
    shapes : dict, optional
        Shapes of array parameters, by name. All arrays have the dimensions that they fix.
    made : dict, optional
        Functions that return parameters, as in `cuplug.testing.arguments`.
    optional : bool
        Also return optional arguments, except handles.

    Raises
    ------
    ValueError
        A shape has a different number of dimensions than its parameter.
    """
    pinned, made = pinned or {}, made or {}
    left_out = {x.name for x in signature.parameters if x.has_default and not optional}
    left_out |= {x.name for x in signature.parameters if x.has_default and x.kind == "handle"}
    left_out -= pinned.keys() | made.keys()
    dtypes = [_choose(names, dtype) for _, names in signature.variables]
    fixed = _read_fixed(signature, pinned, shapes or {})

    def names_at(size: int) -> dict[str, Any]:
        return _names(signature, dtypes, fixed | dict.fromkeys(made), left_out, size)

    def total_at(size: int) -> float:
        try:
            return _total(signature, dtypes, names_at(size), size)
        except Unsolved:
            return math.inf

    low, high = 1, 2
    while total_at(high) <= n_bytes and high < 1 << 40:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if total_at(middle) <= n_bytes else (low, middle)
    low -= low % 64 if low >= 256 else 0
    names = names_at(low)
    sizes = [n for name in (*signature.dim_names, LOOP) for n in _as_tuple(names[name]) if n > 0]
    bound = min(sizes, default=low)
    random = np.random.default_rng(0)

    lists = [x.name for x in signature.parameters if x.kind == "arrays"]
    arrays = [x.name for x in signature.parameters if x.kind in ARRAYS]
    plain = {k: v for k, v in names.items() if k not in (LOOP, *arrays)}
    plain |= {name: len(names[name]) for name in lists}

    def value(x: Parameter) -> Any:
        if x.kind not in ARRAYS or x.name in pinned:
            return made[x.name](plain) if x.name in made else names[x.name]
        dt, shape = dtypes[x.type_variable], _shape(signature, x, names, low)
        if x.name in made:
            return made[x.name](plain | {"shape": shape, "dtype": dt})
        elements = element_range(signature, x, names)
        items = [_array(dt, shape, bound, elements, random) for _ in names[x.name]]
        return items if x.kind == "arrays" else items[0]

    return {x.name: value(x) for x in signature.parameters if x.name not in left_out}


def n_bytes_of(arguments: dict[str, Any], outputs: list[Any]) -> int:
    """Return the bytes of the arrays of a call, each read or written once."""
    given = [y for x in arguments.values() for y in (x if isinstance(x, list) else [x])]
    inputs = [x for x in given if isinstance(x, np.ndarray)]
    return sum(x.nbytes for x in (*inputs, *outputs))


def _choose(names: tuple[str, ...], wanted: str | None) -> np.dtype[Any]:
    for name in (wanted, "float32", *names):
        if name in names:
            return numpy_dtype(name)
    raise ValueError("a type variable without dtypes")


def _read_fixed(
    signature: Signature, pinned: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Any]:
    """Return the values of names, as far as they are given."""
    fixed = dict(pinned)
    for x in signature.parameters:
        if x.name not in shapes:
            continue
        shape = shapes[x.name]
        at = next((k for k, (kind, _) in enumerate(x.dims) if kind in GROUPS), None)
        n_more = len(shape) - (len(x.dims) if at is None else len(x.dims) - 1)
        if n_more < 0 or (at is None and n_more):
            text = f"{signature.name}: {x.name}: got shape {shape}, expected"
            raise ValueError(f"{text} [{signature.shape(x)}]")
        rest = iter(shape)
        for k, (kind, value) in enumerate(x.dims):
            sizes = tuple(next(rest) for _ in range(n_more if k == at else 1))
            if kind in (*GROUPS, "named"):
                name = dimension_name(signature, kind, value)
                fixed.setdefault(name, sizes[0] if kind == "named" else sizes)
    return fixed


def _names(
    signature: Signature, dtypes: list[np.dtype[Any]], fixed: Names, left_out: set[str], size: int
) -> Names:
    """Return the values of names. Sizes that are not given are `size`."""
    described = (*signature.parameters, *signature.outputs)
    groups = {value for x in described for kind, value in x.dims if kind == "variadic"}
    first = {x.dims[0] for x in described if x.dims}
    names: Names = {LOOP: (size,), **fixed}
    lists = {x.name for x in signature.parameters}  # *shape represents the items of a list
    wishes: Names = {}
    limits = {}
    for k, name in enumerate(signature.dim_names):
        if name not in names and name not in lists:
            group: tuple[int, ...] = (size,) if ("variadic", k) in first else ()
            wishes[name] = group if k in groups else size
    for x in signature.parameters:
        if x.kind == "arrays" and x.name not in (*left_out, *fixed):
            wishes[x.name] = (None,) * 2
        elif x.kind in ARRAYS:
            names[x.name] = (None,) * (2 if x.kind == "arrays" else 1)
        elif x.name in left_out:
            names[x.name] = x.default
        elif x.name not in names:
            wishes[x.name] = _number(signature, x, dtypes)
            limits[x.name] = (-math.inf, math.inf)
    return solve(signature, names, wishes, limits)


def _number(signature: Signature, x: Parameter, dtypes: list[np.dtype[Any]]) -> Any:
    """Return a value for a parameter that is not an array, close to 1."""
    if x.kind == "choice":
        return x.choices[0]
    if x.kind == "string":
        return "a"
    if x.kind == "handle":
        raise ValueError(
            f"{signature.name}: {x.name}: got no handle[{x.tag}], expected one; measure the call "
            "in Python"
        )
    dtype = dtypes[x.type_variable]
    if x.kind == "dtype":
        return name_of_descr(dtype)
    one = dtype.type(1).item() if dtype.isbuiltin == 1 else 1.0
    return [one] if x.kind == "list" else one


def _shape(signature: Signature, x: Parameter, names: dict[str, Any], size: int) -> tuple[int, ...]:
    """Return a shape. If it cannot be computed, it has no elements, and the core reports why."""
    try:
        return tuple(max(n, 0) for n in shape_of(signature, x, names, unknown=size))
    except NoValue:
        return (0,)


def _total(
    signature: Signature, dtypes: list[np.dtype[Any]], names: dict[str, Any], size: int
) -> int:
    total = 0
    for x in (*signature.parameters, *signature.outputs):
        if x.kind in (*ARRAYS, "output"):
            elements = math.prod(_shape(signature, x, names, size))
            n_items = len(names[x.name]) if x.kind in ARRAYS else 1
            total += n_items * elements * dtypes[x.type_variable].itemsize
    return total


def _as_tuple(x: Any) -> tuple[int, ...]:
    return (x,) if isinstance(x, int) else tuple(x or ())


def _array(
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    bound: int,
    elements: tuple[int, int] | None,
    random: np.random.Generator,
) -> np.ndarray[Any, Any]:
    """Return elements in the range that `where` sets, if it sets one."""
    if not math.prod(shape):
        return np.zeros(shape, dtype)
    low, high = elements or ((0, bound - 1) if dtype.kind in "iu" else (-1, 1))
    if dtype.kind in "iu":
        last = max(low, min(high, np.iinfo(dtype).max))
        return random.integers(low, last, shape, dtype, endpoint=True)
    if dtype.kind == "b":
        return random.integers(0, 2, shape, np.uint8).astype(bool)
    return (low + (high - low) * random.random(shape, np.float32)).astype(dtype)
