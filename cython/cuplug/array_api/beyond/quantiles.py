# SPDX-License-Identifier: Apache-2.0
"""Quantiles, percentiles and medians."""

from __future__ import annotations

import math
from typing import Any

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import DEFAULTS, kind_of
from cuplug.array_api.beyond.host_values import on_the_host
from cuplug.array_api.conversion import asarray
from cuplug.array_api.dtypes import astype, checked, flag
from cuplug.array_api.elementwise import binary, clip, unary
from cuplug.array_api.filled import full
from cuplug.array_api.indexing import take_along_axis
from cuplug.array_api.sorting import sort, where
from cuplug.array_api.statistical import count_nonzero
from cuplug.array_api.views import axes_of, permute_dims, reshape

# Where quantile q of n elements is: at n q + a + q (1 - a - b) - 1, for a and b of a method.
_PLACES = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_ROUNDED = {"lower": "floor", "higher": "ceil", "nearest": "round"}
_METHODS = ("linear", "midpoint", *_ROUNDED, *_PLACES)


class _Lines:
    """The elements along dimensions in order, which becomes the first dimension."""

    def __init__(self, name: str, x: Any, axis: Any, ignores_nan: bool) -> None:
        kind = kind_of(checked(name, "x", x).dtype)
        if kind == "complex":
            raise TypeError(
                f"{name}: x: got {x.dtype}, expected real numbers; use real, imag or abs"
            )
        x = x if kind == "float" else astype(x, DEFAULTS["real floating"])
        axes = axes_of(name, axis, x.ndim)
        rest = [k for k in range(x.ndim) if k not in axes]
        n = math.prod(x.shape[k] for k in axes)
        self.kept = tuple(1 if k in axes else x.shape[k] for k in range(x.ndim))
        self.rest = tuple(x.shape[k] for k in rest)
        lines = reshape(permute_dims(x, (*axes, *rest)), (n, *self.rest))
        if not n:  # which has no quantiles
            n, lines = 1, full((1, *self.rest), math.nan, dtype=x.dtype, device=x.device)
        self.ordered = sort(lines, axis=0)
        self.ignores_nan = ignores_nan
        self.n: Any = float(n)
        if ignores_nan:
            self.n = astype(count_nonzero(binary("equal", lines, lines), axis=0), "float64")

    def at(self, places: Array) -> Array:
        """Return elements at places along the lines, of which those beyond the ends are these."""
        last = self.n - 1
        last = clip(last, 0, None) if self.ignores_nan else last
        clipped = astype(binary("minimum", clip(places, 0, None), last), "int64")
        return take_along_axis(self.ordered, clipped, axis=0)

    def shaped(self, found: Array, shape: tuple[int, ...], keepdims: Any) -> Array:
        """Return results in their shape; NaN for lines with NaN that is not ignored."""
        if not self.ignores_nan:
            found = where(unary("isnan", self.ordered[-1]), math.nan, found)
        keeps = flag("quantile: keepdims", keepdims)
        return reshape(found, (*shape, *(self.kept if keeps else self.rest)))


def _probabilities(name: str, q: Any, whole: float) -> Any:
    given = on_the_host(f"{name}: q", q, "real numbers").astype("float64") / whole
    if not ((given >= 0) & (given <= 1)).all():
        raise ValueError(f"{name}: q: got {q!s:.60}, expected 0 to {whole:g}")
    return given


def _quantile(
    name: str, x: Any, q: Any, axis: Any, method: str, keepdims: bool, whole: float = 1
) -> Array:
    if not isinstance(method, str) or method not in _METHODS:
        raise ValueError(f"{name}: method: got {method!r}, expected one of {', '.join(_METHODS)}")
    lines = _Lines(name, x, axis, name.startswith("nan"))
    given = _probabilities(name, q, whole)
    shares = reshape(asarray(given, device=lines.ordered.device), (-1, *(1 for _ in lines.rest)))
    places = shares * (lines.n - 1)
    if method in _PLACES:
        a, b = _PLACES[method]
        places = shares * lines.n + (shares * (1 - a - b) + a) - 1
    if method in _ROUNDED:
        return lines.shaped(lines.at(unary(_ROUNDED[method], places)), given.shape, keepdims)
    low = unary("floor", places)
    weight = places - low
    if method == "midpoint":
        weight = where(weight > 0, 0.5, weight)
    first, second = lines.at(low), lines.at(low + 1)
    weight, step = astype(weight, first.dtype), second - first
    found = where(weight < 0.5, first + step * weight, second - step * (1 - weight))
    found = where(binary("equal", first, second), first, found)
    return lines.shaped(found, given.shape, keepdims)


def quantile(
    x: Array, /, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """Return quantiles of the elements, of all or along dimensions.

    Parameters
    ----------
    x : Array
        Real. Integers and bools are computed in float64.
    q : array_like
        Probabilities from 0 to 1, which are read on the host.
    axis : int or tuple of int, optional
    method : str, default "linear"
        As in `numpy.quantile`, but not those with "inverted_cdf" or "closest_observation".
    keepdims : bool, default False

    Returns
    -------
    Array
        The dimensions of `q` come first. NaN where an element is NaN.
    """
    return _quantile("quantile", x, q, axis, method, keepdims)


def percentile(
    x: Array, /, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """Return `quantile` for percentages from 0 to 100."""
    return _quantile("percentile", x, q, axis, method, keepdims, 100)


def nanquantile(
    x: Array, /, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """Return `quantile` of the elements that are not NaN."""
    return _quantile("nanquantile", x, q, axis, method, keepdims)


def nanpercentile(
    x: Array, /, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """Return `percentile` of the elements that are not NaN."""
    return _quantile("nanpercentile", x, q, axis, method, keepdims, 100)


def median(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Return the median, the mean of the two middle elements for an even number; or NaN."""
    return _median("median", x, axis, keepdims)


def nanmedian(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Return the median of the elements that are not NaN."""
    return _median("nanmedian", x, axis, keepdims)


def _median(name: str, x: Any, axis: Any, keepdims: bool) -> Array:
    lines = _Lines(name, x, axis, name.startswith("nan"))
    middle = reshape(
        asarray((lines.n - 1) / 2, device=lines.ordered.device),
        (1, *lines.rest) if lines.ignores_nan else (1, *(1 for _ in lines.rest)),
    )
    low, high = (lines.at(unary(to, middle)) for to in ("floor", "ceil"))
    found = where(binary("equal", low, high), low, (low + high) / 2)
    return lines.shaped(found, (), keepdims)
