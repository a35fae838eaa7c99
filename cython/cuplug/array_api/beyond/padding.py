# SPDX-License-Identifier: Apache-2.0
"""Arrays with additional elements around them."""

from __future__ import annotations

from builtins import max as _most
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import kind_of
from cuplug.array_api.beyond.host_values import on_the_host
from cuplug.array_api.beyond.quantiles import median
from cuplug.array_api.concatenation import concat
from cuplug.array_api.conversion import asarray
from cuplug.array_api.creation import arange
from cuplug.array_api.dtypes import astype, checked, integer
from cuplug.array_api.elementwise import unary
from cuplug.array_api.filled import full
from cuplug.array_api.indexing import take
from cuplug.array_api.manipulation import moveaxis
from cuplug.array_api.statistical import max, mean, min
from cuplug.array_api.views import axis_of, broadcast_to, reshape

_STATISTICS: dict[str, Any] = {"maximum": max, "mean": mean, "median": median, "minimum": min}
# Mode -> its option; modes that copy elements have none or this one.
_OPTIONS = {"constant": "constant_values", "linear_ramp": "end_values", "edge": "", "wrap": ""}
_OPTIONS |= {"empty": "", "reflect": "reflect_type", "symmetric": "reflect_type"}
_OPTIONS |= dict.fromkeys(_STATISTICS, "stat_length")


def pad(x: Array, /, pad_width: Any, mode: Any = "constant", **options: Any) -> Array:
    """Return an array with additional elements around it.

    Parameters
    ----------
    x : Array
    pad_width : int, pair of int, sequence of pairs, or dict of these by axis
        The number of elements before and after, for each dimension.
    mode : str or callable, default "constant"
        The values of the new elements, as in `numpy.pad`: all its modes. A function changes each
        line in place. Its arguments are the line, the pair of widths, the axis and the options.
    **options
        `constant_values` for the mode "constant", `end_values` for "linear_ramp", and `stat_length`
        for "maximum", "mean", "median" and "minimum". These are numbers, or have the form of
        `pad_width`. For "reflect" and "symmetric", `reflect_type`: "even" or "odd".

    Examples
    --------
    >>> from cuplug import array_api as xp
    >>> xp.pad(xp.asarray([1, 2, 3], device="cpu"), (2, 1), "reflect", reflect_type="odd")
    Array([-1,  0,  1,  2,  3,  4], dtype=int64, device='cpu')

    Examples
    --------
    >>> print(xp.pad(xp.asarray([1, 2]), 1, constant_values=9))
    [9 1 2 9]
    """
    checked("pad", "x", x)
    if isinstance(pad_width, dict):
        given = {axis_of("pad", k, x.ndim): width for k, width in pad_width.items()}
        pad_width = [given.get(k, 0) for k in range(x.ndim)]
        pad_width = [(w, w) if np.ndim(w) == 0 else w for w in pad_width]
    if not np.size(on_the_host("pad: pad_width", pad_width, "integers")):
        raise TypeError(f"pad: pad_width: got {pad_width}, expected integers")
    widths = _pairs("pad: pad_width", pad_width, "integers", x.ndim)
    if any(integer("pad: pad_width", n) < 0 for pair in widths for n in pair):
        raise ValueError(f"pad: pad_width: got {pad_width}, expected at least 0")
    if callable(mode):
        return _by_function(x, widths, mode, options)
    if mode not in _OPTIONS:
        wanted = ", ".join(_OPTIONS)
        raise ValueError(f"pad: mode: got {mode!r}, expected a function or one of {wanted}")
    unknown = options.keys() - {_OPTIONS[mode]}
    if unknown:
        wanted = _OPTIONS[mode] or "none"
        raise ValueError(f'pad: got options {sorted(unknown)} for "{mode}", expected {wanted}')
    for axis, pair in enumerate(widths):
        if any(pair):
            before, after = _sides(x, axis, pair, mode, options)
            x = concat([before, x, after], axis=axis)
    return x if any(map(any, widths)) else x.copy()


def _pairs(what: str, value: Any, wanted: str, ndim: int) -> Any:
    """Return a pair for each dimension, of numbers or pairs that are broadcast."""
    given = on_the_host(what, value, wanted)
    try:
        return np.broadcast_to(given, (ndim, 2)).tolist()
    except ValueError:
        expected = f"a number, a pair or {ndim} pairs"
        raise ValueError(f"{what}: got {value!s:.60}, expected {expected}") from None


