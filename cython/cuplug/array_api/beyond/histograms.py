# SPDX-License-Identifier: Apache-2.0
"""Counts of elements by value."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import kind_of
from cuplug.array_api.beyond.host_values import on_the_host
from cuplug.array_api.concatenation import concat
from cuplug.array_api.conversion import asarray
from cuplug.array_api.creation import arange
from cuplug.array_api.dtypes import astype, checked, integer, result_type
from cuplug.array_api.filled import zeros
from cuplug.array_api.indexing import take
from cuplug.array_api.scans import cumulative_sum, diff
from cuplug.array_api.sorting import argsort, searchsorted, sort, where
from cuplug.array_api.statistical import all as is_all
from cuplug.array_api.statistical import max, min, sum
from cuplug.array_api.views import reshape


def _counted(values: Array, weights: Any, ends: Any) -> Array:
    """Return counts, or sums of weights, between positions that `ends` finds in sorted values."""
    if weights is None:
        return diff(ends(sort(values)))
    order = argsort(values)
    sums = cumulative_sum(take(weights, order), include_initial=True)
    return diff(take(sums, ends(take(values, order))))


def _weighted(name: str, x: Array, weights: Any) -> Any:
    if weights is None:
        return None
    given = asarray(weights, device=x.device)
    if given.shape != x.shape:
        raise ValueError(f"{name}: weights: got shape {given.shape}, expected {x.shape} (as x)")
    return reshape(given, (-1,))


def bincount(x: Array, /, weights: Any = None, minlength: int = 0) -> Array:
    """Return how often each number from 0 is in an array, or sums of weights; waits for a GPU.

    Parameters
    ----------
    x : Array, shape (n,)
        Nonnegative integers.
    weights : array_like, shape (n,), optional
        If given, the result is float64 sums of them.
    minlength : int, default 0
        The minimum number of counters.

    Examples
    --------
    >>> print(xp.bincount(xp.asarray([0, 2, 2])))
    [1 0 2]
    """
    if checked("bincount", "x", x).ndim != 1:
        raise ValueError(f"bincount: x: got {x.ndim} dimensions, expected 1")
    if kind_of(x.dtype) not in ("bool", "int", "uint"):
        seen = f"{x.dtype} in {x.ndim} dimensions"
        raise TypeError(f"bincount: x: got {seen}, expected integers in one dimension")
    n = integer("bincount: minlength", minlength)
    if n < 0:
        raise ValueError(f"bincount: minlength: got {n}, expected at least 0")
    x = astype(x, "uint8") if kind_of(x.dtype) == "bool" else x
    if x.size:
        if int(min(x)) < 0:
            raise ValueError("bincount: x: got an element below 0, expected at least 0")
        n = np.maximum(n, int(max(x)) + 1).item()
    given = _weighted("bincount", x, weights)
    given = given if given is None else astype(given, "float64")
    numbers = arange(n + 1, device=x.device)
    return _counted(astype(x, "int64"), given, lambda own: searchsorted(own, numbers))


def _limits(name: str, x: Array, limits: Any) -> tuple[float, float]:
    """Return the minimum and the maximum, or the given limits."""
    if limits is None:
        low, high = (min(x).item(), max(x).item()) if x.size else (0, 1)
    else:
        found = on_the_host(f"{name}: range", limits, "real numbers")
        if found.shape != (2,):
            raise ValueError(f"{name}: range: got {limits!s:.60}, expected two numbers")
        low, high = map(float, found)
    if not np.isfinite([low, high]).all() or low > high:
        raise ValueError(f"{name}: range: got {low} to {high}, expected finite limits in order")
    return low, high


def histogram_bin_edges(x: Array, /, bins: Any = 10, range: Any = None) -> Array:
    """Return the edges of the bins of `histogram`; waits for a GPU without `range`.

    Examples
    --------
    >>> print(xp.histogram_bin_edges(xp.asarray([0.0, 4.0]), bins=4))
    [0. 1. 2. 3. 4.]
    """
    checked("histogram", "x", x)
    if isinstance(bins, Array) or on_the_host("histogram: bins", bins, "real numbers").ndim:
        edges = asarray(bins, device=x.device)
        if edges.ndim != 1 or not bool(is_all(edges[1:] >= edges[:-1])):
            raise ValueError("histogram: bins: got edges out of order, expected ascending ones")
        return edges
    n = integer("histogram: bins", bins)
    if n < 1:
        raise ValueError(f"histogram: bins: got {n}, expected at least 1")
    limits = _limits("histogram", x, range)
    ends = np.empty(0, x.dtype) if range is not None else np.asarray(limits, x.dtype)
    equal = np.histogram_bin_edges(ends, n, None if range is None else limits)
    return asarray(equal, device=x.device)


def histogram(
    x: Array, /, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Array, Array]:
    """Return how many elements are in each bin, and the edges of the bins.

    Parameters
    ----------
    x : Array
        Real; used in C order.
    bins : int or array_like
        A number of equal bins, or ascending edges. The last bin includes its upper edge.
    range : tuple of two floats, optional
        Limits of equal bins; the default is the range of the elements.
    density : bool, default False
        If True, counts are divided by their sum and the widths of the bins.
    weights : array_like, optional
        The weight of each element, of the shape of `x`.

    Returns
    -------
    counts, edges : Array

    Examples
    --------
    >>> counts, edges = xp.histogram(xp.asarray([0.0, 0.1, 0.9, 1.0]), bins=2)
    >>> print(counts, edges)
    [2 2] [0.  0.5 1. ]
    """
    edges = histogram_bin_edges(x, bins, range)
    given = _weighted("histogram", x, weights)
    if given is not None and kind_of(given.dtype) == "bool":
        given = astype(given, "int64")

    def ends(own: Array) -> Array:
        found = (searchsorted(own, edges[:-1]), searchsorted(own, edges[-1:], side="right"))
        return concat(found)

    counts = _counted(reshape(x, (-1,)), given, ends)
    if density:
        counts = counts / diff(edges) / sum(counts)
    return counts, edges


def digitize(x: Array, /, bins: Any, right: bool = False) -> Array:
    """Return the number of each element's bin, for edges that ascend or descend.

    Examples
    --------
    >>> print(xp.digitize(xp.asarray([0.5, 2.5]), [0.0, 1.0, 2.0]))
    [1 3]
    """
    edges = asarray(bins, device=checked("digitize", "x", x).device)
    if edges.ndim != 1:
        raise ValueError(f"digitize: bins: got shape {edges.shape}, expected one dimension")
    host = edges.numpy()
    others = host[1:][host[1:] != host[:1]]
    is_falling = bool(others.size) and not host[0] < others[0]
    ordered = edges[::-1] if is_falling else edges
    if (host[1:] > host[:-1] if is_falling else host[1:] < host[:-1]).any():
        raise ValueError("digitize: bins: got edges out of order, expected sorted ones")
    found = searchsorted(ordered, x, side="left" if right else "right")
    return edges.size - found if is_falling else found


def histogramdd(
    x: Array, /, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Array, list[Array]]:
    """Return how many points are in each bin of several dimensions, and the edges along each.

    Parameters
    ----------
    x : Array, shape (n, d)
    bins, range : as of `histogram`, or sequences of these for each dimension
    density, weights : as of `histogram`

    Examples
    --------
    >>> counts, edges = xp.histogramdd(xp.asarray([[0.0, 0.0], [1.0, 1.0]]), bins=2)
    >>> print(counts)
    [[1. 0.]
     [0. 1.]]
    """
    if checked("histogramdd", "x", x).ndim != 2:
        raise ValueError(f"histogramdd: x: got {x.ndim} dimensions, expected 2")
    n, d = x.shape
    each = list(bins) if isinstance(bins, (list, tuple)) else [bins] * d
    limits = [None] * d if range is None else list(range)
    if len(each) != d or len(limits) != d:
        raise ValueError(
            f"histogramdd: bins, range: got {len(each)} and {len(limits)}, expected {d}"
        )
    number, inside = zeros(n, dtype="int64", device=x.device), zeros(n, dtype="bool") == 0
    edges, sizes = [], []
    wide = zeros((0,), dtype="float64", device=x.device)  # the dtype of edges between given limits
    inside = asarray(inside, device=x.device)
    for k, (own, limit) in enumerate(zip(each, limits, strict=True)):
        edges.append(histogram_bin_edges(x[:, k] if limit is None else wide, own, limit))
        sizes.append(edges[k].size - 1)
        place = searchsorted(edges[k], x[:, k], side="right") - 1
        place = where(x[:, k] == edges[k][-1], sizes[k] - 1, place)
        inside = inside & (place >= 0) & (place < sizes[k])
        number = number * sizes[k] + place
    given = _weighted("histogramdd", number, weights)
    total = int(np.prod(sizes))
    kept = number[inside]
    counts = bincount(kept, None if given is None else given[inside], total)
    counts = reshape(astype(counts, "float64"), tuple(sizes))
    if density:
        counts = counts / sum(counts)
        for k, edge in enumerate(edges):
            counts = counts / reshape(diff(edge), [-1 if at == k else 1 for at in _indices(d)])
    return counts, edges


def _indices(d: int) -> Any:
    return np.arange(d).tolist()


def histogram2d(
    x: Array,
    y: Array,
    /,
    bins: Any = 10,
    range: Any = None,
    density: bool = False,
    weights: Any = None,
) -> tuple[Array, Array, Array]:
    """Return how many points (x, y) are in each bin, and the edges along both dimensions.

    Examples
    --------
    >>> counts, *_ = xp.histogram2d(xp.asarray([0.0, 1.0]), xp.asarray([0.0, 1.0]), bins=2)
    >>> print(counts)
    [[1. 0.]
     [0. 1.]]
    """
    for name, each in (("x", x), ("y", y)):
        if checked("histogram2d", name, each).ndim != 1:
            raise ValueError(f"histogram2d: {name}: got shape {each.shape}, expected one dimension")
    dtype = result_type(x, y)
    points = [reshape(astype(each, dtype), (-1, 1)) for each in (x, y)]
    is_pair = isinstance(bins, (list, tuple)) and len(bins) == 2
    pair = bins if is_pair else [bins, bins]
    counts, (first, second) = histogramdd(concat(points, axis=1), pair, range, density, weights)
    return counts, first, second
