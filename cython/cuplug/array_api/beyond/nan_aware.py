# SPDX-License-Identifier: Apache-2.0
"""Reductions and cumulative sums that ignore NaN, or the elements that a mask excludes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import kind_of
from cuplug.array_api.beyond.host_values import number
from cuplug.array_api.beyond.outputs import into_out
from cuplug.array_api.conversion import asarray
from cuplug.array_api.dtypes import astype, checked, finfo
from cuplug.array_api.elementwise import binary, clip, unary
from cuplug.array_api.filled import full
from cuplug.array_api.manipulation import broadcast_arrays
from cuplug.array_api.sorting import argmax, argmin, where
from cuplug.array_api.statistical import all as is_all
from cuplug.array_api.statistical import any as is_any
from cuplug.array_api.statistical import count_nonzero, max, mean, min, prod, sum, var
from cuplug.array_api.views import axes_of, squeeze


def has_nan(name: str, x: Any) -> bool:
    """Return whether the elements of an array can be NaN."""
    return kind_of(checked(name, "x", x).dtype) in ("float", "complex")


def _filled(name: str, x: Any, value: float) -> Array:
    if not has_nan(name, x):
        found: Array = x
        return found
    filled: Array = where(unary("isnan", x), value, x)
    return filled


def nansum(
    x: Array,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: Array | None = None,
    keepdims: bool = False,
) -> Array:
    """Return the sum of the elements that are not NaN.

    Examples
    --------
    >>> print(xp.nansum(xp.asarray([1.0, xp.nan, 3.0])))
    4.0
    """
    found = sum(_filled("nansum", x, 0), axis=axis, dtype=dtype, keepdims=keepdims)
    return into_out(found, out)


def nanprod(
    x: Array,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: Array | None = None,
    keepdims: bool = False,
) -> Array:
    """Return the product of the elements that are not NaN.

    Examples
    --------
    >>> print(xp.nanprod(xp.asarray([2.0, xp.nan, 3.0])))
    6.0
    """
    found = prod(_filled("nanprod", x, 1), axis=axis, dtype=dtype, keepdims=keepdims)
    return into_out(found, out)


def nanmean(
    x: Array,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: Array | None = None,
    keepdims: bool = False,
) -> Array:
    """Return the mean of the elements that are not NaN; NaN if all are.

    Examples
    --------
    >>> print(xp.nanmean(xp.asarray([1.0, xp.nan, 3.0])))
    2.0
    """
    x = x if dtype is None else astype(checked("nanmean", "x", x), dtype, copy=False)
    if not has_nan("nanmean", x):
        return into_out(mean(x, axis=axis, keepdims=keepdims), out)
    return into_out(_moment("mean", x, binary("equal", x, x), axis, keepdims), out)


def nanvar(
    x: Array,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: Array | None = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> Array:
    """Return the variance of the elements that are not NaN, with n - ddof degrees of freedom.

    NaN if n - `ddof` is 0 or less.

    Examples
    --------
    >>> print(xp.nanvar(xp.asarray([1.0, xp.nan, 3.0])))
    1.0
    """
    x = x if dtype is None else astype(checked("nanvar", "x", x), dtype, copy=False)
    if not has_nan("nanvar", x):
        return into_out(var(x, axis=axis, correction=ddof, keepdims=keepdims), out)
    ddof = number("nanvar: ddof", ddof)
    spread = _moment("var", x, binary("equal", x, x), axis, keepdims, ddof)
    left = count_nonzero(binary("equal", x, x), axis=axis, keepdims=keepdims)
    return into_out(where(left > ddof, spread, math.nan), out)


def nanstd(
    x: Array,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: Array | None = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> Array:
    """Return the square root of `nanvar`.

    Examples
    --------
    >>> print(xp.nanstd(xp.asarray([1.0, xp.nan, 3.0])))
    1.0
    """
    found = unary("sqrt", nanvar(x, axis, dtype, ddof=ddof, keepdims=keepdims))
    return into_out(found, out)


def nanmax(
    x: Array, /, axis: Any = None, out: Array | None = None, keepdims: bool = False
) -> Array:
    """Return the maximum of the elements that are not NaN; NaN if all are.

    Examples
    --------
    >>> print(xp.nanmax(xp.asarray([1.0, xp.nan, 3.0])))
    3.0
    """
    return into_out(_extreme("nanmax", max, -math.inf, x, axis, keepdims), out)


def nanmin(
    x: Array, /, axis: Any = None, out: Array | None = None, keepdims: bool = False
) -> Array:
    """Return the minimum of the elements that are not NaN; NaN if all are.

    Examples
    --------
    >>> print(xp.nanmin(xp.asarray([1.0, xp.nan, 3.0])))
    1.0
    """
    return into_out(_extreme("nanmin", min, math.inf, x, axis, keepdims), out)


def _extreme(name: str, of: Any, rest: float, x: Any, axis: Any, keepdims: bool) -> Array:
    found: Array = of(_filled(name, x, rest), axis=axis, keepdims=keepdims)
    if has_nan(name, x):
        found = where(is_all(unary("isnan", x), axis=axis, keepdims=keepdims), math.nan, found)
    return found


def nanargmax(
    x: Array, /, axis: int | None = None, out: Array | None = None, *, keepdims: bool = False
) -> Array:
    """Return the index of the maximum of the elements that are not NaN; waits for a GPU.

    Examples
    --------
    >>> print(xp.nanargmax(xp.asarray([1.0, xp.nan, 3.0])))
    2
    """
    return into_out(_place("nanargmax", argmax, -math.inf, x, axis, keepdims), out)


def nanargmin(
    x: Array, /, axis: int | None = None, out: Array | None = None, *, keepdims: bool = False
) -> Array:
    """Return the index of the minimum of the elements that are not NaN; waits for a GPU.

    Examples
    --------
    >>> print(xp.nanargmin(xp.asarray([xp.nan, 2.0, 1.0])))
    2
    """
    return into_out(_place("nanargmin", argmin, math.inf, x, axis, keepdims), out)


def _place(name: str, of: Any, rest: float, x: Any, axis: Any, keepdims: bool) -> Array:
    if has_nan(name, x) and bool(is_any(is_all(unary("isnan", x), axis=axis))):
        raise ValueError(f"{name}: x: got only NaN along axis {axis}, expected a number")
    found: Array = of(_filled(name, x, rest), axis=axis, keepdims=keepdims)
    return found


def nancumsum(
    x: Array, /, axis: int | None = None, dtype: Any = None, out: Array | None = None
) -> Array:
    """Return the sums of the elements up to each one, NaN as 0; in C order by default.

    Examples
    --------
    >>> print(xp.nancumsum(xp.asarray([2.0, xp.nan, 3.0])))
    [2. 2. 5.]
    """
    return _filled("nancumsum", x, 0).cumsum(axis, dtype, out)


def nancumprod(
    x: Array, /, axis: int | None = None, dtype: Any = None, out: Array | None = None
) -> Array:
    """Return the products of the elements up to each one, NaN as 1; in C order by default.

    Examples
    --------
    >>> print(xp.nancumprod(xp.asarray([2.0, xp.nan, 3.0])))
    [2. 2. 6.]
    """
    return _filled("nancumprod", x, 1).cumprod(axis, dtype, out)


def nan_to_num(
    x: Array,
    /,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Array:
    """Replace NaN and infinities by numbers, by default 0 and the limits of the dtype.

    With `copy=False`, the array itself is modified and returned.

    Examples
    --------
    >>> print(xp.nan_to_num(xp.asarray([1.0, xp.nan]), nan=-1.0))
    [ 1. -1.]
    """
    found = checked("nan_to_num", "x", x)
    if kind_of(found.dtype) == "complex":
        found = found.copy() if copy else found
        for part in (found.real, found.imag):
            part[...] = nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf)
        whole: Array = found
        return whole
    if kind_of(found.dtype) == "float":
        limits = finfo(found.dtype)
        most = limits.max if posinf is None else posinf
        least = limits.min if neginf is None else neginf
        found = where(binary("equal", x, math.inf), most, _filled("nan_to_num", x, nan))
        found = where(binary("equal", x, -math.inf), least, found)
    if found.shape != x.shape:
        raise ValueError(f"nan_to_num: got numbers of shape {found.shape}, expected {x.shape}")
    if copy:
        result: Array = found.copy() if found is x else found
        return result
    x[...] = found
    return x


# ---- Of the elements that a mask selects ---------------------------------------------------------

_COMBINED = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}
_OUTSIDE = {"sum": 0, "prod": 1, "any": False, "all": True}
_REDUCED: dict[str, Any] = {
    "sum": sum,
    "prod": prod,
    "max": max,
    "min": min,
    "any": is_any,
    "all": is_all,
}


def reduced_part(name: str, initial: Any, mask: Any, x: Array, **known: Any) -> Array:
    """Return a reduction of the elements that a mask selects, combined with an initial value.

    `mask` is True, or bools that are broadcast with the array. `initial` is a number or None.
    """
    if mask is not True:
        mask = asarray(mask, device=x.device)
        if kind_of(mask.dtype) != "bool":
            raise TypeError(f"{name}: where: got {mask.dtype}, expected bool")
        x, mask = broadcast_arrays(x, mask)
    if name not in _REDUCED:
        return _moment(name, x, mask, **known)
    if name in ("any", "all"):
        x = binary("not_equal", x, 0)
    if mask is not True:
        outside = _OUTSIDE.get(name, initial)
        if outside is None:
            raise ValueError(f"{name}: initial: got None, expected a number (as of `where`)")
        x = where(mask, x, outside)
    if name in ("max", "min") and not x.size:
        return full(is_any(x, **known).shape, initial, dtype=x.dtype, device=x.device)
    found = _REDUCED[name](x, **known)
    return found if initial is None else binary(_COMBINED[name], found, initial)


def _moment(
    name: str, x: Array, mask: Array, axis: Any, keepdims: bool, correction: Any = 0
) -> Array:
    """Return a mean, a variance or a standard deviation; narrow floats are computed in float32."""
    dtype = x.dtype if kind_of(x.dtype) in ("float", "complex") else np.dtype("float64")
    x = astype(x, "float32" if dtype.itemsize < 4 else dtype, copy=False)
    n = count_nonzero(mask, axis=axis, keepdims=True)
    n = astype(n, unary("real", x).dtype)
    found = binary("divide", sum(where(mask, x, 0), axis=axis, keepdims=True), n)
    if name != "mean":
        distance = unary("abs", x - found)
        left = clip(n - number(f"{name}: correction", correction), 0)
        found = sum(where(mask, distance * distance, 0), axis=axis, keepdims=True) / left
        found = unary("sqrt", found) if name == "std" else found
    found = astype(found, dtype, copy=False) if dtype.itemsize < 4 else found
    return found if keepdims else squeeze(found, axes_of(name, axis, x.ndim))
