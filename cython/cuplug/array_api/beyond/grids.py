# SPDX-License-Identifier: Apache-2.0
"""Sequences and grids of numbers, positions, and NumPy's short notations for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import NUMBERS, kind_of
from cuplug.array_api.beyond.host_values import number, on_the_host, together
from cuplug.array_api.concatenation import concat, stack
from cuplug.array_api.conversion import asarray
from cuplug.array_api.creation import arange, tril, triu
from cuplug.array_api.creation import linspace as numbers
from cuplug.array_api.dtypes import astype, checked, integer, result_type
from cuplug.array_api.elementwise import CALLED, unary
from cuplug.array_api.filled import ones, zeros
from cuplug.array_api.indexing import take
from cuplug.array_api.manipulation import broadcast_arrays, moveaxis
from cuplug.array_api.sorting import nonzero
from cuplug.array_api.views import reshape, shape_of


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False, *, device: Any = None) -> Any:
    """Return the positions of all elements of a shape along each dimension, as one array.

    With `sparse`, a tuple of arrays that broadcast to the shape.

    Examples
    --------
    >>> print(xp.indices((2, 2))[0])
    [[0 0]
     [1 1]]
    """
    shape = shape_of("indices: dimensions", dimensions)
    n = len(shape)
    lines = [
        reshape(arange(size, dtype=dtype, device=device), [-1 if k == at else 1 for k in range(n)])
        for at, size in enumerate(shape)
    ]
    if sparse:
        return tuple(lines)
    if not n:
        return zeros((0,), dtype=dtype, device=device)
    return stack(broadcast_arrays(*lines))


def tri(
    N: int, M: int | None = None, k: int = 0, dtype: Any = float, *, device: Any = None
) -> Array:
    """Return a matrix of ones on and below a diagonal, and zeros.

    Examples
    --------
    >>> print(xp.tri(2, dtype=xp.int8))
    [[1 0]
     [1 1]]
    """
    return tril(ones((N, N if M is None else M), dtype=dtype, device=device), k=k)


def tril_indices(
    n: int, k: int = 0, m: int | None = None, *, device: Any = None
) -> tuple[Array, ...]:
    """Return the positions of the elements of a lower triangle of n rows and m columns.

    Examples
    --------
    >>> print(*xp.tril_indices(2))
    [0 1 1] [0 0 1]
    """
    return nonzero(tri(n, m, k, "bool", device=device))


def triu_indices(
    n: int, k: int = 0, m: int | None = None, *, device: Any = None
) -> tuple[Array, ...]:
    """Return the positions of the elements of an upper triangle of n rows and m columns.

    Examples
    --------
    >>> print(*xp.triu_indices(2))
    [0 0 1] [0 1 1]
    """
    k = integer("triu_indices: k", k)
    return nonzero(tri(n, m, k - 1, "uint8", device=device) == 0)


def tril_indices_from(x: Array, /, k: int = 0) -> Any:
    """Return the positions of the elements of a matrix's lower triangle.

    Examples
    --------
    >>> print(*xp.tril_indices_from(xp.ones((2, 2))))
    [0 1 1] [0 0 1]
    """
    return nonzero(tril(_mask_of_matrix("tril_indices_from", x), k=k))


def triu_indices_from(x: Array, /, k: int = 0) -> Any:
    """Return the positions of the elements of a matrix's upper triangle.

    Examples
    --------
    >>> print(*xp.triu_indices_from(xp.ones((2, 2))))
    [0 0 1] [0 1 1]
    """
    return nonzero(triu(_mask_of_matrix("triu_indices_from", x), k=k))


def _mask_of_matrix(name: str, x: Any) -> Array:
    if checked(name, "x", x).ndim != 2:
        raise ValueError(f"{name}: x: got {x.ndim} dimensions, expected 2")
    return ones(x.shape, dtype="uint8", device=x.device)


def diag_indices(n: int, ndim: int = 2, *, device: Any = None) -> tuple[Array, ...]:
    """Return the positions of the main diagonal of an array of `ndim` dimensions of n elements.

    Examples
    --------
    >>> print(*xp.diag_indices(3))
    [0 1 2] [0 1 2]
    """
    line = arange(integer("diag_indices: n", n), device=device)
    return (line,) * integer("diag_indices: ndim", ndim)


def diag_indices_from(x: Array, /) -> tuple[Array, ...]:
    """Return the positions of the main diagonal of an array whose dimensions have equal sizes.

    Examples
    --------
    >>> print(*xp.diag_indices_from(xp.ones((2, 2))))
    [0 1] [0 1]
    """
    if checked("diag_indices_from", "x", x).ndim < 2 or len(set(x.shape)) > 1:
        wanted = "at least two dimensions of equal sizes"
        raise ValueError(f"diag_indices_from: x: got shape {x.shape}, expected {wanted}")
    return diag_indices(x.shape[0], x.ndim, device=x.device)


def ix_(*args: Any) -> tuple[Array, ...]:
    """Return positions or masks, one line for each dimension, as a key for all their pairs.

    Examples
    --------
    >>> print(xp.arange(9).reshape((3, 3))[xp.ix_(xp.asarray([0, 2]), xp.asarray([0, 1]))])
    [[0 1]
     [6 7]]
    """
    lines = []
    for x in together("ix_", *args):
        if x.ndim != 1:
            raise ValueError(f"ix_: args: got {x.ndim} dimensions, expected 1")
        x = nonzero(x)[0] if kind_of(x.dtype) == "bool" else x
        lines.append(x if x.size else astype(x, "int64", copy=False))
    n = len(lines)
    return tuple(reshape(x, [-1 if k == at else 1 for k in range(n)]) for at, x in enumerate(lines))


class Grid:
    """Return numbers along each dimension, written as slices between brackets.

    Examples
    --------
    >>> from cuplug import array_api as xp, Device
    >>> with Device("cpu"):
    ...     print(xp.mgrid[0:2, 1:3])
    [[[0 0]
      [1 1]]
    <BLANKLINE>
     [[1 2]
      [1 2]]]
    """

    def __init__(self, is_sparse: bool) -> None:
        self._is_sparse = is_sparse

    def __getitem__(self, key: Any) -> Any:
        lines = np.ogrid[key]  # short arrays
        if not isinstance(key, tuple):
            return asarray(lines)
        found = tuple(map(asarray, lines))
        if self._is_sparse or not found:
            return found if self._is_sparse else zeros((0,))
        return stack(broadcast_arrays(*found))


class Joined:
    """Join the arrays, numbers and slices between brackets.

    Examples
    --------
    >>> from cuplug import array_api as xp
    >>> x = xp.asarray([1.5, 2.5], device="cpu")
    >>> xp.r_[x, 0, 3:5]
    Array([1.5, 2.5, 0. , 3. , 4. ], dtype=float64, device='cpu')
    """

    def __init__(self, by_numpy: Any) -> None:
        self._by_numpy = by_numpy

    def __getitem__(self, key: Any) -> Array:
        items = key if isinstance(key, tuple) else (key,)
        near = next((x.device for x in items if isinstance(x, Array)), None)
        places, parts, dtypes, n = [], [], [], 0
        for item in items:
            if isinstance(item, str) and item not in ("r", "c"):  # these strings create matrices
                places.append(item)  # for the dimensions
                continue
            part = asarray(np.r_[item] if isinstance(item, slice) else item, device=near)
            parts.append(reshape(part, (-1,)))
            dtypes.append(item if isinstance(item, NUMBERS) else part.dtype)
            places.append(np.arange(n, n + part.size).reshape(part.shape))  # type: ignore[arg-type]
            n += part.size
        if not parts:
            raise TypeError(f"cuplug.array_api: got the key {key!r:.60}, expected arrays")
        order = self._by_numpy[tuple(places)]
        if not any(isinstance(each, np.dtype) for each in dtypes):
            dtypes = [each.dtype for each in parts]
        line = astype(concat(parts), result_type(*dtypes), copy=False)
        return take(line, asarray(order, device=line.device))


mgrid, ogrid = Grid(False), Grid(True)
r_, c_ = Joined(np.r_), Joined(np.c_)


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

    For arrays of bounds, the numbers are along a new dimension `axis`. With `retstep`, also returns
    the distances.

    Examples
    --------
    >>> print(xp.linspace(0, 1, 5))
    [0.   0.25 0.5  0.75 1.  ]
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
    """Return powers of a base, whose exponents have equal distances along a dimension.

    Examples
    --------
    >>> print(xp.logspace(0, 2, 3))
    [  1.  10. 100.]
    """
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
    """Return numbers with equal ratios.

    Examples
    --------
    >>> print(xp.geomspace(1, 1000, 4))
    [   1.   10.  100. 1000.]
    """
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
