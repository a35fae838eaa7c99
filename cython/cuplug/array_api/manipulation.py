# SPDX-License-Identifier: Apache-2.0
"""Arrays split, moved and broadcast."""

from __future__ import annotations

from typing import Any

from cuplug._engine.array.array import Array
from cuplug.array_api.dtypes import checked, sequence
from cuplug.array_api.filled import copied
from cuplug.array_api.views import (
    axes_of,
    axis_of,
    broadcast_to,
    permute_dims,
    reshape,
    shape_of,
)

Shape = tuple[int, ...]


def _sequence(name: str, arrays: Any) -> list[Array]:
    given = sequence(f"{name}: arrays", arrays, "a sequence of cuplug.Array")
    return [checked(name, "arrays", x) for x in given]


def moveaxis(x: Array, source: Any, destination: Any, /) -> Array:
    """Return a view with dimensions moved to other positions.

    Examples
    --------
    >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    checked("moveaxis", "x", x)
    from_, to = (axes_of("moveaxis", axes, x.ndim) for axes in (source, destination))
    if len(from_) != len(to):
        raise ValueError(f"moveaxis: got {len(to)} destinations, expected {len(from_)}, as sources")
    order = [k for k in range(x.ndim) if k not in from_]
    for at, k in sorted(zip(to, from_, strict=True)):
        order.insert(at, k)
    return permute_dims(x, order)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Return the shape to which shapes are broadcast.

    Examples
    --------
    >>> xp.broadcast_shapes((3, 1), (2,))
    (3, 2)
    """
    given = [shape_of("broadcast_shapes: shapes", shape) for shape in shapes]
    ndim = max(map(len, given), default=0)
    result = [1] * ndim
    for shape in given:
        for k, n in enumerate(shape, ndim - len(shape)):
            if n != 1 and result[k] not in (1, n):
                raise ValueError(
                    f"broadcast_shapes: got shapes {', '.join(map(str, given))}, expected equal "
                    "sizes or 1 (they could not be broadcast together)"
                )
            result[k] = n if n != 1 else result[k]
    return tuple(result)


def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """Return views in the shape to which arrays are broadcast.

    Examples
    --------
    >>> [x.shape for x in xp.broadcast_arrays(xp.ones((3, 1)), xp.ones(2))]
    [(3, 2), (3, 2)]
    """
    shape = broadcast_shapes(*(checked("broadcast_arrays", "arrays", x).shape for x in arrays))
    return tuple(broadcast_to(x, shape) for x in arrays)


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the parts along a dimension, as views.

    Examples
    --------
    >>> print(*xp.unstack(xp.asarray([[1, 2], [3, 4]])))
    [1 2] [3 4]
    """
    checked("unstack", "x", x)
    return tuple(moveaxis(x, axis_of("unstack", axis, x.ndim), 0))


def meshgrid(*arrays: Array, indexing: str = "xy") -> tuple[Array, ...]:
    """Return the coordinates of a grid, from those along each dimension.

    Examples
    --------
    >>> for x in xp.meshgrid(xp.arange(2), xp.arange(2)):
    ...     print(x)
    [[0 1]
     [0 1]]
    [[0 0]
     [1 1]]
    """
    if not isinstance(indexing, str) or indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing: got {indexing!r}, expected 'xy' or 'ij'")
    n = len(_sequence("meshgrid", arrays))
    order = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    spread = [
        reshape(x, [-1 if k == at else 1 for k in range(n)])
        for x, at in zip(arrays, order, strict=True)
    ]
    return tuple(copied(x) for x in broadcast_arrays(*spread))
