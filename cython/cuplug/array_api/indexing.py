# SPDX-License-Identifier: Apache-2.0
"""Reading and writing of elements by masks and by arrays of positions."""

from __future__ import annotations

from functools import cache
from operator import index
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array, may_meet
from cuplug._engine.array.keys import are_along_first, axis_of_positions, is_mask_of, put_at
from cuplug._engine.array.promotion import kind_of, name_of
from cuplug._engine.call.operator import Operator
from cuplug._source.expressions.element_wise import elementwise
from cuplug.array_api.beyond.host_values import on_the_host
from cuplug.array_api.concatenation import repeated
from cuplug.array_api.conversion import asarray
from cuplug.array_api.creation import arange, as_elements, assign
from cuplug.array_api.dtypes import astype, checked, integer
from cuplug.array_api.elementwise import binary
from cuplug.array_api.filled import copied, single_like
from cuplug.array_api.functions import stock
from cuplug.array_api.manipulation import broadcast_arrays, broadcast_shapes
from cuplug.array_api.scans import cumulative_sum
from cuplug.array_api.sorting import nonzero, searchsorted, where
from cuplug.array_api.statistical import count_nonzero, max, min
from cuplug.array_api.views import (
    axis_of,
    broadcast_to,
    expand_dims,
    is_in_order,
    permute_dims,
    reshape,
)

__all__ = ["put_at", "put_converted", "repeat", "take", "take_along_axis", "take_at"]

