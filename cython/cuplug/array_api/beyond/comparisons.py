# SPDX-License-Identifier: Apache-2.0
"""Comparisons of arrays, within a tolerance, as a whole and as sets; partial sorts."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import kind_of
from cuplug.array_api.beyond.host_values import on_the_host, together
from cuplug.array_api.beyond.numpy_attributes import within
from cuplug.array_api.beyond.outputs import into_out
from cuplug.array_api.concatenation import concat, stack
from cuplug.array_api.conversion import asarray
from cuplug.array_api.creation import arange
from cuplug.array_api.dtypes import astype, checked, flag, promoted, result_type, sequence
from cuplug.array_api.elementwise import binary, unary
from cuplug.array_api.filled import ones, zeros
from cuplug.array_api.indexing import take, take_along_axis
from cuplug.array_api.manipulation import broadcast_arrays, broadcast_shapes, moveaxis
from cuplug.array_api.scans import cumulative_sum, diff
from cuplug.array_api.sorting import (
    argsort,
    nonzero,
    searchsorted,
    sort,
    unique_all,
    unique_values,
    where,
)
from cuplug.array_api.statistical import all as is_all
from cuplug.array_api.statistical import any as is_any
from cuplug.array_api.statistical import count_nonzero, sum
from cuplug.array_api.views import axis_of, broadcast_to, reshape


def isin(
    element: Array, test_elements: Any, /, assume_unique: bool = False, invert: bool = False
) -> Array:
    """Return which elements are among others; with `invert`, which are not.

    Examples
    --------
    >>> print(xp.isin(xp.asarray([1, 2, 3]), [2, 5]))
    [False  True False]
    """
    x = checked("isin", "element", element)
    others = reshape(asarray(test_elements, device=x.device), (-1,))
    if not others.size:
        return (zeros(x.shape, dtype="bool", device=x.device)) | invert
    dtype = result_type(x, others)
    if kind_of(dtype) == "complex":
        raise TypeError("isin: got complex numbers, expected numbers that have an order")
    own, ordered = astype(x, dtype, copy=False), sort(astype(others, dtype, copy=False))
    ends = (searchsorted(ordered, own, side=side) for side in ("left", "right"))
    found = binary("not_equal", *ends) & binary("equal", own, own)  # no element equals NaN
    return unary("logical_not", found) if invert else found


def isclose(
    a: Any, b: Any, /, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False
) -> Array:
    """Return whether `|a - b| <= atol + rtol |b|`, or both are equal; NaN, with `equal_nan`.

    Examples
    --------
    >>> print(xp.isclose(xp.asarray([1.0, 2.0]), [1.0, 2.1]))
    [ True False]
    """
    a, b = together("isclose", a, b)
    if kind_of(b.dtype) in ("bool", "int", "uint"):
        b = astype(b, promoted(b.dtype, np.dtype("float64")))
    near = unary("abs", a - b) <= atol + rtol * unary("abs", b)
    found = binary("equal", a, b) | (near & unary("isfinite", b))
    return found | (_is_nan(a) & _is_nan(b)) if equal_nan else found


def _is_nan(x: Array) -> Array:
    return binary("not_equal", x, x)


def allclose(
    a: Any, b: Any, /, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False
) -> bool:
    """Return whether all elements are `isclose`; waits for a GPU.

    Examples
    --------
    >>> xp.allclose(xp.asarray([1.0, 2.0]), [1.0, 2.0 + 1e-9])
    True
    """
    return bool(is_all(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a: Any, b: Any, /, equal_nan: bool = False) -> bool:
    """Return whether two arrays have one shape and equal elements; waits for a GPU.

    Examples
    --------
    >>> xp.array_equal(xp.asarray([1, 2]), [1, 2])
    True
    """
    a, b = together("array_equal", a, b)
    if a.shape != b.shape:
        return False
    same = binary("equal", a, b)
    return bool(is_all(same | (_is_nan(a) & _is_nan(b)) if equal_nan else same))


def array_equiv(a: Any, b: Any, /) -> bool:
    """Return whether two arrays can be broadcast and have equal elements; waits for a GPU.

    Examples
    --------
    >>> xp.array_equiv(xp.asarray([[1, 2], [1, 2]]), [1, 2])
    True
    """
    a, b = together("array_equiv", a, b)
    try:
        shape = broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return array_equal(broadcast_to(a, shape), broadcast_to(b, shape))


# ---- Sets ----------------------------------------------------------------------------------------


def unique(
    x: Array,
    /,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    """Return the unique elements, sorted; optionally their positions, inverse indices and counts.

    All NaN are one element, unless `equal_nan` is false. The search for NaN waits for a GPU. With
    `axis`, returns the distinct parts along a dimension, in the order of their elements.

    Examples
    --------
    >>> print(*xp.unique(xp.asarray([2, 1, 2]), return_counts=True))
    [1 2] [1 2]
    """
    if axis is not None and checked("unique", "x", x).ndim != 1:
        return _unique_parts(x, (True, return_index, return_inverse, return_counts), axis)
    wanted = (True, return_index, return_inverse, return_counts)
    found: Any = unique_all(x) if any(wanted[1:]) else (unique_values(x), None, None, None)
    n = int(count_nonzero(_is_nan(found[0]))) if flag("unique: equal_nan", equal_nan) else 0
    if n > 1:
        last = found[0].size - n
        values, indices, inverse, counts = found
        found = (
            values[: last + 1],
            None if indices is None else indices[: last + 1],
            None if inverse is None else binary("minimum", inverse, last),
            None if counts is None else concat([counts[:last], sum(counts[last:], keepdims=True)]),
        )
    parts = tuple(part for part, is_wanted in zip(found, wanted, strict=True) if is_wanted)
    return parts if len(parts) > 1 else parts[0]


def _unique_parts(x: Array, wanted: Any, axis: int) -> Any:
    along = axis_of("unique", axis, x.ndim)
    parts = moveaxis(x, along, 0)
    n = parts.shape[0]
    rows = reshape(parts, (n, -1)) if parts.size else zeros((n, 1), dtype=x.dtype, device=x.device)
    order = arange(n, device=x.device)
    for k in reversed(range(rows.shape[1])):
        order = take(order, argsort(take(rows[:, k], order)))
    ordered = take(rows, order, axis=0)
    is_new = is_any(binary("not_equal", ordered[1:], ordered[:-1]), axis=1)
    is_new = concat([ones((min(n, 1),), dtype="bool", device=x.device), is_new])
    starts = nonzero(is_new)[0]
    indices = take(order, starts)
    inverse = zeros((n,), dtype="int64", device=x.device)
    if n:
        inverse[order] = cumulative_sum(astype(is_new, "int64")) - 1
    counts = diff(concat([starts, asarray([n], device=x.device)]))
    found = (moveaxis(take(parts, indices, axis=0), 0, along), indices, inverse, counts)
    chosen = tuple(part for part, is_wanted in zip(found, wanted, strict=True) if is_wanted)
    return chosen if len(chosen) > 1 else chosen[0]


def union1d(x1: Array, x2: Array, /) -> Array:
    """Return the unique elements of two arrays, sorted; all NaN are one element.

    Examples
    --------
    >>> print(xp.union1d(xp.asarray([1, 2]), xp.asarray([2, 5])))
    [1 2 5]
    """
    return unique(concat([x1, x2], axis=None))  # type: ignore[no-any-return]


def intersect1d(
    x1: Array, x2: Array, /, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """Return the elements that are in both arrays, sorted; optionally their index in each.

    Examples
    --------
    >>> print(xp.intersect1d(xp.asarray([1, 2, 3]), xp.asarray([3, 1, 5])))
    [1 3]
    """
    dtype = result_type(checked("intersect1d", "x1", x1), checked("intersect1d", "x2", x2))
    first, second = (astype(reshape(x, (-1,)), dtype, copy=False) for x in (x1, x2))
    if not return_indices:
        own = unique_values(first)
        return own[isin(own, second)]
    (own, at, _, _), (others, there, _, _) = unique_all(first), unique_all(second)
    is_shared = isin(own, others)
    values = own[is_shared]
    return values, at[is_shared], take(there, searchsorted(others, values))


def setdiff1d(x1: Array, x2: Array, /, assume_unique: bool = False) -> Array:
    """Return the elements of one array that are not in another, sorted.

    With `assume_unique`, they keep the array's order, with repetitions.

    Examples
    --------
    >>> print(xp.setdiff1d(xp.asarray([1, 2, 3]), xp.asarray([2])))
    [1 3]
    """
    own = reshape(x1, (-1,)) if assume_unique else unique(x1)
    return own[isin(own, x2, invert=True)]


# ---- Positions -----------------------------------------------------------------------------------


def partition(x: Array, kth: Any, /, axis: int | None = -1) -> Array:
    """Return the elements, of which rank `kth` is in its position; all are sorted.

    Examples
    --------
    >>> print(xp.partition(xp.asarray([30, 10, 20]), 1))
    [10 20 30]
    """
    x, along = _ranked("partition", x, kth, axis)
    return sort(x, axis=along)


def argpartition(x: Array, kth: Any, /, axis: int | None = -1) -> Array:
    """Return the indices of `partition`; all are sorted.

    Examples
    --------
    >>> print(xp.argpartition(xp.asarray([30, 10, 20]), 1))
    [1 2 0]
    """
    x, along = _ranked("argpartition", x, kth, axis)
    return argsort(x, axis=along)


def _ranked(name: str, x: Any, kth: Any, axis: int | None) -> tuple[Array, int]:
    line = reshape(checked(name, "x", x), (-1,)) if axis is None else checked(name, "x", x)
    along = axis_of(name, -1 if axis is None else axis, line.ndim)
    ranks, n = on_the_host(f"{name}: kth", kth, "integers"), line.shape[along]
    if ((ranks < -n) | (ranks >= n)).any():
        raise ValueError(f"{name}: kth: got {ranks}, expected {-n} <= kth < {n}")
    return line, along


def flatnonzero(x: Array, /) -> Array:
    """Return the positions in C order of elements that are not 0; waits for a GPU.

    Examples
    --------
    >>> print(xp.flatnonzero(xp.asarray([[0, 5], [7, 0]])))
    [1 2]
    """
    return nonzero(reshape(x, (-1,)))[0]


def argwhere(x: Array, /) -> Array:
    """Return the positions of elements that are not 0, a row for each; waits for a GPU.

    Examples
    --------
    >>> print(xp.argwhere(xp.asarray([[0, 5], [7, 0]])))
    [[0 1]
     [1 0]]
    """
    return stack(nonzero(x), axis=1)


def compress(condition: Any, x: Array, /, axis: int | None = None) -> Array:
    """Return parts along a dimension for which a condition holds; waits for a GPU.

    Examples
    --------
    >>> print(xp.compress([True, False, True], xp.asarray([1, 2, 3])))
    [1 3]
    """
    x = reshape(checked("compress", "x", x), (-1,)) if axis is None else x
    chosen = nonzero(asarray(condition, device=x.device))[0]
    return take(x, chosen, axis=0 if axis is None else axis)


def select(condlist: Any, choicelist: Any, /, default: Any = 0) -> Array:
    """Return elements of the first of several choices whose condition holds, else a default.

    Examples
    --------
    >>> x = xp.asarray([1, 5, 9])
    >>> print(xp.select([x < 3, x > 7], [x, -x], default=0))
    [ 1  0 -9]
    """
    conditions = sequence("select: condlist", condlist, "a sequence of arrays")
    choices = sequence("select: choicelist", choicelist, "a sequence of arrays")
    if len(conditions) != len(choices) or not choices:
        raise ValueError(f"select: got {len(conditions)} conditions, expected {len(choices)} (> 0)")
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        default = where(condition, choice, default)
    found: Array = default
    return found


def choose(a: Array, choices: Any, /, out: Array | None = None, mode: str = "raise") -> Array:
    """Return elements of several arrays; each element of `a` is the number of one of these.

    Numbers out of range raise ValueError, which waits for a GPU. With `mode` "wrap" or "clip", they
    are mapped into the range.

    Examples
    --------
    >>> print(xp.choose(xp.asarray([0, 1, 0]), [[1, 2, 3], [10, 20, 30]]))
    [ 1 20  3]
    """
    given = (
        choices if isinstance(choices, Array) else sequence("choose: choices", choices, "arrays")
    )
    if not checked("choose", "a", a).ndim and not len(given):
        raise ValueError("choose: choices: got none, expected at least one")
    if kind_of(a.dtype) not in ("bool", "int", "uint"):
        raise TypeError(f"choose: a: got {a.dtype}, expected integers")
    numbers, *arrays = broadcast_arrays(*together("choose", a, *given))
    numbers = within("choose", astype(numbers, "int64"), len(arrays), mode)
    if mode == "raise" and bool(is_any((numbers < 0) | (numbers >= len(arrays)))):
        raise ValueError(f"choose: a: got a number out of range, expected 0 <= a < {len(arrays)}")
    dtype = result_type(*arrays)
    both = stack([astype(x, dtype, copy=False) for x in arrays])
    return into_out(reshape(take_along_axis(both, numbers[None], axis=0), numbers.shape), out)


def piecewise(x: Array, condlist: Any, funclist: Any, /) -> Array:
    """Return values of functions, or numbers, for the elements at which conditions hold.

    An additional function is for the other elements, which are 0 without it. Waits for a GPU.

    Examples
    --------
    >>> x = xp.asarray([-2.0, 3.0])
    >>> print(xp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, 10]))
    [ 2. 10.]
    """
    checked("piecewise", "x", x)
    given = condlist if isinstance(condlist, (list, tuple)) else [condlist]
    conditions = [asarray(each, dtype="bool", device=x.device) for each in given]
    functions = sequence("piecewise: funclist", funclist, "a sequence of functions or numbers")
    if len(functions) == len(conditions) + 1:
        known = zeros(x.shape, dtype="bool", device=x.device)
        for condition in conditions:
            known = known | condition
        conditions.append(unary("logical_not", known))
    if len(functions) != len(conditions):
        wanted = f"{len(conditions)} or one more"
        raise ValueError(f"piecewise: funclist: got {len(functions)}, expected {wanted}")
    found: Array = zeros(x.shape, dtype=x.dtype, device=x.device)
    for condition, function in zip(conditions, functions, strict=True):
        found[condition] = function(x[condition]) if callable(function) else function
    return found
