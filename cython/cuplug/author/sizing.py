# SPDX-License-Identifier: Apache-2.0
"""Arguments of a wanted size, from signatures: for measuring, and for tests of large arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from cuplug.base.numpy_dtypes import numpy_dtype
from cuplug.signature.signature import Parameter, Signature

__all__ = ["n_bytes_of", "sized_arguments"]

Dim = tuple[str, int]  # kind and number: see `Parameter`
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
    pinned, shapes = pinned or {}, shapes or {}
    dtypes = [_choose(names, dtype) for _, names in signature.variables]
    fixed = _read_fixed(signature, pinned, shapes)
    low, high = 1, 2
    while _total(signature, dtypes, fixed, high) <= n_bytes and high < 1 << 40:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        fits = _total(signature, dtypes, fixed, middle) <= n_bytes
        low, high = (middle, high) if fits else (low, middle)
    low -= low % 64 if low >= 256 else 0
    random = np.random.default_rng(0)
    return {
        x.name: pinned[x.name]
        if x.name in pinned
        else _value(signature, x, dtypes, fixed, low, random)
        for x in signature.parameters
        if x.name in pinned or x.name in shapes or x.is_array or not x.has_default
    }


def n_bytes_of(arguments: dict[str, Any], outputs: list[np.ndarray[Any, Any]]) -> int:
    """Return the bytes of the arrays of a call, each read or written once."""
    arrays = [x for x in arguments.values() if isinstance(x, np.ndarray)]
    return sum(x.nbytes for x in (*arrays, *outputs))


def _choose(names: tuple[str, ...], wanted: str | None) -> np.dtype[Any]:
    for name in (wanted, "float32", *names):
        if name in names:
            return numpy_dtype(name)
    raise ValueError("a type variable without dtypes")


def _read_fixed(
    signature: Signature, pinned: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
) -> dict[Dim, tuple[int, ...]]:
    """Return the sizes that are given, by dimension, and whole shapes by the array's name."""
    fixed: dict[Dim, tuple[int, ...]] = {
        ("named", k): (pinned[name],)
        for k, name in enumerate(signature.dim_names)
        if name in pinned
    }
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
        for k, dim in enumerate(x.dims):
            fixed.setdefault(dim, tuple(next(rest) for _ in range(n_more if k == at else 1)))
    return fixed


def _shape(
    signature: Signature, x: Parameter, fixed: dict[Dim, tuple[int, ...]], size: int
) -> tuple[int, ...]:
    first = {y.dims[0] for y in signature.arrays if y.dims}
    shape: list[int] = []
    for dim in x.dims:
        kind, value = dim
        if dim in fixed:
            shape += fixed[dim]
        elif kind in ("named", "loop", "unknown") or dim in first:
            shape.append(size)
        elif kind == "fixed":
            shape.append(value)
    return tuple(shape)


def _total(
    signature: Signature,
    dtypes: list[np.dtype[Any]],
    fixed: dict[Dim, tuple[int, ...]],
    size: int,
) -> int:
    total = 0
    for x in signature.arrays:
        elements = math.prod(_shape(signature, x, fixed, size))
        total += elements * dtypes[x.type_variable].itemsize
    return total


def _value(
    signature: Signature,
    x: Parameter,
    dtypes: list[np.dtype[Any]],
    fixed: dict[Dim, tuple[int, ...]],
    size: int,
    random: np.random.Generator,
) -> Any:
    if x.kind == "choice":
        return x.choices[0]
    if x.kind == "string":
        return "a"
    dtype = dtypes[x.type_variable]
    if not x.is_array:
        return dtype.type(1).item() if dtype.isbuiltin == 1 else 1.0
    shape = _shape(signature, x, fixed, size)
    if dtype.kind in "iu":
        bound = min([n for sizes in fixed.values() for n in sizes if n] + [size])
        return random.integers(0, min(bound, np.iinfo(dtype).max), shape, dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape, np.uint8).astype(bool)
    return (2 * random.random(shape, np.float32) - 1).astype(dtype)