_PLACES = (np.dtype("int64"), np.dtype("int32"))  # dtypes of indices that operators accept


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """Return elements along a dimension, by their positions.

    Examples
    --------
    >>> print(xp.take(xp.asarray([10, 20, 30]), xp.asarray([2, 0])))
    [30 10]
    """
    if axis is None and checked("take", "x", x).ndim != 1:
        raise ValueError(
            f"take: axis: got None, expected an int for an array of {x.ndim} dimensions"
        )
    along = 0 if axis is None else axis_of("take", axis, checked("take", "x", x).ndim)
    taken: Array = stock("gather.gather")(x, indices, axis=along)
    return taken


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Return elements along a dimension, by positions that differ for each of the others.

    Examples
    --------
    >>> print(xp.take_along_axis(xp.asarray([[1, 2], [3, 4]]), xp.asarray([[1], [0]]), axis=1))
    [[2]
     [3]]
    """
    along = axis_of("take_along_axis", axis, checked("take_along_axis", "x", x).ndim)
    if kind_of(checked("take_along_axis", "indices", indices).dtype) not in ("int", "uint"):
        raise TypeError(f"take_along_axis: indices: got {indices.dtype}, expected integers")
    if indices.ndim != x.ndim:
        raise ValueError(
            f"take_along_axis: indices: got {indices.ndim} dimensions, expected {x.ndim}, as x has"
        )
    if indices.dtype not in _PLACES:
        indices = astype(indices, "int64")
    own, wanted = x.shape, indices.shape
    if (*own[:along], *own[along + 1 :]) != (*wanted[:along], *wanted[along + 1 :]):
        others = (*own[:along], 1, *own[along + 1 :])
        shape = broadcast_shapes((*wanted[:along], 1, *wanted[along + 1 :]), others)
        indices = broadcast_to(indices, (*shape[:along], wanted[along], *shape[along + 1 :]))
        x = broadcast_to(x, (*shape[:along], own[along], *shape[along + 1 :]))
    taken: Array = stock("indexing.take_along_axis")(x, indices, along)
    return taken


def repeat(x: Array, repeats: int | Array, /, *, axis: int | None = None) -> Array:
    """Return an array with each element, or each part along a dimension, several times.

    Examples
    --------
    >>> print(xp.repeat(xp.asarray([1, 2]), 2))
    [1 1 2 2]
    """
    checked("repeat", "x", x)
    if axis is None and x.ndim != 1:
        return repeat(reshape(x, (-1,)), repeats, axis=0)
    along = axis_of("repeat", 0 if axis is None else axis, x.ndim)
    if not isinstance(repeats, Array):
        if type(repeats) is int or (hasattr(repeats, "__index__") and np.ndim(repeats) == 0):
            return repeated(x, integer("repeat: repeats", repeats), along)
        repeats = asarray(on_the_host("repeat: repeats", repeats, "integers"), device=x.device)
    times = astype(repeats, "int64") if kind_of(repeats.dtype) == "bool" else repeats
    if kind_of(times.dtype) not in ("int", "uint"):
        raise TypeError(f"repeat: repeats: got {times.dtype}, expected integers")
    if times.size and int(min(times)) < 0:
        raise ValueError("repeat: repeats: got a number below 0, expected none")
    times = broadcast_to(times, (x.shape[along],))
    if not times.size:
        return copied(x)
    most = int(max(times))
    if most * times.size >= 1 << 63:
        raise ValueError(f"repeat: repeats: got {most}, expected a sum below 2**63")
    ends = cumulative_sum(times, dtype="int64")
    numbers = arange(int(ends[-1]), device=x.device)
    return take(x, searchsorted(ends, numbers, side="right"), axis=along)


# ---- Keys with arrays ----------------------------------------------------------------------------


_Parts = tuple[Array, list[Array], list[int], int]


def _parted(x: Array, key: Any) -> _Parts:
    """Return a view by the items of a key that are not arrays, and the dimensions of the arrays.

    Returns the arrays of positions, their dimensions in the view, and the first dimension of the
    result for them: the first of these, or 0 if others are between.
    """
    keys = key if isinstance(key, tuple) else (key,)
    if len(keys) <= x.ndim and all(axis_of_positions(x, k) == 0 for k in keys):
        return x, list(keys), [*range(len(keys))], 0
    items = [_item(k, x) for k in keys]
    x, items, dots = _completed(x, items)
    plain = [slice(None) if isinstance(item, Array) else item for item in items]
    kept = [item for item in items if not isinstance(item, int)]
    taken = [k for k, item in enumerate(kept) if isinstance(item, Array)]
    advanced = [k for k, item in enumerate(items) if isinstance(item, (int, Array))]
    is_run = advanced == list(range(advanced[0], advanced[-1] + 1))
    is_run &= not advanced[0] < dots <= advanced[-1]  # '...' separates them, also if it is empty
    return x[tuple(plain)], [kept[k] for k in taken], taken, advanced[0] if is_run else 0


def _in_front(part: Array, taken: list[int]) -> Array:
    """Return a view whose first dimensions are the indexed ones."""
    if taken == [*range(len(taken))]:
        return part
    return permute_dims(part, (*taken, *(k for k in range(part.ndim) if k not in taken)))


def _has_numbers(items: Any) -> bool:
    return any(not isinstance(x, (list, tuple)) or _has_numbers(x) for x in items)


def _item(item: Any, x: Array) -> Any:
    """Return an item of a key: masks and positions, except for one element, as arrays."""
    if isinstance(item, (bool, np.bool_, list, tuple, np.ndarray)) or hasattr(item, "__dlpack__"):
        # NumPy reports floats
        is_empty = isinstance(item, (list, tuple)) and not _has_numbers(item)
        item = asarray(item, dtype="int64" if is_empty else None, device=x.device)
    if isinstance(item, Array) and kind_of(item.dtype) not in ("bool", "int", "uint"):
        raise IndexError(f"cuplug.Array: got an index of dtype {item.dtype}, expected integers")
    if item is None or item is ... or isinstance(item, (slice, Array)):
        return item
    if not hasattr(item, "__index__"):
        seen = type(item).__name__
        raise IndexError(f"cuplug.Array: got an index of type {seen}, expected integers")
    return index(item)


def _is_mask(item: Any) -> bool:
    return isinstance(item, Array) and kind_of(item.dtype) == "bool"


def _n_named(item: Any) -> int:
    """Return the number of dimensions that an item of a key indexes."""
    return item.ndim if _is_mask(item) else int(item is not None and item is not Ellipsis)


def _completed(x: Array, items: list[Any]) -> tuple[Array, list[Any], int]:
    """Return a key for all dimensions, with positions instead of masks.

    Returns the array, with a dimension added for each mask without dimensions, the key, and the
    number of the item before which '...' was.
    """
    n = sum(map(_n_named, items))
    if n > x.ndim:
        raise IndexError(f"cuplug.Array: got {n} indices, expected at most {x.ndim}")
    dots = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("cuplug.Array: got several '...' in a key, expected one")
    place = dots[0] if dots else len(items)
    rest = [slice(None)] * (x.ndim - n)
    result: list[Any] = []
    at = 0
    for item in items[:place]:
        x, at = _add_item(result, item, x, at)
    first = len(result)
    result += rest
    at += len(rest)
    for item in items[place + 1 :]:
        x, at = _add_item(result, item, x, at)
    return x, result, first


def _add_item(items: list[Any], item: Any, x: Array, at: int) -> tuple[Array, int]:
    """Add the dimensions of an item; return the array, and the dimension after it."""
    behind = at + _n_named(item)
    if not _is_mask(item):
        items.append(item)
        return x, behind
    if not item.ndim:
        items.append(arange(int(bool(item)), device=x.device))
        return expand_dims(x, axis=at), at + 1
    shape = x.shape[at:behind]
    # 0: indexes no dimension
    if any(n not in (0, size) for n, size in zip(item.shape, shape, strict=True)):
        raise IndexError(f"cuplug.Array: got a mask of shape {item.shape}, expected {shape}")
    items += nonzero(item)
    return x, behind


def _spread_together(positions: list[Array]) -> list[Array]:
    try:
        return [*broadcast_arrays(*positions)]
    except ValueError:
        seen = ", ".join(str(k.shape) for k in positions)
        wanted = "such that can be broadcast together"
        raise IndexError(f"cuplug.Array: got indices of shapes {seen}, expected {wanted}") from None


def _alike(positions: list[Array]) -> list[Array]:
    """Return positions in one dtype and one shape, as operators require."""
    dtype, shape = positions[0].dtype, positions[0].shape
    if dtype not in _PLACES or any(k.dtype != dtype for k in positions):
        positions = [astype(_signed(k), "int64", copy=False) for k in positions]
    return positions if all(k.shape == shape for k in positions) else _spread_together(positions)


def _signed(k: Array) -> Array:
    """Return positions in int64. Those that it cannot represent stay out of range."""
    return binary("minimum", k, (1 << 63) - 1) if k.dtype == np.uint64 else k


def take_at(x: Array, key: Any) -> Array:
    """Return the elements that a key with arrays selects, as a copy."""
    found: Array
    if is_mask_of(x, key):
        found = stock("indexing.select")(x, key)
        return found
    along = axis_of_positions(x, key)
    if along is not None:
        positions, gather = key[along] if isinstance(key, tuple) else key, stock("gather.gather")
        found = gather(x, positions, axis=along) if along else gather(x, positions)
        return found
    if isinstance(key, tuple) and are_along_first(x, key):
        found = stock("indexing.index")(x, key)
        return found
    part, arrays, taken, front = _parted(x, key)
    if taken == [front]:
        found = stock("gather.gather")(part, arrays[0], axis=front)
        return found
    arrays = _alike(arrays)
    found = stock("indexing.index")(_in_front(part, taken), arrays)
    n = arrays[0].ndim
    if not front:
        return found
    others = [*range(n, found.ndim)]
    return permute_dims(found, [*others[:front], *range(n), *others[front:]])


def _spread(mask: Array, values: Any) -> Any:
    """Return values for each element where a mask is true, as an argument of `where`."""
    if not isinstance(values, Array) or not values.ndim:
        return values
    values = broadcast_to(values, (int(count_nonzero(mask)),))
    return stock("indexing.select_backward")(values, mask)


@cache
def _masked(dtype: str) -> Operator:
    text = f"assign(inout x: {dtype}, mask: bool, value: {dtype})"
    return elementwise(text, "x = mask ? value : x")


def _of_shape(x: Array, value: Array, shape: tuple[int, ...]) -> Array:
    """Return values in C order, in memory that is not the array's."""
    is_whole = value.shape == shape and is_in_order(value) and not may_meet(x, value)
    return value if is_whole else copied(broadcast_to(value, shape))


def put_converted(x: Array, key: Any, value: Any) -> None:
    """Write to the elements that a key selects, if no operator accepts its arrays unchanged."""
    if isinstance(value, np.generic):
        put_at(x, key, as_elements(x, value))
    else:
        _put(x, key, as_elements(x, value))


def _put(x: Array, key: Any, value: Any) -> None:
    if is_mask_of(x, key):
        key = copied(key) if may_meet(x, key) else key
        value = _spread(key, value)
        if isinstance(value, Array):
            assign(x, where(key, value, x))
        else:
            _masked(name_of(x.dtype))(x, key, value)
        return
    part, arrays, taken, front = _parted(x, key)
    rows, arrays = _in_front(part, taken), _alike(arrays)
    arrays = [copied(k) if may_meet(x, k) else k for k in arrays]
    rest, own = rows.shape[len(arrays) :], arrays[0].shape
    if isinstance(value, Array):
        values = _of_shape(x, value, (*rest[:front], *own, *rest[front:]))
        turned = _in_front(values, [*range(front, front + len(own))])
    else:
        turned = single_like(x, value)
    target = rows if is_in_order(rows) else copied(rows)
    stock("indexing.index_put")(target, arrays, turned)
    if target is not rows:
        assign(rows, target)
