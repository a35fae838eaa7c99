# SPDX-License-Identifier: Apache-2.0
"""Elements that satisfy something, and where they are."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import is_typed_number, kind_of, name_of
from cuplug._engine.call.operator import Operator
from cuplug._source.expressions.element_wise import elementwise
from cuplug._source.expressions.reductions import reduction
from cuplug.array_api.conversion import asarray
from cuplug.array_api.dtypes import checked, checked_order
from cuplug.array_api.elementwise import in_common, kept
from cuplug.array_api.functions import ArrayFunction, of_all, stock
from cuplug.array_api.views import axes_of, reshape


@cache
def _choosing(dtype: str) -> Operator:
    chosen = "(c & x) | (!c & y)" if dtype == "bool" else "c ? x : y"  # compilers jump for bools
    return elementwise(f"where(c: bool, x: {dtype}, y: {dtype}) -> {dtype}", chosen)


def _direct(condition: Any, *values: Any) -> Operator | None:
    """Return the operator for a condition's dtype, and values' or the types of numbers."""
    is_plain = isinstance(condition, np.dtype) and kind_of(condition) == "bool"
    dtype = kept("where", *values) if is_plain else None
    return None if dtype is None else _choosing(name_of(dtype))


@partial(ArrayFunction, find=_direct, again=True)
def where(condition: Array, x1: Any, x2: Any, /) -> Array:
    """Return elements of x1 where a condition holds, else of x2."""
    if kind_of(checked("where", "condition", condition).dtype) != "bool":
        raise TypeError(f"where: condition: got {condition.dtype}, expected bool")
    if not isinstance(x1, Array) and not isinstance(x2, Array):
        if is_typed_number(x2) and not is_typed_number(x1):
            x2 = asarray(x2, device=condition.device)
        else:
            x1 = asarray(x1, device=condition.device)
    x1, x2 = in_common("where", x1, x2)
    dtype = (x1 if isinstance(x1, Array) else x2).dtype
    result: Array = _choosing(name_of(dtype))(condition, x1, x2)
    return result


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Return the positions of elements that are not 0, for each dimension."""
    if not checked("nonzero", "x", x).ndim:
        raise ValueError("nonzero: x: got no dimensions, expected at least one")
    return tuple(stock("indexing.nonzero")(x))


def searchsorted(
    x1: Array, x2: Array, /, *, side: str = "left", sorter: Array | None = None
) -> Array:
    """Return where elements of x2 would be put into x1, which ascends or does so by `sorter`."""
    checked_order("searchsorted", x1, "x1")
    checked_order("searchsorted", x2, "x2")
    if sorter is not None:
        x1 = stock("gather.gather")(x1, sorter)
    x1, x2 = in_common("searchsorted", x1, x2)
    result: Array = stock("sorting.searchsorted")(x1, x2, side)
    return result


# NaN is both the greatest and the least, as in NumPy. Without jumps: loops become vectors.
_BEST = {"argmax": "!(b <= a) & (a == a)", "argmin": "!(b >= a) & (a == a)"}


@cache
def _choosing_place(name: str, dtype: str) -> Operator:
    return reduction(f"{name}(x: {dtype}) -> int64", choose=_BEST[name], post="i")


def _direct_place(name: str, dtype: Any) -> Operator | None:
    is_real = kind_of(dtype) != "complex"
    return _choosing_place(name, name_of(dtype)) if is_real else None


def _place(name: str, x: Array, axis: Any, keepdims: bool) -> Array:
    if not checked_order(name, x).ndim and axis is None:
        x = reshape(x, (1,))
        keepdims, axis = False, 0
    axes = axes_of(name, axis, x.ndim)
    found: Array = _choosing_place(name, name_of(x.dtype))(x, axis=axes, keepdims=keepdims)
    return found


@of_all(partial(_direct_place, "argmax"))
def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return where the greatest element is, the first of equal ones; or the first NaN."""
    return _place("argmax", x, axis, keepdims)


@of_all(partial(_direct_place, "argmin"))
def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return where the least element is, the first of equal ones; or the first NaN."""
    return _place("argmin", x, axis, keepdims)
