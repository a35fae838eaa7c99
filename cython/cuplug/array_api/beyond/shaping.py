# SPDX-License-Identifier: Apache-2.0
"""Arrays extended, joined, parted and turned; sequences of numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import kind_of
from cuplug.array_api.beyond.host_values import number, on_the_host, together
from cuplug.array_api.concatenation import concat
from cuplug.array_api.conversion import asarray
from cuplug.array_api.creation import arange, eye
from cuplug.array_api.creation import linspace as numbers
from cuplug.array_api.dtypes import astype, checked, integer, result_type, sequence
from cuplug.array_api.elementwise import CALLED, unary
from cuplug.array_api.filled import zeros
from cuplug.array_api.manipulation import broadcast_arrays, moveaxis
from cuplug.array_api.statistical import sum
from cuplug.array_api.views import (
    axis_of,
    expand_dims,
    flip,
    permute_dims,
    reshape,
)
from cuplug.array_api.views import diagonal as diagonal_of_last


def _at_least(ndim: int, arrays: tuple[Any, ...]) -> Any:
    found = [_raised(ndim, x) for x in together(f"atleast_{ndim}d", *arrays)]
    return found[0] if len(found) == 1 else tuple(found)


def _arrays(name: str, arrays: Any) -> list[Array]:
    return [checked(name, "arrays", x) for x in sequence(f"{name}: arrays", arrays, "arrays")]


def _raised(ndim: int, x: Array) -> Array:
    while x.ndim < ndim:  # NumPy appends the third dimension
        x = expand_dims(x, axis=2 if x.ndim == 2 else 0)
    return x


def atleast_1d(*arrays: Any) -> Any:
    """Return views with at least one dimension."""
    return _at_least(1, arrays)


def atleast_2d(*arrays: Any) -> Any:
    """Return views with at least two dimensions."""
    return _at_least(2, arrays)


def atleast_3d(*arrays: Any) -> Any:
    """Return views with at least three dimensions; the third one is the last."""
    return _at_least(3, arrays)


def vstack(arrays: Any, /) -> Array:
    """Return arrays joined along the first dimension; vectors are rows."""
    return concat([_raised(2, x) for x in _arrays("vstack", arrays)], axis=0)


def hstack(arrays: Any, /) -> Array:
    """Return arrays joined along the second dimension; vectors along their only one."""
    given = [_raised(1, x) for x in _arrays("hstack", arrays)]
    return concat(given, axis=0 if given and given[0].ndim == 1 else 1)


def dstack(arrays: Any, /) -> Array:
    """Return arrays joined along the third dimension."""
    return concat([_raised(3, x) for x in _arrays("dstack", arrays)], axis=2)


def column_stack(arrays: Any, /) -> Array:
    """Return a matrix of vectors as columns, and of the columns of matrices."""
    given = _arrays("column_stack", arrays)
    return concat([reshape(x, (-1, 1)) if x.ndim < 2 else x for x in given], axis=1)


def append(x: Any, values: Any, /, axis: int | None = None) -> Array:
    """Return an array and more values, in one dimension or along one."""
    return concat(together("append", x, values), axis=axis)


def array_split(x: Array, indices_or_sections: Any, /, axis: int = 0) -> list[Array]:
    """Return parts along a dimension as views: so many, or parted at positions."""
    along = axis_of("array_split", axis, checked("array_split", "x", x).ndim)
    n = x.shape[along]
    at: Any = on_the_host("array_split: sections", indices_or_sections, "integers")
    if at.ndim > 1:
        raise ValueError(f"array_split: sections: got {at.ndim} dimensions, expected at most 1")
    if not at.ndim:
        parts = int(at)
        if parts < 1:
            raise ValueError(f"array_split: sections: got {parts}, expected at least 1")
        at = [n // parts * k + min(k, n % parts) for k in range(1, parts)]
    ends = [None, *map(int, at), None]
    key = (slice(None),) * along
    return [x[(*key, slice(a, b))] for a, b in pairwise(ends)]


def split(x: Array, indices_or_sections: Any, /, axis: int = 0) -> list[Array]:
    """Return `array_split`, of equal parts if their number is given."""
    parts = array_split(x, indices_or_sections, axis)
    along = axis_of("split", axis, x.ndim)
    if np.ndim(indices_or_sections) == 0 and parts[0].shape[along] * len(parts) != x.shape[along]:
        n = x.shape[along]
        raise ValueError(f"split: got {n} elements, expected a multiple of {indices_or_sections}")
    return parts


def ravel(x: Array, /, order: str = "C") -> Array:
    """Return the elements, in C order or another one, in one dimension: a view if possible."""
    found: Array = checked("ravel", "x", x).ravel(order)
    return found


def swapaxes(x: Array, axis1: int, axis2: int, /) -> Array:
    """Return a view with two dimensions exchanged."""
    found: Array = checked("swapaxes", "x", x).swapaxes(axis1, axis2)
    return found


def fliplr(x: Array, /) -> Array:
    """Return a view with the second dimension in reverse."""
    return flip(x, axis=1)


def flipud(x: Array, /) -> Array:
    """Return a view with the first dimension in reverse."""
    return flip(x, axis=0)


def rot90(x: Array, /, k: int = 1, axes: Any = (0, 1)) -> Array:
    """Return a view turned k times by 90 degrees, from the first of two axes to the second."""
    first, second = (axis_of("rot90", axis, checked("rot90", "x", x).ndim) for axis in axes)
    if first == second:
        raise ValueError(f"rot90: axes: got {axes}, expected two dimensions")
    k = integer("rot90: k", k) % 4
    if k == 2:
        return flip(x, axis=(first, second))
    if not k:
        return x[...]
    turned = x.swapaxes(first, second)
    return flip(turned, axis=first if k == 1 else second)


# ---- Diagonals -----------------------------------------------------------------------------------


def diagonal(x: Array, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return diagonals of the first two dimensions, or of others, as a view; they come last."""
    ndim = checked("diagonal", "x", x).ndim
    first, second = (axis_of("diagonal", axis, ndim) for axis in (axis1, axis2))
    if first == second:
        raise ValueError(f"diagonal: axis1, axis2: got {first} twice, expected two dimensions")
    rest = [k for k in range(ndim) if k not in (first, second)]
    return diagonal_of_last(permute_dims(x, (*rest, first, second)), offset=offset)


