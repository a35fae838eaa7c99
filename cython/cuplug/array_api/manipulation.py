# SPDX-License-Identifier: Apache-2.0
"""The same elements in other shapes: views where that is possible."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

from cuplug.array.array import Array, permuted, reshaped, view
from cuplug.array.make import empty
from cuplug.array_api.creation import assign, copy
from cuplug.array_api.dtypes import checked, integer, result_type, sequence

Shape = tuple[int, ...]


def steps_of(x: Array) -> Shape:
    """Return the strides in elements."""
    return tuple(stride // x.dtype.itemsize for stride in x.strides)


def axis_of(name: str, axis: Any, ndim: int) -> int:
    """Return an axis counted from 0."""
    k = integer(f"{name}: axis", axis)
    if not -ndim <= k < ndim:
        raise IndexError(f"{name}: axis: seen {k}, wanted one of {ndim} dimensions")
    return k % ndim


def axes_of(name: str, axes: Any, ndim: int) -> Shape:
    """Return axes counted from 0, none twice; all of them for None."""
    if axes is None:
        return tuple(range(ndim))
    if isinstance(axes, int):
        return (axis_of(name, axes, ndim),)
    given = axes if isinstance(axes, (tuple, list, range)) else (axes,)
    found = tuple(axis_of(name, axis, ndim) for axis in given)
    if len(set(found)) != len(found):
        raise ValueError(f"{name}: axis: seen one twice in {axes}")
    return found


def shape_of(what: str, shape: Any) -> Shape:
    """Return an argument that must be an integer or several."""
    try:
        sizes = tuple(map(index, shape if isinstance(shape, Iterable) else (shape,)))
    except TypeError:
        wanted = "an integer or a sequence of them"
        raise TypeError(f"{what}: seen {shape!r:.60}, wanted {wanted}") from None
    return tuple(integer(what, n) for n in sizes)


def _sequence(name: str, arrays: Any) -> list[Array]:
    given = sequence(f"{name}: arrays", arrays, "a sequence of cuplug.Array")
    return [checked(name, "arrays", x) for x in given]


def permute_dims(x: Array, /, axes: Sequence[int]) -> Array:
    """Return a view with the dimensions in another order."""
    checked("permute_dims", "x", x)
    order = axes_of("permute_dims", shape_of("permute_dims: axes", axes), x.ndim)
    if len(order) != x.ndim:
        raise ValueError(f"permute_dims: axes: seen {axes}, wanted all of {x.ndim} dimensions")
    return permuted(x, order)


def matrix_transpose(x: Array, /) -> Array:
    """Return a view with the last two dimensions exchanged."""
    checked("matrix_transpose", "x", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: x: seen {x.ndim} dimensions, wanted at least 2")
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def moveaxis(x: Array, source: Any, destination: Any, /) -> Array:
    """Return a view with some dimensions elsewhere."""
    checked("moveaxis", "x", x)
    from_, to = (axes_of("moveaxis", axes, x.ndim) for axes in (source, destination))
    if len(from_) != len(to):
        raise ValueError(f"moveaxis: seen {len(to)} destinations, wanted {len(from_)}, as sources")
    order = [k for k in range(x.ndim) if k not in from_]
    for at, k in sorted(zip(to, from_, strict=True)):
        order.insert(at, k)
    return permute_dims(x, order)


def reshape(x: Array, /, shape: Any, *, copy: bool | None = None) -> Array:
    """Return the elements in C order in another shape: a view unless that cannot be."""
    checked("reshape", "x", x)
    wanted = _completed(x, shape_of("reshape: shape", shape))
    whole = None if copy else reshaped(x, wanted)
    if whole is not None:
        return whole
    steps = None if copy else _reshaped_steps(x, wanted)
    if steps is not None:
        return view(x, wanted, steps)
    if copy is False:
        raise ValueError("reshape: copy: seen False, but such a shape has no strides")
    made: Array = view(_copied(x), wanted, _contiguous_steps(wanted))
    return made


_copied = copy


def _completed(x: Array, shape: Shape) -> Shape:
    if min(shape, default=0) >= 0 and math.prod(shape) == x.size:
        return shape
    known = math.prod(n for n in shape if n >= 0)
    n_open = sum(n < 0 for n in shape)
    if n_open == 1 and min(shape) == -1 and known and not x.size % known:
        shape = tuple(x.size // known if n < 0 else n for n in shape)
    if min(shape, default=0) < 0 or math.prod(shape) != x.size:
        raise ValueError(f"reshape: shape: seen {shape}, wanted {x.size} elements as in {x.shape}")
    return shape


def _contiguous_steps(shape: Shape) -> Shape:
    steps, step = [], 1
    for n in reversed(shape):
        steps.append(step)
        step *= max(n, 1)
    return tuple(reversed(steps))


def _reshaped_steps(x: Array, shape: Shape) -> Shape | None:
    """Return the steps of a view of another shape; None where there is none."""
    if not x.size:
        return _contiguous_steps(shape)
    old = [(n, s) for n, s in zip(x.shape, steps_of(x), strict=True) if n != 1]
    runs: list[list[int]] = []  # dimensions that follow each other without a gap: size, step
    for n, s in old:
        if runs and runs[-1][1] == n * s:
            runs[-1] = [runs[-1][0] * n, s]
        else:
            runs.append([n, s])
    steps: list[int] = []
    size, step = runs.pop() if runs else (1, 1)
    left = size
    for n in reversed(shape):
        if left == 1 and n != 1:
            if not runs:
                return None
            left, step = runs.pop()
        if left % n:
            return None
        steps.append(step)
        step, left = step * n, left // n
    return tuple(reversed(steps))


def expand_dims(x: Array, /, axis: int = 0) -> Array:
    """Return a view with a dimension of size 1 more."""
    checked("expand_dims", "x", x)
    at = axis_of("expand_dims", axis, x.ndim + 1)
    return x[(*((slice(None),) * at), None)]


def squeeze(x: Array, /, axis: Any) -> Array:
    """Return a view without dimensions of size 1."""
    checked("squeeze", "x", x)
    gone = axes_of("squeeze", axis, x.ndim)
    if long := [k for k in gone if x.shape[k] != 1]:
        raise ValueError(f"squeeze: axis: seen {long[0]} of size {x.shape[long[0]]}, wanted 1")
    return x[tuple(0 if k in gone else slice(None) for k in range(x.ndim))]


def flip(x: Array, /, *, axis: Any = None) -> Array:
    """Return a view with elements along dimensions in reverse."""
    checked("flip", "x", x)
    turned = axes_of("flip", axis, x.ndim)
    return x[tuple(slice(None, None, -1 if k in turned else 1) for k in range(x.ndim))]


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Return the shape that shapes are broadcast to."""
    given = [shape_of("broadcast_shapes: shapes", shape) for shape in shapes]
    ndim = max(map(len, given), default=0)
    result = [1] * ndim
    for shape in given:
        for k, n in enumerate(shape, ndim - len(shape)):
            if n != 1 and result[k] not in (1, n):
                raise ValueError(f"broadcast_shapes: seen {shapes}, which do not fit")
            result[k] = n if n != 1 else result[k]
    return tuple(result)