def _by_function(x: Array, widths: Any, change: Any, options: Any) -> Array:
    found = pad(x, widths)
    for axis, pair in enumerate(widths):
        lines = moveaxis(found, axis, -1)
        for at in np.ndindex(*lines.shape[:-1]):
            change(lines[at], tuple(pair), axis, options)
    return found


def _sides(x: Array, axis: int, pair: Any, mode: str, options: Any) -> Any:
    """Return the new elements before and after others along a dimension."""
    n = x.shape[axis]
    shapes = [(*x.shape[:axis], width, *x.shape[axis + 1 :]) for width in pair]
    if mode in ("constant", "empty"):
        given = _pairs("pad: constant_values", options.get("constant_values", 0), "numbers", x.ndim)
        return [
            full(shape, value, dtype=x.dtype, device=x.device)
            for shape, value in zip(shapes, given[axis], strict=True)
        ]
    if not n:
        raise ValueError(f'pad: axis {axis}: got no elements, expected at least one ("{mode}")')
    if mode in ("edge", "reflect", "symmetric", "wrap"):
        kind = options.get("reflect_type", "even")
        if kind not in ("even", "odd"):
            raise ValueError(f'pad: reflect_type: got {kind!r}, expected "even" or "odd"')
        places = np.pad(np.arange(n), pair, mode)  # type: ignore[call-overload]
        found = take(x, asarray(places, device=x.device), axis=axis)
        if kind == "odd":
            found = _odd(x, axis, pair, found, mode == "reflect")
        return _cut(found, axis, 0, pair[0]), _cut(found, axis, pair[0] + n, pair[0] + n + pair[1])
    if mode == "linear_ramp":
        ends = _pairs("pad: end_values", options.get("end_values", 0), "numbers", x.ndim)[axis]
        edges = _cut(x, axis, 0, 1), _cut(x, axis, n - 1, n)
        before, after = map(_ramp, (x, x), (axis, axis), pair, ends, edges)
        return before, after[(*[slice(None)] * axis, slice(None, None, -1))]
    lengths = options.get("stat_length")
    lengths = n if lengths is None else lengths
    lengths = _pairs("pad: stat_length", lengths, "integers", x.ndim)[axis]
    if any(length < (1 if mode in ("maximum", "minimum") else 0) for length in lengths):
        raise ValueError(f"pad: stat_length: got {lengths}, expected at least 1")
    parts = _cut(x, axis, 0, lengths[0]), _cut(x, axis, _most(n - lengths[1], 0), n)
    values = [_rounded(_STATISTICS[mode](part, axis=axis, keepdims=True), x) for part in parts]
    return [broadcast_to(y, shape) for y, shape in zip(values, shapes, strict=True)]


def _cut(x: Array, axis: int, start: int, stop: int) -> Array:
    found: Array = x[(*[slice(None)] * axis, slice(start, stop))]
    return found


def _rounded(value: Array, x: Array) -> Array:
    """Return statistics in the dtype of the array, rounded for integers."""
    is_whole = kind_of(x.dtype) in ("int", "uint") and kind_of(value.dtype) == "float"
    return astype(unary("round", value) if is_whole else value, x.dtype, copy=False)


def _odd(x: Array, axis: int, pair: Any, even: Array, is_shared: bool) -> Array:
    """Return reflections through the edges, from those that repeat the elements.

    Each period is the array or its reflection, moved by the difference between the edges. The
    edges are shared by neighboring periods for "reflect", and repeated for "symmetric".
    """
    n = x.shape[axis]
    places = np.arange(-pair[0], n + pair[1])
    period = np.floor_divide(places, _most(n - 1, 1) if is_shared else n)
    along = [-1 if k == axis else 1 for k in range(x.ndim)]
    moved, turned = (
        reshape(asarray(y.astype(x.dtype), device=x.device), along) for y in (period, period % 2)
    )
    first, last = _cut(x, axis, 0, 1), _cut(x, axis, n - 1, n)
    found = even * (1 - 2 * turned) + turned * (first + last) + moved * (last - first)
    return astype(found, x.dtype, copy=False)


def _ramp(x: Array, axis: int, width: int, end: Any, edge: Array) -> Array:
    """Return values with equal distances, from the end to before the edge."""
    along = [-1 if k == axis else 1 for k in range(x.ndim)]
    steps = reshape(arange(width, dtype="float64", device=x.device), along) / _most(width, 1)
    is_float = kind_of(x.dtype) in ("float", "complex")
    found = end + steps * ((edge if is_float else astype(edge, "float64")) - end)
    return astype(found if is_float else unary("floor", found), x.dtype, copy=False)
