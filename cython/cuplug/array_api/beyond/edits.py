# SPDX-License-Identifier: Apache-2.0
"""Parts of arrays removed, inserted and overwritten."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug.array_api.beyond.comparisons import flatnonzero
from cuplug.array_api.beyond.host_values import on_the_host
from cuplug.array_api.beyond.numpy_attributes import put, repeated
from cuplug.array_api.beyond.shaping import diag, split
from cuplug.array_api.concatenation import concat, stack
from cuplug.array_api.conversion import asarray, gpu_in
from cuplug.array_api.creation import arange, elements_of
from cuplug.array_api.dtypes import astype, checked
from cuplug.array_api.filled import zeros
from cuplug.array_api.indexing import take
from cuplug.array_api.manipulation import moveaxis
from cuplug.array_api.sorting import where
from cuplug.array_api.statistical import any as is_any
from cuplug.array_api.views import axes_of, axis_of, broadcast_to, permute_dims, reshape, shape_of


def _line(name: str, x: Any, axis: int | None) -> tuple[Array, int]:
    """Return an array and a dimension. Without `axis`, it is flattened to one dimension."""
    found = checked(name, "x", x)
    return (reshape(found, (-1,)), 0) if axis is None else (found, axis_of(name, axis, x.ndim))


def _positions(name: str, obj: Any, n: int) -> Any:
    """Return a slice, or positions and masks as a NumPy array."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(n))
    found = on_the_host(f"{name}: obj", obj, "real numbers")
    if found.size and found.dtype.kind not in "biu":
        raise IndexError(f"{name}: obj: got {found.dtype}, expected integers or bools")
    return found if found.size else found.astype(np.int64)


def delete(x: Array, /, obj: Any, axis: int | None = None) -> Array:
    """Return an array without the parts at positions along a dimension.

    Examples
    --------
    >>> print(xp.delete(xp.asarray([10, 20, 30]), 1))
    [10 30]
    """
    x, along = _line("delete", x, axis)
    n = x.shape[along]
    kept = np.delete(np.arange(n), _positions("delete", obj, n))
    return take(x, asarray(kept, device=x.device), axis=along)


def insert(x: Array, /, obj: Any, values: Any, axis: int | None = None) -> Array:
    """Return an array with additional parts, each before a position along a dimension.

    Examples
    --------
    >>> print(xp.insert(xp.asarray([10, 30]), 1, 20))
    [10 20 30]
    """
    x, along = _line("insert", x, axis)
    n = x.shape[along]
    at = _positions("insert", obj, n)
    given = elements_of(x, values)
    given = reshape(given, (*(1,) * (x.ndim - given.ndim), *given.shape))
    if not at.ndim:
        given = moveaxis(given, 0, along)
    # NumPy determines the source of each part: a part of x or, from n on, an inserted one.
    if at.dtype.kind == "b":
        at = np.flatnonzero(at)
    count = given.shape[along] if at.size == 1 else at.size
    order = np.insert(np.arange(n), at, np.arange(n, n + count))
    shape = (*x.shape[:along], count, *x.shape[along + 1 :])
    both = concat([x, broadcast_to(given, shape)], axis=along)
    return take(both, asarray(order, device=x.device), axis=along)


def resize(x: Array, /, new_shape: Any) -> Array:
    """Return the elements in C order in a new shape. If they are too few, they repeat.

    Examples
    --------
    >>> print(xp.resize(xp.asarray([1, 2, 3]), (2, 2)))
    [[1 2]
     [3 1]]
    """
    shape = shape_of("resize: new_shape", new_shape)
    if any(n < 0 for n in shape):
        raise ValueError(f"resize: new_shape: got {shape}, expected no number below 0")
    size = int(np.prod(shape, dtype=np.int64))
    if not checked("resize", "x", x).size or not size:
        return zeros(shape, dtype=x.dtype, device=x.device)
    return reshape(repeated(x, size), shape).copy()


def trim_zeros(x: Array, /, trim: str = "fb", axis: Any = None) -> Array:
    """Return a view without the zeros at the front ("f") and the back ("b"); waits for a GPU.

    Examples
    --------
    >>> print(xp.trim_zeros(xp.asarray([0, 1, 0, 2, 0])))
    [1 0 2]
    """
    sides = str(trim).lower()
    if sides not in ("f", "b", "fb", "bf"):
        raise ValueError(f'trim_zeros: trim: got {trim!r}, expected "f", "b" or "fb"')
    key = [slice(None)] * checked("trim_zeros", "x", x).ndim
    for along in axes_of("trim_zeros", axis, x.ndim):
        others = tuple(k for k in range(x.ndim) if k != along)
        places = flatnonzero(is_any(x, axis=others) if others else x)
        if not places.size:
            key[along] = slice(0, 0)
            continue
        first, last = int(places[0]), int(places[-1])
        key[along] = slice(first if "f" in sides else None, last + 1 if "b" in sides else None)
    found: Array = x[tuple(key)]
    return found


