# SPDX-License-Identifier: Apache-2.0
"""Functions of samples: convolution, interpolation, gradients, integrals."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.make import empty
from cuplug._engine.array.promotion import DEFAULTS, kind_of
from cuplug._engine.call.operator import Operator
from cuplug._source.expressions.element_wise import elementwise
from cuplug.array_api.beyond.padding import pad
from cuplug.array_api.concatenation import concat
from cuplug.array_api.conversion import asarray
from cuplug.array_api.creation import arange
from cuplug.array_api.dtypes import astype, checked, integer, result_type
from cuplug.array_api.elementwise import binary, clip, unary
from cuplug.array_api.indexing import take
from cuplug.array_api.products import on_host, vecdot
from cuplug.array_api.scans import diff
from cuplug.array_api.sorting import argsort, searchsorted, where
from cuplug.array_api.statistical import sum
from cuplug.array_api.views import axes_of, axis_of, broadcast_to, expand_dims, flip, reshape

_WINDOWED = 1 << 22  # elements of windows that are copied at once
_MODES = ("full", "same", "valid")


def convolve(a: Array, v: Array, /, mode: str = "full") -> Array:
    """Return the convolution of two vectors; on the host, by NumPy.

    Parameters
    ----------
    a, v : Array, shape (n,) and (m,)
    mode : str, default "full"
        "full": n + m - 1 elements; "same": the middle of these, with the size of the longer vector;
        "valid": the elements for which the vectors overlap completely.

    Examples
    --------
    >>> print(xp.convolve(xp.asarray([1.0, 2.0, 3.0]), xp.asarray([1.0, 1.0])))
    [1. 3. 5. 3.]
    """
    return _convolved("convolve", a, v, mode)


def correlate(a: Array, v: Array, /, mode: str = "valid") -> Array:
    """Return the cross-correlation of two vectors: products of `a` with the conjugates of `v`.

    Examples
    --------
    >>> print(xp.correlate(xp.asarray([1.0, 2.0, 3.0]), xp.asarray([1.0, 1.0])))
    [3. 5.]
    """
    return _convolved("correlate", a, v, mode)


def _convolved(name: str, a: Any, v: Any, mode: str) -> Array:
    for argument, x in (("a", a), ("v", v)):
        if checked(name, argument, x).ndim > 1 or not x.size:
            raise ValueError(f"{name}: {argument}: got shape {x.shape}, expected a vector")
    a, v = (reshape(x, (-1,)) if not x.ndim else x for x in (a, v))
    if mode not in _MODES:
        raise ValueError(f"{name}: mode: got {mode!r}, expected one of {_MODES}")
    dtype = result_type(a, v)
    if a.device == v.device and a.device.type == "cpu":
        return astype(on_host(getattr(np, name)(a.numpy(), v.numpy(), mode)), dtype, copy=False)
    return by_windows(name, astype(a, dtype, copy=False), astype(v, dtype, copy=False), mode)


def by_windows(name: str, a: Array, v: Array, mode: str) -> Array:
    """Return a convolution as products of windows.

    Limited numbers of windows are copied at once.
    """
    if name == "correlate":
        if v.size > a.size:
            return flip(unary("conj", by_windows(name, v, a, mode)))
    elif v.size > a.size:
        a, v = v, a
    kernel = v if name == "correlate" else unary("conj", flip(v))
    m = v.size
    before, after = {"full": (m - 1, m - 1), "valid": (0, 0)}.get(mode, (m // 2, (m - 1) // 2))
    if name == "convolve" and mode == "same":
        before, after = m - 1 - (m - 1) // 2, (m - 1) // 2
    whole = pad(a, (before, after))
    n, step = whole.size - m + 1, _WINDOWED // m + 1
    places = arange(m, device=a.device)
    parts = []
    for start in range(0, n, step):
        starts = arange(start, min(start + step, n), device=a.device)
        windows = whole[expand_dims(starts, axis=1) + places]
        parts.append(vecdot(broadcast_to(kernel, windows.shape), windows))
    return concat(parts)


def interp(
    x: Array, /, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Array:
    """Return a piecewise linear function of the elements.

    Parameters
    ----------
    x : Array
    xp : array_like, shape (n,)
        The coordinates of known values, in ascending order.
    fp : array_like, shape (n,)
        The known values, real or complex.
    left, right : float, optional
        The values outside; the default is the first and the last of `fp`.
    period : float, optional
        The period of a periodic function; `left` and `right` are then unused.

    Examples
    --------
    >>> print(xp.interp(xp.asarray([0.5, 1.5]), [0.0, 1.0, 2.0], [0.0, 10.0, 40.0]))
    [ 5. 25.]
    """
    device = checked("interp", "x", x).device
    places, values = (asarray(each, device=device) for each in (xp, fp))
    if places.ndim != 1 or places.shape != values.shape or not places.size:
        shapes = f"{places.shape} and {values.shape}"
        raise ValueError(f"interp: xp, fp: got shapes {shapes}, expected one of one dimension")
    x, places = (astype(each, "float64", copy=False) for each in (x, places))
    values = astype(values, result_type(values.dtype, "float64"), copy=False)
    if period is not None:
        period = float(np.abs(period))
        x, places, left, right = x % period, places % period, None, None
        order = argsort(places)
        places, values = take(places, order), take(values, order)
        places = concat([places[-1:] - period, places, places[:1] + period])
        values = concat([values[-1:], values, values[:1]])
    if kind_of(values.dtype) != "complex":
        return _interpolated(x, places, values, left, right)
    found = empty(x.shape, dtype=values.dtype, device=device)
    for part in ("real", "imag"):
        ends = (None if end is None else getattr(np.complex128(end), part) for end in (left, right))
        setattr(found, part, _interpolated(x, places, getattr(values, part), *ends))
    if values.size > 1:
        found.imag = where(x == x, found.imag, 0.0)
    return found


# As in NumPy: if one end of an interval gives NaN, the other end may not.
_BETWEEN = """
__device__ inline double between(double x, double x0, double x1, double y0, double y1) {
  const double slope = (y1 - y0) / (x1 - x0);
  double y = slope * (x - x0) + y0;
  if (isnan(y)) y = slope * (x - x1) + y1;
  if (isnan(y) && y0 == y1) y = y0;
  return isnan(x) ? x : x == x0 ? y0 : y;
}
"""


@cache
def _between() -> Operator:
    text = "interp(x: T, x0: T, x1: T, y0: T, y1: T) -> T where T: float64"
    return elementwise(text, "between(x, x0, x1, y0, y1)", preamble=_BETWEEN)


def _interpolated(x: Array, places: Array, values: Array, left: Any, right: Any) -> Array:
    """Return real values between those at `places`, or outside of them."""
    if values.size == 1:
        found = broadcast_to(values, x.shape)
    else:
        at = clip(searchsorted(places, x, side="right") - 1, 0, places.size - 2)
        ends = (
            reshape(take(of, reshape(k, (-1,))), x.shape)
            for of in (places, values)
            for k in (at, at + 1)
        )
        found = _between()(x, *ends)
    found = where(x < places[0], values[0] if left is None else left, found)
    found = where(x > places[-1], values[-1] if right is None else right, found)
    return where(binary("equal", x, places[-1]), values[-1], found)


def gradient(x: Array, /, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return differences that approximate derivatives, to second order inside.

    Parameters
    ----------
    x : Array
    *varargs : float or array_like
        Distances of elements, or their coordinates: one for all axes, or one for each.
    axis : int or tuple of int, optional
        The default is all; for several axes, the result is a list.
    edge_order : {1, 2}, default 1
        The order of the differences at the ends.

    Examples
    --------
    >>> print(xp.gradient(xp.asarray([0.0, 1.0, 4.0, 9.0])))
    [1. 2. 4. 5.]
    """
    checked("gradient", "x", x)
    axes = axes_of("gradient", axis, x.ndim)
    spacings = varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes)
    if len(spacings) != len(axes):
        wanted = f"none, 1 or {len(axes)}"
        raise TypeError(f"gradient: varargs: got {len(varargs)} arguments, expected {wanted}")
    if integer("gradient: edge_order", edge_order) not in (1, 2):
        raise ValueError(f"gradient: edge_order: got {edge_order}, expected 1 or 2")
    if kind_of(x.dtype) == "bool":
        raise TypeError("gradient: x: got bool, expected numbers; use astype")
    if kind_of(x.dtype) not in ("float", "complex"):
        x = astype(x, DEFAULTS["real floating"])
    found = [_along(x, h, k, edge_order) for h, k in zip(spacings, axes, strict=True)]
    return found[0] if len(found) == 1 else found