def broadcast_to(x: Array, /, shape: Shape) -> Array:
    """Return a view of another shape, which repeats elements."""
    checked("broadcast_to", "x", x)
    wanted = shape_of("broadcast_to: shape", shape)
    if broadcast_shapes(x.shape, wanted) != wanted:
        raise ValueError(f"broadcast_to: shape: seen {wanted}, which {x.shape} does not fit")
    more = len(wanted) - x.ndim
    own = [0 if n == 1 else step for n, step in zip(x.shape, steps_of(x), strict=True)]
    return view(x, wanted, (0,) * more + tuple(own))


def broadcast_arrays(*arrays: Array) -> list[Array]:
    """Return views of the shape that arrays are broadcast to."""
    shape = broadcast_shapes(*(checked("broadcast_arrays", "arrays", x).shape for x in arrays))
    return [broadcast_to(x, shape) for x in arrays]


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    """Return arrays one behind the other along a dimension; with None, all elements."""
    arrays = _sequence("concat", arrays)
    if not arrays:
        raise ValueError("concat: arrays: seen none, wanted at least one")
    if axis is None:
        return concat([reshape(x, (-1,)) for x in arrays], axis=0)
    first = arrays[0]
    along = axis_of("concat", axis, first.ndim)

    def rest(x: Array) -> Shape:
        return (*x.shape[:along], *x.shape[along + 1 :])

    if wrong := [x.shape for x in arrays if x.ndim != first.ndim or rest(x) != rest(first)]:
        raise ValueError(f"concat: arrays: seen shapes {first.shape} and {wrong[0]}, which differ")
    n = sum(x.shape[along] for x in arrays)
    shape = (*first.shape[:along], n, *first.shape[along + 1 :])
    result, at = empty(shape, result_type(*arrays), first.device), 0
    for x in arrays:
        own = slice(at, at + x.shape[along])
        assign(result[(*((slice(None),) * along), own) if along else own], x)
        at += x.shape[along]
    return result


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    """Return arrays beside each other along a new dimension."""
    return concat([expand_dims(x, axis=axis) for x in _sequence("stack", arrays)], axis=axis)


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the parts along a dimension, as views."""
    checked("unstack", "x", x)
    return tuple(moveaxis(x, axis_of("unstack", axis, x.ndim), 0))


def roll(x: Array, /, shift: Any, *, axis: Any = None) -> Array:
    """Return elements moved along dimensions; what leaves at one end comes in at the other."""
    checked("roll", "x", x)
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), shift, axis=0), x.shape)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: shift: seen {len(shifts)} numbers, wanted {len(axes)}, as axes")
    for by, axis in zip(shifts, axes, strict=True):
        k = axis_of("roll", axis, x.ndim)
        at = -integer("roll: shift", by) % x.shape[k] if x.shape[k] else 0
        before = (slice(None),) * k
        x = concat([x[(*before, slice(at, None))], x[(*before, slice(None, at))]], axis=k)
    return copy(x)


def tile(x: Array, repetitions: Shape, /) -> Array:
    """Return an array repeated along each dimension."""
    checked("tile", "x", x)
    given = shape_of("tile: repetitions", repetitions)
    if not all(0 <= n < 1 << 63 for n in given):
        raise ValueError(f"tile: repetitions: seen {given!s:.60}, wanted 0 to 2**63 - 1")
    more = max(len(given) - x.ndim, 0)
    times = (1,) * (x.ndim - len(given)) + given
    shape = (1,) * more + x.shape
    pairs = [n for pair in zip(times, shape, strict=True) for n in pair]
    spread = copy(broadcast_to(reshape(x, [n for s in shape for n in (1, s)]), tuple(pairs)))
    return reshape(spread, tuple(t * s for t, s in zip(times, shape, strict=True)))


def meshgrid(*arrays: Array, indexing: str = "xy") -> list[Array]:
    """Return the coordinates of a grid, of those along each dimension."""
    if not isinstance(indexing, str) or indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing: seen {indexing!r}, wanted 'xy' or 'ij'")
    n = len(_sequence("meshgrid", arrays))
    order = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    spread = [
        reshape(x, [-1 if k == at else 1 for k in range(n)])
        for x, at in zip(arrays, order, strict=True)
    ]
    return [copy(x) for x in broadcast_arrays(*spread)]
