# SPDX-License-Identifier: Apache-2.0
"""Arguments of a wanted size, from signatures: for measuring, and for tests of large arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from cuplug._engine.base.numpy_dtypes import numpy_dtype
from cuplug._engine.signature.evaluate import ARRAYS, LOOP, interval, shape_of
from cuplug._engine.signature.parallel_dims import dimension_name
from cuplug._engine.signature.signature import Parameter, Signature
from cuplug._engine.signature.steps import NoValue

__all__ = ["n_bytes_of", "sized_arguments"]

GROUPS = ("variadic", "loop")


def sized_arguments(
    signature: Signature,
    n_bytes: int,
    dtype: str | None = None,
    pinned: Mapping[str, Any] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> dict[str, Any]:
    """Return arguments whose arrays have about so many bytes together, outputs included.

    Named and loop dimensions have one size, a multiple of 64 from 256 on. A group of dimensions
    (`*n`) is one dimension of that size where it is the first of an array, else none. Integers are
    in 0 <= i < size, so that they can be indices; other numbers between -1 and 1.

    Parameters
    ----------
    signature : Signature
    n_bytes : int
    dtype : str, optional
        Of all type variables that may have it; else float32, or the first that there is.
    pinned : dict, optional
        Values of scalars, strings and dimensions, by name; None leaves an optional array out.
    shapes : dict, optional
        Shapes of array parameters, by name. The dimensions that they fix are those of all arrays.

    Raises
    ------
    ValueError
        A shape has not the number of dimensions that its parameter wants.
    """
    pinned = pinned or {}
    dtypes = [_choose(names, dtype) for _, names in signature.variables]
    fixed = _read_fixed(signature, pinned, shapes or {})

    def names_at(size: int) -> dict[str, Any]:
        return _names(signature, dtypes, fixed, size)

    low, high = 1, 2
    while _total(signature, dtypes, names_at(high), high) <= n_bytes and high < 1 << 40:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        fits = _total(signature, dtypes, names_at(middle), middle) <= n_bytes
        low, high = (middle, high) if fits else (low, middle)
    low -= low % 64 if low >= 256 else 0
    names = names_at(low)
    sizes = [n for name in (*signature.dim_names, LOOP) for n in _as_tuple(names[name]) if n > 0]
    bound = min(sizes, default=low)
    random = np.random.default_rng(0)
    found = {}
    for x in signature.parameters:
        if x.kind in ARRAYS and x.name not in pinned:
            dt, shape = dtypes[x.type_variable], _shape(signature, x, names, low)
            ends = interval(signature, x.name, names, 1 if dt.kind in "iu" else 0)
            items = [_array(dt, shape, bound, ends, random) for _ in names[x.name]]
            found[x.name] = items if x.kind == "arrays" else items[0]
        elif x.name in pinned or not x.has_default:
            found[x.name] = names[x.name]
    return found


def n_bytes_of(arguments: dict[str, Any], outputs: list[Any]) -> int:
    """Return the bytes of the arrays of a call, each read or written once; outputs lie anywhere."""
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
    """Return what names stand for, as far as it is given."""
    fixed = dict(pinned)
    for x in signature.parameters:
        if x.name not in shapes:
            continue
        shape = shapes[x.name]
        at = next((k for k, (kind, _) in enumerate(x.dims) if kind in GROUPS), None)
        n_more = len(shape) - (len(x.dims) if at is None else len(x.dims) - 1)
        if n_more < 0 or (at is None and n_more):
            text = f"{signature.name}: {x.name}: seen shape {shape}, wanted"
            raise ValueError(f"{text} [{signature.shape(x)}]")
        rest = iter(shape)
        for k, (kind, value) in enumerate(x.dims):
            sizes = tuple(next(rest) for _ in range(n_more if k == at else 1))
            if kind in (*GROUPS, "named"):
                name = dimension_name(signature, kind, value)
                fixed.setdefault(name, sizes[0] if kind == "named" else sizes)
    return fixed


def _names(
    signature: Signature, dtypes: list[np.dtype[Any]], fixed: dict[str, Any], size: int
) -> dict[str, Any]:
    """Return what names stand for where sizes that are not given are `size`."""
    described = (*signature.parameters, *signature.outputs)
    groups = {value for x in described for kind, value in x.dims if kind == "variadic"}
    first = {x.dims[0] for x in described if x.dims}
    names = {LOOP: (size,)} | fixed
    lists = {x.name for x in signature.parameters}  # *shape stands for the items of one
    for k, name in enumerate(signature.dim_names):
        if name in names or name in lists:
            continue
        if k in groups:
            names[name] = (size,) if ("variadic", k) in first else ()
        else:
            low, high = interval(signature, name, names)
            names[name] = int(min(max(size, low), high))
    for x in signature.parameters:
        if x.kind in ARRAYS:
            names[x.name] = (None,) * (2 if x.kind == "arrays" else 1)
        elif x.name not in names:
            names[x.name] = x.default if x.has_default else _number(signature, x, dtypes, names)
    return names


def _number(
    signature: Signature, x: Parameter, dtypes: list[np.dtype[Any]], names: dict[str, Any]
) -> Any:
    """Return what is no array: 1 where `where` allows it."""
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
    one = dtype.type(1).item() if dtype.isbuiltin == 1 else 1.0
    if x.kind == "list":
        return [one]
    is_int = dtype.kind in "iu"
    low, high = interval(signature, x.name, names, 1 if is_int else 0)
    if low < 1 < high or (low == -math.inf and high == math.inf):
        return one
    if is_int:
        return int(min(max(1, low), high))
    return (low + high) / 2 if math.isfinite(high - low) else min(max(1.0, low), high)


def _shape(signature: Signature, x: Parameter, names: dict[str, Any], size: int) -> tuple[int, ...]:
    """Return a shape; one that cannot be worked out has no elements, and the core says why."""
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
    ends: tuple[float, float],
    random: np.random.Generator,
) -> np.ndarray[Any, Any]:
    """Return elements between the ends that `where` gives, as far as it gives any."""
    low, high = ends
    if dtype.kind in "iu":
        most = min(np.iinfo(dtype).max, bound if math.isinf(high) else int(high) + 1)
        first = 0 if math.isinf(low) else int(low)
        return random.integers(first, max(most, first + 1), shape, dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape, np.uint8).astype(bool)
    low = -1 if math.isinf(low) else low
    high = max(low, 1) if math.isinf(high) else high
    return (low + (high - low) * random.random(shape, np.float32)).astype(dtype)
