# SPDX-License-Identifier: Apache-2.0
"""Elements by masks and by arrays of positions, read and written."""

from __future__ import annotations

import math
from functools import cache
from operator import index
from typing import Any

import numpy as np

from cuplug.array.array import Array
from cuplug.array_api.creation import arange, asarray, assign, copy
from cuplug.array_api.dtypes import astype, kind_of
from cuplug.array_api.elementwise import NUMBERS, binary
from cuplug.array_api.manipulation import (
    axis_of,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    permute_dims,
    reshape,
)
from cuplug.array_api.searching import nonzero, where
from cuplug.array_api.statistical import max, min
from cuplug.call.operator import Operator
from cuplug.lookup.find import find
from cuplug.source.element_wise import elementwise
from cuplug.source.from_source import operator as operator_of


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """Return elements along a dimension, by their positions."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: axis: seen None, wanted one of {x.ndim} dimensions")
    taken: Array = find("gather")(x, indices, axis=0 if axis is None else index(axis))
    return taken


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Return elements along a dimension, by positions that differ for each of the others."""
    along = axis_of("take_along_axis", axis, x.ndim)
    others = (*x.shape[:along], 1, *x.shape[along + 1 :])
    shape = broadcast_shapes((*indices.shape[:along], 1, *indices.shape[along + 1 :]), others)
    wide = broadcast_to(indices, (*shape[:along], indices.shape[along], *shape[along + 1 :]))
    whole = broadcast_to(x, (*shape[:along], x.shape[along], *shape[along + 1 :]))
    counted = [_counted(n, k, x.ndim, x.device) for k, n in enumerate(wide.shape)]
    counted[along] = wide
    return take_at(whole, tuple(counted))


def _counted(n: int, dimension: int, ndim: int, device: Any) -> Array:
    """Return 0 ... n - 1 along one dimension of several."""
    return reshape(arange(n, device=device), [n if k == dimension else 1 for k in range(ndim)])


# ---- Keys with arrays ----------------------------------------------------------------------------


class _Places:
    """What a key with arrays selects.

    `rows` is a view whose first dimensions, `sizes`, are those that arrays stand for; `positions`
    counts elements of these in C order. In the result those are in place of the first of them, or
    in front where others are between.
    """

    def __init__(self, x: Array, key: Any) -> None:
        items = _completed(x, [_item(k, x) for k in (key if isinstance(key, tuple) else (key,))])
        plain = [slice(None) if isinstance(item, Array) else item for item in items]
        kept = [item for item in items if not isinstance(item, int)]
        taken = [k for k, item in enumerate(kept) if isinstance(item, Array)]
        others = [k for k in range(len(kept)) if k not in taken]
        advanced = [k for k, item in enumerate(items) if isinstance(item, (int, Array))]
        is_run = advanced == list(range(advanced[0], advanced[-1] + 1))
        part = x[tuple(plain)]
        self.front = advanced[0] if is_run else 0
        self.rows = permute_dims(part, (*taken, *others))
        self.sizes = self.rows.shape[: len(taken)]
        arrays = tuple(broadcast_arrays(*(item for item in kept if isinstance(item, Array))))
        self.positions = _numbered(arrays, self.sizes)

    def contiguous_rows(self) -> Array:
        """Return the rows with one first dimension, counted by `positions`."""
        return reshape(self.rows, (math.prod(self.sizes), *self.rows.shape[len(self.sizes) :]))


def _item(item: Any, x: Array) -> Any:
    if isinstance(item, (list, np.ndarray)):
        item = asarray(item, device=x.device)
    if isinstance(item, Array) and kind_of(item.dtype) not in ("bool", "int", "uint"):
        raise IndexError(f"cuplug.Array: seen an index of dtype {item.dtype}, wanted integers")
    is_known = item is None or item is ... or isinstance(item, (slice, Array))
    if not (is_known or hasattr(item, "__index__")):
        raise IndexError(
            f"cuplug.Array: seen an index of type {type(item).__name__}, wanted integers"
        )
    return item


