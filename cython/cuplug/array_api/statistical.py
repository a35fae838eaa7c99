# SPDX-License-Identifier: Apache-2.0
"""Reductions: of all elements, or along dimensions."""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import DEFAULTS, kind_of, name_of, to_dtype
from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.call.operator import Operator
from cuplug._source.expressions.functions import REDUCED, kept_in
from cuplug._source.expressions.reductions import reduction
from cuplug.array_api.dtypes import astype, checked, checked_order
from cuplug.array_api.elementwise import binary, unary
from cuplug.array_api.filled import copied, full
from cuplug.array_api.functions import of_all
from cuplug.array_api.views import axes_of, part_of_complex, reshape

_WIDE = {"int": "int64", "uint": "uint64", "bool": DEFAULTS["integral"]}  # the dtype of their sum
_LOGICAL = {"max": "any", "min": "all"}  # the operations of bools


@cache
def _made(name: str, dtype: str, result: str) -> Operator:
    reduce, identity, mapped = REDUCED[name]
    if dtype == "bool" and name in _LOGICAL:
        reduce, _, mapped = REDUCED[_LOGICAL[name]]  # these may stop early
    text = f"{name}(x: {dtype}) -> {result}"
    kept = kept_in(name, result)
    return reduction(text, reduce=reduce, identity=identity, map=mapped, accumulate=kept)


def _direct(name: str, dtype: Any) -> Operator | None:
    """Return the operator that reduces a dtype; None if arrays are converted, or rejected."""
    is_refused = name in ("max", "min") and kind_of(dtype) == "complex"
    return None if is_refused else _made(name, name_of(dtype), _result(name, dtype))


def _result(name: str, dtype: Any) -> str:
    """Return the dtype of a reduction's result."""
    if name in ("sum", "prod"):
        return sum_dtype(dtype, None)
    fixed = {"any": "bool", "all": "bool", "count_nonzero": DEFAULTS["indexing"]}
    return fixed.get(name) or name_of(dtype)


def _reduce(name: str, x: Array, axis: Any, keepdims: bool, result: str | None = None) -> Array:
    checked(name, "x", x)
    result = result or _result(name, x.dtype)
    axes = axes_of(name, axis, x.ndim)
    if not axes:  # nothing is combined, only applied to each element
        reduced = _reduce(name, reshape(x, (*x.shape, 1)), -1, False, result)
        return reduced
    found: Array = _made(name, name_of(x.dtype), result)(x, axis=axes, keepdims=keepdims)
    return found


def sum_dtype(own: Any, dtype: Any) -> str:
    """Return the dtype in which elements of a dtype are summed."""
    if dtype is not None:
        wanted = to_dtype(dtype)
        kind_of(wanted)
        return name_of(wanted)
    return _WIDE.get(kind_of(own)) or name_of(own)


def _summed(name: str, x: Array, axis: Any, dtype: Any, keepdims: bool) -> Array:
    result = sum_dtype(checked(name, "x", x).dtype, dtype)
    if dtype is not None and kind_of(x.dtype) != "bool":
        x = astype(x, dtype, copy=False)
    return _reduce(name, x, axis, keepdims, result)