def _along(x: Array, spacing: Any, axis: int, edge_order: int) -> Array:
    n = x.shape[axis]
    if n < edge_order + 1:
        raise ValueError(f"gradient: x: got {n} along axis {axis}, expected > {edge_order}")
    h: Any = (
        asarray(spacing, device=x.device)
        if np.ndim(spacing) or isinstance(spacing, Array)
        else spacing
    )
    if isinstance(h, Array) and h.ndim:
        if h.shape != (n,):
            raise ValueError(f"gradient: varargs: got shape {h.shape}, expected ({n},)")
        h = diff(astype(h, x.dtype if kind_of(h.dtype) != "float" else h.dtype, copy=False))
        shape = [1] * x.ndim
        shape[axis] = n - 1
        h = reshape(h, shape)

    def at(start: Any, stop: Any, of: Any = x) -> Any:
        key = tuple(slice(start, stop) if k == axis else slice(None) for k in range(x.ndim))
        return of[key] if isinstance(of, Array) and of.ndim else of

    before, after = at(None, -1, h), at(1, None, h)
    if h is before:
        inside = (at(2, None) - at(None, -2)) / (2.0 * h)
    else:
        a = -after / (before * (before + after))
        b, c = (after - before) / (before * after), before / (after * (before + after))
        inside = a * at(None, -2) + b * at(1, -1) + c * at(2, None)
    first, last = at(None, 1, h), at(-1, None, h)
    begin, end = (at(1, 2) - at(None, 1)) / first, (at(-1, None) - at(-2, -1)) / last
    if edge_order == 2:
        begin = _edge([at(0, 1), at(1, 2), at(2, 3)], first, at(1, 2, h))
        end = _edge([at(-1, None), at(-2, -1), at(-3, -2)], -last, -at(-2, -1, h))
    return astype(concat([begin, inside, end], axis=axis), x.dtype, copy=False)


def _edge(values: list[Array], h: Any, next_h: Any) -> Array:
    """Return the derivative at an end, to second order, from the values there."""
    a = -(2.0 * h + next_h) / (h * (h + next_h))
    b, c = (h + next_h) / (h * next_h), -h / (next_h * (h + next_h))
    found: Array = a * values[0] + b * values[1] + c * values[2]
    return found


def trapezoid(y: Array, /, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """Return integrals along a dimension by the trapezoidal rule, over `x` or steps of `dx`.

    Examples
    --------
    >>> print(xp.trapezoid(xp.asarray([0.0, 1.0, 4.0])))
    3.0
    """
    along = axis_of("trapezoid", axis, checked("trapezoid", "y", y).ndim)
    step: Any = dx
    if x is not None:
        places = asarray(x, device=y.device)
        if places.ndim == 1:
            places = reshape(places, [-1 if k == along else 1 for k in range(y.ndim)])
        step = diff(places, axis=axis if places.ndim != y.ndim else along)
    key = [slice(None)] * y.ndim
    upper, lower = ((*key[:along], s, *key[along + 1 :]) for s in (slice(1, None), slice(None, -1)))
    return sum(step * (y[upper] + y[lower]) / 2.0, axis=along)
