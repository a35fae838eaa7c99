# SPDX-License-Identifier: Apache-2.0
"""Quantiles, percentiles and medians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import DEFAULTS, kind_of
from cuplug.array_api.beyond.host_values import on_the_host
from cuplug.array_api.beyond.outputs import into_out
from cuplug.array_api.conversion import asarray
from cuplug.array_api.dtypes import astype, checked, flag, result_type
from cuplug.array_api.elementwise import binary, clip, unary
from cuplug.array_api.filled import full
from cuplug.array_api.indexing import take_along_axis
from cuplug.array_api.sorting import sort, where
from cuplug.array_api.statistical import count_nonzero
from cuplug.array_api.views import axes_of, permute_dims, reshape

# The position of quantile q in n elements is n q + a + q (1 - a - b) - 1, for a and b of a method.
_PLACES = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_ROUNDED = {"lower": "floor", "higher": "ceil", "nearest": "round"}
_DISCRETE = {**_ROUNDED, "inverted_cdf": "ceil", "closest_observation": "floor"}
_METHODS = ("linear", "midpoint", "averaged_inverted_cdf", *_DISCRETE, *_PLACES)


class _Lines:
    """The sorted elements along dimensions, which become the first dimension."""

    def __init__(self, name: str, x: Any, axis: Any, ignores_nan: bool, keeps: bool) -> None:
        kind = kind_of(checked(name, "x", x).dtype)
        if kind == "complex":
            raise TypeError(
                f"{name}: x: got {x.dtype}, expected real numbers; use real, imag or abs"
            )
        self.is_float = kind == "float" or not keeps
        x = astype(x, DEFAULTS["real floating"]) if kind != "float" and self.is_float else x
        axes = axes_of(name, axis, x.ndim)
        rest = [k for k in range(x.ndim) if k not in axes]
        n = math.prod(x.shape[k] for k in axes)
        self.kept = tuple(1 if k in axes else x.shape[k] for k in range(x.ndim))
        self.rest = tuple(x.shape[k] for k in rest)
        lines = reshape(permute_dims(x, (*axes, *rest)), (n, *self.rest))
        if not n:  # has no quantiles
            if not self.is_float:
                raise IndexError(f"{name}: x: got no elements, expected at least one")
            n, lines = 1, full((1, *self.rest), math.nan, dtype=x.dtype, device=x.device)
        self.ordered = sort(lines, axis=0)
        self.ignores_nan = ignores_nan
        self.n: Any = float(n)
        if ignores_nan:
            self.n = astype(count_nonzero(binary("equal", lines, lines), axis=0), "float64")

    def at(self, places: Array) -> Array:
        """Return elements at positions along the segments. Positions are clipped to the ends."""
        last = self.n - 1
        last = clip(last, 0, None) if self.ignores_nan else last
        clipped = astype(binary("minimum", clip(places, 0, None), last), "int64")
        return take_along_axis(self.ordered, clipped, axis=0)

    def shaped(self, found: Array, shape: tuple[int, ...], keepdims: Any) -> Array:
        """Return results in their shape.

        Segments with NaN that is not ignored have the result NaN.
        """
        if not self.ignores_nan and self.is_float:
            found = where(unary("isnan", self.ordered[-1]), math.nan, found)
        keeps = flag("quantile: keepdims", keepdims)
        return reshape(found, (*shape, *(self.kept if keeps else self.rest)))


def _probabilities(name: str, q: Any, whole: float) -> Any:
    given = on_the_host(f"{name}: q", q, "real numbers").astype("float64") / whole
    if given.ndim > 2:
        raise ValueError(f"{name}: q: got {given.ndim} dimensions, expected at most 2")
    if not ((given >= 0) & (given <= 1)).all():
        raise ValueError(f"{name}: q: got {q!s:.60}, expected 0 to {whole:g}")
    return given


def _dtype(x: Any, q: Any, lines: _Lines) -> Any:
    """Return the dtype of interpolated quantiles. Python numbers keep the dtype of x."""
    own = lines.ordered.dtype
    if isinstance(q, (int, float)) and not isinstance(q, np.generic):
        return own
    given = q.dtype if isinstance(q, Array) else np.asarray(q).dtype
    return result_type(x.dtype, given) if kind_of(given) == "float" else result_type(own, "float64")


def _quantile(
    name: str,
    x: Any,
    q: Any,
    axis: Any,
    out: Any,
    method: str,
    keepdims: bool,
    whole: float = 1,
) -> Array:
    if not isinstance(method, str) or method not in _METHODS:
        raise ValueError(f"{name}: method: got {method!r}, expected one of {', '.join(_METHODS)}")
    lines = _Lines(name, x, axis, name.startswith("nan"), method in _DISCRETE)
    given = _probabilities(name, q, whole)
    shares = reshape(asarray(given, device=lines.ordered.device), (-1, *(1 for _ in lines.rest)))
    places = shares * (lines.n - 1)
    if method in _PLACES:
        a, b = _PLACES[method]
        places = shares * lines.n + (shares * (1 - a - b) + a) - 1
    elif method not in ("linear", "midpoint", *_ROUNDED):
        places = shares * lines.n - 1
        if method == "closest_observation":
            low = unary("floor", places - 0.5)
            is_odd = binary("equal", places - 0.5, low) & binary("equal", low % 2, 1)
            places = where(is_odd, low, low + 1)
    if method in _DISCRETE:
        found = lines.at(unary(_DISCRETE[method], places))
    else:
        found = _between(lines, places, method, _dtype(x, q, lines))
    found = lines.shaped(found, given.shape, keepdims)
    return into_out(found, out)


def _between(lines: _Lines, places: Array, method: str, dtype: Any) -> Array:
    """Return values at positions between elements."""
    low = unary("floor", places)
    weight = places - low
    if method == "midpoint":
        weight = where(weight > 0, 0.5, weight)
    if method == "averaged_inverted_cdf":
        weight = where(weight > 0, 1.0, 0.5)
    first, second = lines.at(low), lines.at(low + 1)
    weight, step, first, second = (
        astype(each, dtype, copy=False) for each in (weight, second - first, first, second)
    )
    found = where(weight < 0.5, first + step * weight, second - step * (1 - weight))
    return where(binary("equal", first, second), first, found)


def quantile(
    x: Array,
    /,
    q: Any,
    axis: Any = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """Return quantiles of all elements, or of the elements along dimensions.

    Parameters
    ----------
    x : Array
        Real. Interpolation between integers and bools is in float64.
    q : array_like
        Probabilities from 0 to 1, which are read on the host.
    axis : int or tuple of int, optional
    out : Array, optional
    overwrite_input : bool, default False
        Has no effect.
    method : str, default "linear"
        As in `numpy.quantile`.
    keepdims : bool, default False

    Returns
    -------
    Array
        The dimensions of `q` come first. NaN where an element is NaN.

    Examples
    --------
    >>> print(xp.quantile(xp.asarray([1.0, 2.0, 3.0]), [0.25, 0.5]))
    [1.5 2. ]
    """
    return _quantile("quantile", x, q, axis, out, method, keepdims)


def percentile(
    x: Array,
    /,
    q: Any,
    axis: Any = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """Return `quantile` for percentages from 0 to 100.

    Examples
    --------
    >>> print(xp.percentile(xp.asarray([1.0, 2.0, 3.0]), 75))
    2.5
    """
    return _quantile("percentile", x, q, axis, out, method, keepdims, 100)


def nanquantile(
    x: Array,
    /,
    q: Any,
    axis: Any = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """Return `quantile` of the elements that are not NaN.

    Examples
    --------
    >>> print(xp.nanquantile(xp.asarray([1.0, xp.nan, 3.0]), 0.25))
    1.5
    """
    return _quantile("nanquantile", x, q, axis, out, method, keepdims)


def nanpercentile(
    x: Array,
    /,
    q: Any,
    axis: Any = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """Return `percentile` of the elements that are not NaN.

    Examples
    --------
    >>> print(xp.nanpercentile(xp.asarray([1.0, xp.nan, 3.0]), 50))
    2.0
    """
    return _quantile("nanpercentile", x, q, axis, out, method, keepdims, 100)


def median(
    x: Array,
    /,
    axis: Any = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Return the median, the mean of the two middle elements for an even number; or NaN.

    Examples
    --------
    >>> print(xp.median(xp.asarray([5.0, 1.0, 3.0, 2.0])))
    2.5
    """
    return _median("median", x, axis, out, keepdims)


def nanmedian(
    x: Array,
    /,
    axis: Any = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Return the median of the elements that are not NaN.

    Examples
    --------
    >>> print(xp.nanmedian(xp.asarray([1.0, xp.nan, 3.0])))
    2.0
    """
    return _median("nanmedian", x, axis, out, keepdims)


def _median(name: str, x: Any, axis: Any, out: Any, keepdims: bool) -> Array:
    lines = _Lines(name, x, axis, name.startswith("nan"), False)
    middle = reshape(
        asarray((lines.n - 1) / 2, device=lines.ordered.device),
        (1, *lines.rest) if lines.ignores_nan else (1, *(1 for _ in lines.rest)),
    )
    low, high = (lines.at(unary(to, middle)) for to in ("floor", "ceil"))
    found = where(binary("equal", low, high), low, (low + high) / 2)
    return into_out(lines.shaped(found, (), keepdims), out)
