# SPDX-License-Identifier: Apache-2.0
"""Arrays extended, concatenated, split and rotated."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug.array_api.beyond.host_values import on_the_host, together
from cuplug.array_api.concatenation import concat
from cuplug.array_api.creation import eye
from cuplug.array_api.dtypes import checked, integer, sequence
from cuplug.array_api.filled import zeros
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
    """Return views with one dimension or more.

    Examples
    --------
    >>> print(xp.atleast_1d(xp.asarray(5)))
    [5]
    """
    return _at_least(1, arrays)


def atleast_2d(*arrays: Any) -> Any:
    """Return views with two dimensions or more.

    Examples
    --------
    >>> print(xp.atleast_2d(xp.arange(3)))
    [[0 1 2]]
    """
    return _at_least(2, arrays)


def atleast_3d(*arrays: Any) -> Any:
    """Return views with three dimensions or more; the third is the last.

    Examples
    --------
    >>> xp.atleast_3d(xp.arange(3)).shape
    (1, 3, 1)
    """
    return _at_least(3, arrays)


def vstack(arrays: Any, /) -> Array:
    """Return arrays concatenated along the first dimension; vectors are rows.

    Examples
    --------
    >>> print(xp.vstack([xp.asarray([1, 2]), xp.asarray([3, 4])]))
    [[1 2]
     [3 4]]
    """
    return concat([_raised(2, x) for x in _arrays("vstack", arrays)], axis=0)


def hstack(arrays: Any, /) -> Array:
    """Return arrays concatenated along the second dimension; vectors along their only one.

    Examples
    --------
    >>> print(xp.hstack([xp.asarray([1, 2]), xp.asarray([3])]))
    [1 2 3]
    """
    given = [_raised(1, x) for x in _arrays("hstack", arrays)]
    return concat(given, axis=0 if given and given[0].ndim == 1 else 1)


def dstack(arrays: Any, /) -> Array:
    """Return arrays concatenated along the third dimension.

    Examples
    --------
    >>> print(xp.dstack([xp.asarray([1, 2]), xp.asarray([3, 4])]))
    [[[1 3]
      [2 4]]]
    """
    return concat([_raised(3, x) for x in _arrays("dstack", arrays)], axis=2)


def column_stack(arrays: Any, /) -> Array:
    """Return a matrix whose columns are vectors, or the columns of matrices.

    Examples
    --------
    >>> print(xp.column_stack([xp.asarray([1, 2]), xp.asarray([3, 4])]))
    [[1 3]
     [2 4]]
    """
    given = _arrays("column_stack", arrays)
    return concat([reshape(x, (-1, 1)) if x.ndim < 2 else x for x in given], axis=1)


def append(x: Any, values: Any, /, axis: int | None = None) -> Array:
    """Return an array with values appended, in one dimension or along an axis.

    Examples
    --------
    >>> print(xp.append(xp.asarray([1, 2]), [3]))
    [1 2 3]
    """
    return concat(together("append", x, values), axis=axis)


def array_split(x: Array, indices_or_sections: Any, /, axis: int = 0) -> list[Array]:
    """Return parts along a dimension as views: a number of parts, or parts between positions.

    Examples
    --------
    >>> print(*xp.array_split(xp.arange(5), 2))
    [0 1 2] [3 4]
    """
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
    """Return `array_split`; if a number of parts is given, they must be equal.

    Examples
    --------
    >>> print(*xp.split(xp.arange(6), [1, 4]))
    [0] [1 2 3] [4 5]
    """
    parts = array_split(x, indices_or_sections, axis)
    along = axis_of("split", axis, x.ndim)
    if np.ndim(indices_or_sections) == 0 and parts[0].shape[along] * len(parts) != x.shape[along]:
        n = x.shape[along]
        raise ValueError(f"split: got {n} elements, expected a multiple of {indices_or_sections}")
    return parts


def ravel(x: Array, /, order: str = "C") -> Array:
    """Return the elements in one dimension, in C order or another: a view if possible.

    Examples
    --------
    >>> print(xp.ravel(xp.asarray([[1, 2], [3, 4]])))
    [1 2 3 4]
    """
    found: Array = checked("ravel", "x", x).ravel(order)
    return found


def swapaxes(x: Array, axis1: int, axis2: int, /) -> Array:
    """Return a view with two dimensions exchanged.

    Examples
    --------
    >>> xp.swapaxes(xp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    found: Array = checked("swapaxes", "x", x).swapaxes(axis1, axis2)
    return found


def fliplr(x: Array, /) -> Array:
    """Return a view with the second dimension in reverse.

    Examples
    --------
    >>> print(xp.fliplr(xp.asarray([[1, 2], [3, 4]])))
    [[2 1]
     [4 3]]
    """
    return flip(x, axis=1)


def flipud(x: Array, /) -> Array:
    """Return a view with the first dimension in reverse.

    Examples
    --------
    >>> print(xp.flipud(xp.asarray([[1, 2], [3, 4]])))
    [[3 4]
     [1 2]]
    """
    return flip(x, axis=0)


def rot90(x: Array, /, k: int = 1, axes: Any = (0, 1)) -> Array:
    """Return a view rotated k times by 90 degrees, from the first of two axes to the second.

    Examples
    --------
    >>> print(xp.rot90(xp.asarray([[1, 2], [3, 4]])))
    [[2 4]
     [1 3]]
    """
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
    """Return diagonals of the first two dimensions, or of others, as a view; they come last.

    Examples
    --------
    >>> print(xp.diagonal(xp.asarray([[1, 2], [3, 4]])))
    [1 4]
    """
    ndim = checked("diagonal", "x", x).ndim
    first, second = (axis_of("diagonal", axis, ndim) for axis in (axis1, axis2))
    if first == second:
        raise ValueError(f"diagonal: axis1, axis2: got {first} twice, expected two dimensions")
    rest = [k for k in range(ndim) if k not in (first, second)]
    return diagonal_of_last(permute_dims(x, (*rest, first, second)), offset=offset)


def trace(x: Array, /, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Array:
    """Return the sums of `diagonal`.

    Examples
    --------
    >>> print(xp.trace(xp.asarray([[1, 2], [3, 4]])))
    5
    """
    return sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


def diag(x: Array, /, k: int = 0) -> Array:
    """Return a diagonal of a matrix as a view, or a matrix with a vector on a diagonal.

    Examples
    --------
    >>> print(xp.diag(xp.asarray([1, 2])))
    [[1 0]
     [0 2]]
    """
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
    """Return a square matrix of ones on the main diagonal.

    Examples
    --------
    >>> print(xp.identity(2))
    [[1. 0.]
     [0. 1.]]
    """
    return eye(n, dtype=dtype, device=device)


# ---- Sequences -----------------------------------------------------------------------------------