def trace(x: Array, /, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Array:
    """Return the sums of `diagonal`."""
    return sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


def diag(x: Array, /, k: int = 0) -> Array:
    """Return a diagonal of a matrix as a view, or a matrix with a vector on a diagonal."""
    if checked("diag", "x", x).ndim == 2:
        return diagonal_of_last(x, offset=k)
    if x.ndim != 1:
        raise ValueError(f"diag: x: got {x.ndim} dimensions, expected 1 or 2")
    k = integer("diag: k", k)
    n = x.size + abs(k)
    found: Array = zeros((n, n), dtype=x.dtype, device=x.device)
    diagonal_of_last(found, offset=k)[...] = x
    return found


def identity(n: int, /, dtype: Any = None, *, device: Any = None) -> Array:
    """Return a square matrix of ones on the main diagonal."""
    return eye(n, dtype=dtype, device=device)


# ---- Sequences -----------------------------------------------------------------------------------


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Return `num` numbers from `start` to `stop`, at equal distances.

    Of arrays of bounds, along a new dimension `axis`; with `retstep` also the distances.
    """
    start, stop = (
        on_the_host(f"linspace: {name}", x, "numbers") if isinstance(x, (list, tuple)) else x
        for name, x in (("start", start), ("stop", stop))
    )
    if not (retstep or np.ndim(start) or np.ndim(stop)):
        return numbers(start, stop, num, endpoint=endpoint, dtype=dtype, device=device)
    num = integer("linspace: num", num)
    if num < 0:
        raise ValueError(f"linspace: num: got {num}, expected at least 0")
    near = next((x.device for x in (start, stop) if isinstance(x, Array)), device)
    first, last = (asarray(x, device=near) for x in (start, stop))
    of = result_type(first, last, 1.0)
    first, last = broadcast_arrays(astype(first, of, copy=False), astype(last, of, copy=False))
    parts = num - 1 if endpoint else num
    step = (last - first) / parts if parts > 0 else (last - first) * np.nan
    steps = reshape(arange(num, dtype=of, device=first.device), (-1, *(1,) * first.ndim))
    found = first + (steps * step if parts > 0 else steps)
    if endpoint and num > 1:
        found[-1] = last
    if dtype is not None:
        is_whole = kind_of(np.dtype(dtype)) in ("int", "uint")
        found = astype(unary("floor", found) if is_whole else found, dtype, copy=False)
    found = moveaxis(found, 0, axis)
    return (found, step) if retstep else found


def logspace(
    start: Any,
    stop: Any,
    /,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Array:
    """Return powers of a base, whose exponents have equal distances along a dimension."""
    places = linspace(start, stop, num, endpoint=endpoint, axis=axis, device=device)
    found = CALLED["pow"](base, places)
    return found if dtype is None else astype(found, dtype)


def geomspace(
    start: float,
    stop: float,
    /,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    *,
    device: Any = None,
) -> Array:
    """Return numbers with equal ratios."""
    start, stop = number("geomspace: start", start), number("geomspace: stop", stop)
    if start == 0 or stop == 0 or (start < 0) != (stop < 0):
        wanted = "two numbers of one sign, not 0"
        raise ValueError(f"geomspace: got {start} and {stop}, expected {wanted}")
    sign = 1 if start > 0 else -1
    bounds = np.log10(abs(start)), np.log10(abs(stop))
    found = logspace(*bounds, num, endpoint, device=device) * sign
    if num:
        found[0] = start
    if num > 1 and endpoint:
        found[-1] = stop
    return found if dtype is None else astype(found, dtype)