@of_all(partial(_direct, "sum"))
def sum(x: Array, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Return the sum.

    Examples
    --------
    >>> print(xp.sum(xp.asarray([[1, 2], [3, 4]]), axis=0))
    [4 6]
    """
    return _summed("sum", x, axis, dtype, keepdims)


@of_all(partial(_direct, "prod"))
def prod(x: Array, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Return the product.

    Examples
    --------
    >>> print(xp.prod(xp.asarray([[1, 2], [3, 4]]), axis=1))
    [ 2 12]
    """
    return _summed("prod", x, axis, dtype, keepdims)


@of_all(partial(_direct, "max"))
def max(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the maximum; NaN if an element is NaN.

    Examples
    --------
    >>> print(xp.max(xp.asarray([[3, 7], [5, 1]]), axis=0))
    [5 7]
    """
    return _reduce("max", checked_order("max", x), axis, keepdims)


@of_all(partial(_direct, "min"))
def min(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the minimum; NaN if an element is NaN.

    Examples
    --------
    >>> print(xp.min(xp.asarray([[3, 7], [5, 1]]), axis=0))
    [3 1]
    """
    return _reduce("min", checked_order("min", x), axis, keepdims)


@of_all(partial(_direct, "any"))
def any(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Return whether any element is not 0.

    Examples
    --------
    >>> print(xp.any(xp.asarray([[0, 0], [0, 1]]), axis=1))
    [False  True]
    """
    return _reduce("any", x, axis, keepdims)


@of_all(partial(_direct, "all"))
def all(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Return whether all elements are not 0.

    Examples
    --------
    >>> print(xp.all(xp.asarray([[1, 1], [0, 1]]), axis=1))
    [ True False]
    """
    return _reduce("all", x, axis, keepdims)


@of_all(partial(_direct, "count_nonzero"))
def count_nonzero(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the number of elements that are not 0.

    Examples
    --------
    >>> print(xp.count_nonzero(xp.asarray([0, 4, 5])))
    2
    """
    return _reduce("count_nonzero", x, axis, keepdims)


@cache
def _averaging(dtype: str, result: str | None = None) -> Operator:
    return reduction(
        f"mean(x: {dtype}) -> {result or dtype}", reduce="a + b", identity="0", post="a / n"
    )


def _floating(name: str, x: Array) -> Array:
    is_floating = kind_of(checked(name, "x", x).dtype) in ("float", "complex")
    return x if is_floating else astype(x, DEFAULTS["real floating"])


def _direct_mean(dtype: Any) -> Operator | None:
    return _averaging(name_of(dtype)) if kind_of(dtype) in ("float", "complex") else None


@of_all(_direct_mean)
def mean(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the arithmetic mean; in float64 for integers and bools.

    Examples
    --------
    >>> print(xp.mean(xp.asarray([[1, 2], [3, 4]]), axis=1))
    [1.5 3.5]
    """
    x = _floating("mean", x)
    axes = axes_of("mean", axis, x.ndim)
    if not axes:
        return copied(x)
    found: Array = _averaging(name_of(x.dtype))(x, axis=axes, keepdims=keepdims)
    return found


@cache
def _spreading(dtype: str, root: bool) -> Operator:
    """Read elements as distances from their mean, whose sum measures its rounding error."""
    centre = "float32" if DTYPES[dtype].is_narrow else dtype
    square = "max(a.square - a.sum * a.sum / n, 0) / (n > correction ? n - correction : 0.0)"
    return reduction(
        f"var(x: {dtype}[...], m: {centre}[...], correction: float64) -> {dtype}[...]",
        accumulate=f"sum: {centre}, square: {centre}",
        map="sum = x - m; square = (x - m) * (x - m)",
        reduce="sum = a.sum + b.sum; square = a.square + b.square",
        identity="sum = 0; square = 0",
        post=f"sqrt({square})" if root else square,
    )


@cache
def _spreading_at_once(dtype: str, root: bool) -> Operator:
    """Read elements once, as distances from one of them.

    The cancellation error of sums is then at most n units in the last place of float64.
    """
    square = "max(a.square - a.sum * a.sum / n, 0.0) / (n > correction ? n - correction : 0.0)"
    return reduction(
        f"var(x: {dtype}[...], one: {dtype}[...], correction: float64) -> {dtype}[...]",
        accumulate="sum: float64, square: float64",
        map="double d = (double)x - (double)one; sum = d; square = d * d",
        reduce="sum = a.sum + b.sum; square = a.square + b.square",
        post=f"sqrt({square})" if root else square,
        options=("--fmad=true",),  # GPUs are slow with float64
    )


def _one_of(x: Array, axes: tuple[int, ...]) -> Array:
    """Return the first element along the axes, which remain as dimensions of size 1."""
    return x[tuple([slice(0, 1) if d in axes else slice(None) for d in range(x.ndim)])]


def _correction(name: str, value: Any) -> float:
    try:
        number = float(value)
        if number == number:
            return number
        raise ValueError
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: correction: got {value!r:.60}, expected a number") from None


def _spread(x: Array, axis: Any, correction: float, keepdims: bool, root: bool) -> Array:
    name = "std" if root else "var"
    correction = _correction(name, correction)
    if kind_of(checked(name, "x", x).dtype) == "complex":
        real, imaginary = (
            _spread(part_of_complex(x, k), axis, correction, keepdims, False) for k in (0, 1)
        )
        both = binary("add", real, imaginary)
        return unary("sqrt", both) if root else both
    x = _floating(name, x)
    axes = axes_of(name, axis, x.ndim)
    if not axes:
        return (
            binary("multiply", x, 0)
            if correction < 1
            else full(x.shape, math.nan, dtype=x.dtype, device=x.device)
        )
    if str(x.device) != "cpu" and kind_of(x.dtype) == "float" and x.size:
        once = _spreading_at_once(name_of(x.dtype), root)
        one = _one_of(x, axes)
        spread: Array = once(x, one, correction=correction, axis=axes, keepdims=keepdims)
        return spread
    kept = "float32" if DTYPES[name_of(x.dtype)].is_narrow else None
    centre = _averaging(name_of(x.dtype), kept)(x, axis=axes, keepdims=True)
    made = _spreading(name_of(x.dtype), root)
    found: Array = made(x, centre, correction=correction, axis=axes, keepdims=keepdims)
    return found


def var(x: Array, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Return the variance, with n - correction degrees of freedom; real, also for complex numbers.

    Examples
    --------
    >>> print(xp.var(xp.asarray([1.0, 3.0]), correction=1))
    2.0
    """
    return _spread(x, axis, correction, keepdims, False)


def std(x: Array, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Return the standard deviation, with n - correction degrees of freedom.

    Examples
    --------
    >>> print(xp.std(xp.asarray([1.0, 3.0])))
    1.0
    """
    return _spread(x, axis, correction, keepdims, True)
