# SPDX-License-Identifier: Apache-2.0
"""Functions of neighbors along a dimension: cumulative sums and products, differences."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import kind_of, to_dtype
from cuplug._engine.call.operator import Operator
from cuplug.array_api.concatenation import concat
from cuplug.array_api.dtypes import checked, in_dtype, integer
from cuplug.array_api.elementwise import binary
from cuplug.array_api.functions import of_all, stock
from cuplug.array_api.statistical import sum_dtype
from cuplug.array_api.views import axis_of

_WIDE = {"int": "int64", "uint": "uint64"}  # for integers with fewer than 32 bits


def _scanned(name: str, x: Array, axis: int | None, dtype: Any, include_initial: bool) -> Array:
    checked(name, "x", x)
    if axis is None and x.ndim != 1:
        raise ValueError(
            f"{name}: axis: got None, expected an int for an array of {x.ndim} dimensions"
        )
    along = axis_of(name, 0 if axis is None else axis, x.ndim)
    wanted, computed = _dtypes(sum_dtype(x.dtype, dtype))
    found = stock(f"scan.{name}")(in_dtype(x, computed), along, bool(include_initial))
    return in_dtype(found, wanted)


@cache
def _dtypes(name: str) -> tuple[Any, Any]:
    """Return a result's dtype, and the dtype of the computation."""
    wanted, kind = to_dtype(name), kind_of(to_dtype(name))
    is_narrow = kind in _WIDE and wanted.itemsize < 4
    return wanted, to_dtype(_WIDE[kind]) if is_narrow else wanted


def _direct(name: str, dtype: Any) -> Operator | None:
    """Return the operator that scans arrays of a dtype; None if they are converted or rejected."""
    return stock(f"scan.{name}") if _dtypes(sum_dtype(dtype, None))[1] == dtype else None


@of_all(partial(_direct, "cumulative_sum"), along=True)
def cumulative_sum(
    x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Return the sums of the elements up to each; with `include_initial`, 0 comes first.

    Examples
    --------
    >>> print(xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True))
    [0 1 3 6]
    """
    return _scanned("cumulative_sum", x, axis, dtype, include_initial)


@of_all(partial(_direct, "cumulative_prod"), along=True)
def cumulative_prod(
    x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Return the products of the elements up to each; with `include_initial`, 1 comes first.

    Examples
    --------
    >>> print(xp.cumulative_prod(xp.asarray([1, 2, 3, 4])))
    [ 1  2  6 24]
    """
    return _scanned("cumulative_prod", x, axis, dtype, include_initial)


def diff(
    x: Array,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """Return the n-th differences of adjacent elements. For bools, they are True if these differ.

    Examples
    --------
    >>> print(xp.diff(xp.asarray([1, 4, 9])))
    [3 5]
    """
    along = axis_of("diff", axis, checked("diff", "x", x).ndim)
    n = integer("diff: n", n)
    if n < 0:
        raise ValueError(f"diff: n: got {n}, expected 0 or more")
    if n and (prepend is not None or append is not None):
        x = concat([part for part in (prepend, x, append) if part is not None], axis=along)
    size, before = x.shape[along], (slice(None),) * along
    for left in range(size - 1, max(size - n, 0) - 1, -1):
        ahead, behind = x[(*before, slice(1, left + 1))], x[(*before, slice(0, left))]
        x = binary("not_equal" if kind_of(x.dtype) == "bool" else "subtract", ahead, behind)
    return x