def rollaxis(x: Array, /, axis: int, start: int = 0) -> Array:
    """Return a view with a dimension moved before another one; `moveaxis` is easier to read.

    Examples
    --------
    >>> xp.rollaxis(xp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    n = checked("rollaxis", "x", x).ndim
    axis = axis_of("rollaxis", axis, n)
    start = axis_of("rollaxis", start + n if start < 0 else start, n + 1)
    return moveaxis(x, axis, start - (axis < start))


def hsplit(x: Array, /, indices_or_sections: Any) -> list[Array]:
    """Return `split` along the second dimension, or the only one.

    Examples
    --------
    >>> print(*xp.hsplit(xp.asarray([1, 2, 3, 4]), 2))
    [1 2] [3 4]
    """
    return split(_at_least("hsplit", x, 1), indices_or_sections, axis=int(x.ndim > 1))


def vsplit(x: Array, /, indices_or_sections: Any) -> list[Array]:
    """Return `split` along the first of at least two dimensions.

    Examples
    --------
    >>> print(*xp.vsplit(xp.asarray([[1, 2], [3, 4]]), 2))
    [[1 2]] [[3 4]]
    """
    return split(_at_least("vsplit", x, 2), indices_or_sections, axis=0)


def dsplit(x: Array, /, indices_or_sections: Any) -> list[Array]:
    """Return `split` along the third dimension.

    Examples
    --------
    >>> [x.shape for x in xp.dsplit(xp.ones((2, 3, 4)), 2)]
    [(2, 3, 2), (2, 3, 2)]
    """
    return split(_at_least("dsplit", x, 3), indices_or_sections, axis=2)


def _at_least(name: str, x: Any, least: int) -> Array:
    if checked(name, "x", x).ndim < least:
        raise ValueError(f"{name}: x: got {x.ndim} dimensions, expected at least {least}")
    found: Array = x
    return found


# ---- Elements chosen by masks and positions ------------------------------------------------------


def extract(condition: Any, x: Array, /) -> Array:
    """Return the elements at which a condition holds, in C order; waits for a GPU.

    Examples
    --------
    >>> print(xp.extract([True, False, True], xp.asarray([1, 2, 3])))
    [1 3]
    """
    chosen = asarray(condition, device=checked("extract", "x", x).device)
    return take(reshape(x, (-1,)), flatnonzero(chosen))


def place(x: Array, /, mask: Any, vals: Any) -> None:
    """Write values where a mask is true. If they are too few, they repeat.

    Examples
    --------
    >>> x = xp.asarray([1, 2, 3])
    >>> xp.place(x, x > 1, [7, 8])
    >>> print(x)
    [1 7 8]
    """
    chosen = asarray(mask, device=checked("place", "x", x).device)
    if chosen.size != x.size:
        raise ValueError(f"place: mask: got shape {chosen.shape}, expected {x.shape} (as x)")
    places, given = flatnonzero(chosen), elements_of(x, vals)
    if places.size and not given.size:
        raise ValueError("place: vals: got none, expected at least one")
    put(x, places, given)


def putmask(x: Array, /, mask: Any, values: Any) -> None:
    """Write, where a mask is true, the values at the same positions.

    If there are fewer values than elements, they repeat.

    Examples
    --------
    >>> x = xp.asarray([1, 2, 3])
    >>> xp.putmask(x, x > 1, [10, 20, 30])
    >>> print(x)
    [ 1 20 30]
    """
    dtype = checked("putmask", "x", x).dtype
    kind = getattr(values, "dtype", dtype) if getattr(values, "ndim", 0) else dtype
    if not np.can_cast(kind, dtype):
        raise TypeError(f"putmask: values: got {kind}, expected a dtype that {dtype} can hold")
    given = elements_of(x, values)
    if not given.size:
        return
    chosen = astype(asarray(mask, device=x.device), "bool", copy=False)
    if chosen.size != x.size:
        raise ValueError(f"putmask: mask: got shape {chosen.shape}, expected {x.shape} (as x)")
    given = reshape(repeated(given, x.size), x.shape)
    x[...] = where(reshape(chosen, x.shape), given, x)


def put_along_axis(x: Array, /, indices: Array, values: Any, axis: int | None = -1) -> None:
    """Write values at positions along a dimension, as `take_along_axis` reads them.

    Examples
    --------
    >>> x = xp.zeros((2, 2))
    >>> xp.put_along_axis(x, xp.asarray([[1], [0]]), 5, axis=1)
    >>> print(x)
    [[0. 5.]
     [5. 0.]]
    """
    places = checked("put_along_axis", "indices", indices)
    if axis is None:
        if places.ndim != 1:
            raise ValueError(
                f"put_along_axis: indices: got {places.ndim} dimensions, expected 1 (without axis)"
            )
        put(x, places, values)
        return
    along = axis_of("put_along_axis", axis, checked("put_along_axis", "x", x).ndim)
    if places.ndim != x.ndim:
        raise ValueError(
            f"put_along_axis: indices: got {places.ndim} dimensions, expected {x.ndim} (as x)"
        )
    key = [
        reshape(arange(n, device=x.device), [-1 if at == k else 1 for at in np.arange(x.ndim)])
        for k, n in enumerate(x.shape)
    ]
    key[along] = places
    x[tuple(key)] = values


def fill_diagonal(x: Array, /, val: Any, wrap: bool = False) -> None:
    """Write values to the main diagonal; with `wrap`, again below the end of a tall matrix.

    Examples
    --------
    >>> x = xp.zeros((2, 2))
    >>> xp.fill_diagonal(x, 5)
    >>> print(x)
    [[5. 0.]
     [0. 5.]]
    """
    if checked("fill_diagonal", "x", x).ndim < 2:
        raise ValueError(f"fill_diagonal: x: got {x.ndim} dimensions, expected at least 2")
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise ValueError(f"fill_diagonal: x: got shape {x.shape}, expected equal sizes")
    step = 1 + int(np.cumprod((1, *x.shape[:0:-1]))[1:].sum())
    end = x.shape[1] ** 2 if x.ndim == 2 and not wrap else x.size
    put(x, arange(0, min(end, x.size), step, device=x.device), val)


def diagflat(x: Array, /, k: int = 0) -> Array:
    """Return a matrix with the elements, in C order, on a diagonal.

    Examples
    --------
    >>> print(xp.diagflat(xp.asarray([[1], [2]])))
    [[1 0]
     [0 2]]
    """
    return diag(reshape(checked("diagflat", "x", x), (-1,)), k)


class vectorize:
    """A function of single numbers as one of arrays, which is called for each element.

    It is NumPy's, for arrays in host memory. `cuplug.fuse` compiles functions of arrays, also for
    GPUs.

    Parameters
    ----------
    pyfunc : callable
    otypes, doc, excluded, cache, signature
        As for `numpy.vectorize`.

    Examples
    --------
    >>> from cuplug import array_api as xp
    >>> x = xp.asarray([3, 4], device="cpu")
    >>> xp.vectorize(lambda a, b: max(a, b))(x, 3.5)
    Array([3.5, 4. ], dtype=float64, device='cpu')
    """

    def __init__(self, pyfunc: Any, *args: Any, **keywords: Any) -> None:
        if not callable(pyfunc):
            raise TypeError(f"vectorize: pyfunc: got {pyfunc!r:.60}, expected a function")
        self.pyfunc, self._by_numpy = pyfunc, np.vectorize(pyfunc, *args, **keywords)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if gpu_in([*args, *keywords.values()], 1) is not None:
            raise TypeError("vectorize: got an array in GPU memory, expected host memory; use fuse")
        own, named = (
            [x.numpy() if isinstance(x, Array) else x for x in given]
            for given in (args, keywords.values())
        )
        found = self._by_numpy(*own, **dict(zip(keywords, named, strict=True)))
        if isinstance(found, tuple):
            return tuple(asarray(x, device="cpu") for x in found)
        return asarray(found, device="cpu")


def apply_along_axis(func1d: Any, axis: int, x: Array, /, *args: Any, **keywords: Any) -> Array:
    """Return the results of a function for each line along a dimension, called once for each.

    Examples
    --------
    >>> print(xp.apply_along_axis(xp.sum, 1, xp.asarray([[1, 2], [3, 4]])))
    [3 7]
    """
    along = axis_of("apply_along_axis", axis, checked("apply_along_axis", "x", x).ndim)
    lines = moveaxis(x, along, -1)
    loop = lines.shape[:-1]
    if not np.prod(loop, dtype=np.int64):
        raise ValueError(f"apply_along_axis: x: got shape {x.shape}, expected lines")
    results = [func1d(lines[at], *args, **keywords) for at in np.ndindex(*loop)]
    found = stack([y if isinstance(y, Array) else asarray(y, device=x.device) for y in results])
    found = reshape(found, (*loop, *found.shape[1:]))
    n = found.ndim - len(loop)
    order = (*range(along), *range(len(loop), len(loop) + n), *range(along, len(loop)))
    return permute_dims(found, order)
