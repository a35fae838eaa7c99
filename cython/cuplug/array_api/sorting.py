# SPDX-License-Identifier: Apache-2.0
"""Sorting, sets of unique elements, and searches."""

from __future__ import annotations

from functools import cache, partial
from operator import index
from typing import Any, NamedTuple

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import NUMBERS, is_typed_number, kind_of, name_of
from cuplug._engine.call.operator import Operator
from cuplug._source.expressions.element_wise import elementwise
from cuplug._source.expressions.reductions import reduction
from cuplug.array_api.concatenation import concat
from cuplug.array_api.conversion import asarray
from cuplug.array_api.dtypes import checked, checked_order, flag
from cuplug.array_api.elementwise import binary, in_common, kept, unary
from cuplug.array_api.filled import full, zeros_like
from cuplug.array_api.functions import ArrayFunction, of_all, stock
from cuplug.array_api.scans import diff
from cuplug.array_api.views import axes_of, axis_of, reshape


@cache
def _choosing(dtype: str) -> Operator:
    # compilers emit jumps for bools
    chosen = "(c & x) | (!c & y)" if dtype == "bool" else "c ? x : y"
    return elementwise(f"where(c: bool, x: {dtype}, y: {dtype}) -> {dtype}", chosen)


def _direct(condition: Any, *values: Any) -> Operator | None:
    """Return the operator for a condition's dtype, and values' or the types of numbers."""
    is_plain = isinstance(condition, np.dtype) and kind_of(condition) == "bool"
    dtype = kept("where", *values) if is_plain else None
    return None if dtype is None else _choosing(name_of(dtype))


@partial(ArrayFunction, find=_direct, again=True)
def where(condition: Array, x1: Any, x2: Any, /) -> Array:
    """Return elements of x1 where a condition holds, else of x2.

    Examples
    --------
    >>> print(xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0))
    [1 0]
    """
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
    """Return the positions of elements that are not 0, for each dimension.

    Examples
    --------
    >>> print(*xp.nonzero(xp.asarray([[0, 5], [7, 0]])))
    [0 1] [1 0]
    """
    if not checked("nonzero", "x", x).ndim:
        raise ValueError("nonzero: x: got no dimensions, expected at least one")
    return tuple(stock("indexing.nonzero")(x))


def searchsorted(
    x1: Array, x2: Array | float, /, *, side: str = "left", sorter: Array | None = None
) -> Array:
    """Return where x2 would be inserted into x1, which ascends, or does so through `sorter`.

    A number `x2` is promoted with the dtype of `x1`.

    Examples
    --------
    >>> print(xp.searchsorted(xp.asarray([10, 20, 30]), xp.asarray([20, 25])))
    [1 2]
    """
    checked_order("searchsorted", x1, "x1")
    is_number = isinstance(x2, NUMBERS) or is_typed_number(x2)
    if not is_number:
        checked_order("searchsorted", x2, "x2")
    if sorter is not None:
        x1 = stock("gather.gather")(x1, checked("searchsorted", "sorter", sorter))
    x1, x2 = in_common("searchsorted", x1, x2)
    if is_number:
        if kind_of(x1.dtype) in ("int", "uint") and side in ("left", "right"):
            info = np.iinfo(x1.dtype)
            if not info.min <= x2 <= info.max:  # before or after all elements
                x2, side = (info.min, "left") if x2 < info.min else (info.max, "right")
        x2 = asarray(x2, dtype=x1.dtype, device=x1.device)
    result: Array = stock("sorting.searchsorted")(x1, x2, side)
    return result


# NaN is both the maximum and the minimum, as in NumPy. Without jumps, loops are vectorized.
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
    """Return the index of the maximum, the first of equal ones; or of the first NaN.

    Examples
    --------
    >>> print(xp.argmax(xp.asarray([3, 7, 7])))
    1
    """
    return _place("argmax", x, axis, keepdims)


@of_all(partial(_direct_place, "argmin"))
def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the index of the minimum, the first of equal ones; or of the first NaN.

    Examples
    --------
    >>> print(xp.argmin(xp.asarray([[3, 1], [0, 2]]), axis=1))
    [1 0]
    """
    return _place("argmin", x, axis, keepdims)


def _ordered(name: str, x: Array, axis: int, descending: bool) -> Array:
    axis = axis_of(name, axis, checked_order(name, x).ndim)
    result: Array = stock(f"sorting.{name}")(
        x, axis=axis, descending=flag(f"{name}: descending", descending)
    )
    return result


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the elements sorted along a dimension; NaN is larger than all numbers.

    Examples
    --------
    >>> print(xp.sort(xp.asarray([30, 10, 20]), descending=True))
    [30 20 10]
    """
    return _ordered("sort", x, axis, descending)


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the indices that sort the array stably along a dimension.

    Examples
    --------
    >>> print(xp.argsort(xp.asarray([30, 10, 20])))
    [1 2 0]
    """
    return _ordered("argsort", x, axis, descending)


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


def unique_all(x: Array, /) -> UniqueAll:
    """Return the unique elements, sorted, with their indices, inverse indices and counts.

    Examples
    --------
    >>> print(xp.unique_all(xp.asarray([2, 1, 2])).inverse_indices)
    [1 0 1]
    """
    unique = stock("sorting.unique")
    if kind_of(checked("unique_all", "x", x).dtype) != "complex":
        return UniqueAll(*unique(x))
    if not x.size:
        _, *rest = unique(unary("real", x))
        return UniqueAll(reshape(x, (0,)), *rest)
    # Treat pairs of real and imaginary parts as numbers.
    rows, columns = (unique(part) for part in (unary("real", x), unary("imag", x)))
    numbers = binary("multiply", rows.inverse_indices, index(columns.values.size))
    _, *rest = unique(binary("add", numbers, columns.inverse_indices))
    return UniqueAll(stock("gather.gather")(reshape(x, (-1,)), rest[0]), *rest)


def unique_counts(x: Array, /) -> UniqueCounts:
    """Return the unique elements, sorted, with their counts.

    Examples
    --------
    >>> values, counts = xp.unique_counts(xp.asarray([2, 1, 2]))
    >>> print(values, counts)
    [1 2] [1 2]
    """
    if kind_of(checked("unique_counts", "x", x).dtype) == "complex" or x.device.type == "cuda":
        found = unique_all(x)
        return UniqueCounts(found.values, found.counts)
    # Sorting values takes a third of the time of sorting them with their positions.
    ordered = sort(reshape(x, (-1,)))
    is_other = binary("not_equal", ordered[1:], ordered[:-1])
    n = full((1,), ordered.size, dtype="int64", device=x.device)
    begins = concat([zeros_like(n)[: ordered.size], binary("add", nonzero(is_other)[0], 1)])
    return UniqueCounts(stock("gather.gather")(ordered, begins), diff(begins, append=n))


def unique_inverse(x: Array, /) -> UniqueInverse:
    """Return the unique elements, sorted, with the indices that restore the array.

    Examples
    --------
    >>> values, inverse = xp.unique_inverse(xp.asarray([2, 1, 2]))
    >>> print(values[inverse])
    [2 1 2]
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Array, /) -> Array:
    """Return the unique elements, sorted.

    Examples
    --------
    >>> print(xp.unique_values(xp.asarray([2, 1, 2])))
    [1 2]
    """
    if kind_of(checked("unique_values", "x", x).dtype) == "complex":
        return unique_all(x).values
    result: Array = stock("sorting.unique_values")(x)
    return result