def _completed(x: Array, items: list[Any]) -> list[Any]:
    """Return a key that names all dimensions, with positions in place of masks."""

    def n_named(item: Any) -> int:
        is_mask = isinstance(item, Array) and kind_of(item.dtype) == "bool"
        return item.ndim if is_mask else int(item is not None and item is not Ellipsis)

    n = sum(map(n_named, items))
    if n > x.ndim:
        raise IndexError(f"cuplug.Array: seen {n} indices, wanted at most {x.ndim}")
    dots = [k for k, item in enumerate(items) if item is Ellipsis] or [len(items)]
    rest = [slice(None)] * (x.ndim - n)
    result: list[Any] = []
    at = 0
    for item in [*items[: dots[0]], *rest, *items[dots[0] + 1 :]]:
        shape = x.shape[at : at + n_named(item)]
        at += n_named(item)
        if isinstance(item, Array) and kind_of(item.dtype) == "bool":
            if item.shape != shape:
                raise IndexError(f"cuplug.Array: seen a mask of shape {item.shape}, wanted {shape}")
            result += nonzero(item)
        elif isinstance(item, Array):
            result.append(astype(item, "int64", copy=False))
        else:
            result.append(item if isinstance(item, slice) or item is None else index(item))
    return result


@cache
def _wrapping() -> Operator:
    return elementwise("wrapped(k: int64[...], n: int64) -> int64[...]", "k < 0 ? k + n : k")


def _numbered(positions: tuple[Array, ...], sizes: tuple[int, ...]) -> Array:
    """Return the numbers in C order of positions along several dimensions."""
    result: Array | None = None
    for k, size in zip(positions, sizes, strict=True):
        _check_positions(k, size)
        wrapped = _wrapping()(k, size)
        result = (
            wrapped if result is None else binary("add", binary("multiply", result, size), wrapped)
        )
    assert result is not None
    return result


def _check_positions(k: Array, size: int) -> None:
    if not k.size:
        return
    low, high = int(min(k)), int(max(k))
    if low < -size or high >= size:
        seen = low if low < -size else high
        raise IndexError(f"cuplug.Array: index {seen} is out of bounds for a size of {size}")


def take_at(x: Array, key: Any) -> Array:
    """Return what a key with arrays selects, as a copy."""
    places = _Places(x, key)
    n, positions = len(places.sizes), places.positions
    taken = find("gather")(places.contiguous_rows(), positions)
    others = [*range(positions.ndim, positions.ndim + places.rows.ndim - n)]
    order = [*others[: places.front], *range(positions.ndim), *others[places.front :]]
    return permute_dims(taken, order)


_CUDA = """
template <class T>
__global__ void put(T *x, const long long *index, const T *values, long long n, long long k) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) x[index[i / k] * k + i % k] = values[i];
}
"""
_HOST = """
void put(T *x, const int64_t *index, const T *values, int64_t n, int64_t k) {
  for (int64_t i = 0; i < n; i++) x[index[i / k] * k + i % k] = values[i];
}
"""


@cache
def _putting() -> Operator:
    return operator_of(
        "put(inout x: T[n, k], index: int64[m], values: T[m, k]) where T: any",
        arguments="x, index, values, m * k, k",
        cuda=_CUDA,
        host=_HOST,
        kernel="put<T>",
        threads="m * k",
    )


def put_at(x: Array, key: Any, value: Any) -> None:
    """Write to what a key with arrays selects; of elements named twice, one of the values stays."""
    is_mask = isinstance(key, Array) and kind_of(key.dtype) == "bool" and key.shape == x.shape
    if is_mask and isinstance(value, NUMBERS):
        assign(x, where(key, value, x))
        return
    places = _Places(x, key)
    positions, n = places.positions, len(places.sizes)
    rest = places.rows.shape[n:]
    shape = (*rest[: places.front], *positions.shape, *rest[places.front :])
    if not isinstance(value, (Array, *NUMBERS)):
        value = asarray(value, device=x.device)
    values = copy(broadcast_to(asarray(value, dtype=x.dtype, device=x.device), shape))
    along = range(places.front, places.front + positions.ndim)
    turned = permute_dims(values, (*along, *(k for k in range(len(shape)) if k not in along)))
    rows = copy(places.contiguous_rows())
    flat, size = reshape(rows, (rows.shape[0], -1 if rows.size else 0)), math.prod(rest)
    if positions.size and size:
        _putting()(flat, reshape(positions, (-1,)), reshape(turned, (-1, size)))
    assign(places.rows, reshape(flat, places.rows.shape))
