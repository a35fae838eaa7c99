# SPDX-License-Identifier: Apache-2.0
"""The attributes `flat` and `flags` of arrays; the methods `item` and `put`; positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug.array_api.conversion import asarray
from cuplug.array_api.creation import arange, elements_of
from cuplug.array_api.dtypes import astype, integer
from cuplug.array_api.elementwise import binary, clip
from cuplug.array_api.indexing import take
from cuplug.array_api.views import is_in_order, permute_dims, reshape


class Flat:
    """The elements of an array in C order, to be read, iterated over and assigned."""

    def __init__(self, x: Array) -> None:
        self._x = x

    def __len__(self) -> int:
        return self._x.size

    def __getitem__(self, key: Any) -> Array:
        return reshape(self._x, (-1,))[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        line = reshape(self._x, (-1,))
        if isinstance(value, Array) or np.ndim(value):
            part = line[key]
            value = reshape(repeated(asarray(value, device=line.device), part.size), part.shape)
        line[key] = value
        if not is_in_order(self._x):  # the segment may then be a copy
            self._x[...] = reshape(line, self._x.shape)

    def __iter__(self) -> Iterator[Array]:
        return iter(reshape(self._x, (-1,)))


class Flags:
    """The layout of an array, by attributes and by NumPy's keys."""

    def __init__(self, x: Array, writeable: bool) -> None:
        in_order, in_reverse = is_in_order(x), is_in_order(x.transpose())
        vars(self).update(
            c_contiguous=in_order,
            contiguous=in_order,
            f_contiguous=in_reverse,
            fortran=in_reverse,
            forc=in_order or in_reverse,
            fnc=in_reverse and not in_order,
            owndata=x.base is None,
            writeable=writeable,
            aligned=True,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"flags: {name}: got an assignment, expected none (read-only)")

    def __getitem__(self, key: str) -> bool:
        name = {"C": "c_contiguous", "F": "f_contiguous", "W": "writeable"}.get(key, key.lower())
        if name not in vars(self):
            raise KeyError(f"flags: got {key!r}, expected one of {', '.join(vars(self))}")
        found: bool = vars(self)[name]
        return found

    def __repr__(self) -> str:
        return "\n".join(f"{name.upper()} : {value}" for name, value in vars(self).items())


def memory_order(x: Any, order: Any, ndim: int, name: str) -> list[int]:
    """Return a new array's dimensions from the outermost in memory on, for NumPy's `order`.

    x is an array that "A" and "K" refer to, of cuplug or NumPy.
    """
    wanted = order.upper() if isinstance(order, str) else order
    if wanted not in ("C", "F", "A", "K", None):
        raise ValueError(f"{name}: order: got {order!r:.60}, expected 'C', 'F', 'A' or 'K'")
    is_reversed = x.flags.f_contiguous and not x.flags.c_contiguous
    if wanted == "F" or (wanted == "A" and is_reversed):
        return [*reversed(range(ndim))]
    if wanted in ("C", "A") or x.ndim != ndim or x.flags.c_contiguous:
        return [*range(ndim)]
    return sorted(range(ndim), key=lambda k: -abs(x.strides[k]))


def is_reversed(x: Array, function: str, order: Any) -> bool:
    """Return whether an order is Fortran's; "A" and "K" depend on the order of the elements."""
    if order is None:
        return False
    order = order.upper() if isinstance(order, str) else order
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"{function}: order: got {order!r}, expected 'C', 'F', 'A' or 'K'")
    is_first = bool(x.flags.f_contiguous and not x.flags.c_contiguous)
    return order == "F" or (order != "C" and is_first)


def in_memory_order(x: Array, order: Any) -> Array:
    """Return, for "K", a view whose C order equals the order of the elements in memory."""
    if order not in ("K", "k"):
        return x
    axes = sorted(range(x.ndim), key=lambda k: -abs(x.strides[k]))
    found: Array = permute_dims(x, axes)
    return found


def in_order(x: Array, function: str, order: Any) -> Array:
    """Return an array in an order of its elements in memory, copied if it has another one."""
    wanted = "F" if is_reversed(x, function, order) else "C"
    return x if x.flags[wanted] else x.copy(wanted)


def repeated(values: Array, n: int) -> Array:
    """Return n elements of an array in C order, which repeats at its end."""
    line = reshape(values, (-1,))
    return line if line.size == n else take(line, arange(n, device=line.device) % line.size)


def byteswapped(x: Array, inplace: bool) -> Array:
    """Return elements with their bytes in reverse order; for complex numbers, in each part."""
    n_bytes = x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1)
    parts = reshape(reshape(x.copy(), (-1,)).view("uint8"), (-1, n_bytes))
    turned = reshape(parts[:, ::-1].copy(), (-1,)).view(x.dtype)
    found: Array = reshape(turned, x.shape)
    if inplace:
        x[...] = found
        return x
    return found


def within(name: str, places: Array, n: int, mode: Any) -> Array:
    """Return positions of n elements; `mode` determines those that are out of range.

    With "raise" they are unchanged, and their use raises IndexError.
    """
    mode = mode.lower() if isinstance(mode, str) else mode
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f'{name}: mode: got {mode!r:.60}, expected "raise", "wrap" or "clip"')
    if mode == "raise":
        return places
    if not n:
        raise IndexError(f"{name}: got no elements, expected at least one")
    if mode == "wrap":
        return binary("remainder", astype(places, "int64", copy=False), n)
    clipped: Array = clip(astype(places, "int64", copy=False), 0, n - 1)
    return clipped


def element(x: Array, index: tuple[Any, ...]) -> Array:
    """Return one element, by its number in C order, by its position, or if it is the only one."""
    place = index[0] if len(index) == 1 else index
    if not isinstance(place, tuple):
        number = integer("item: index", place)
        if not -x.size <= number < x.size:
            wanted = f"{-x.size} <= index < {x.size}"
            raise IndexError(f"item: index: got {number}, expected {wanted}")
        place = np.unravel_index(number % x.size, x.shape)
    if not place and x.size == 1:
        return reshape(x, ())
    if len(place) != x.ndim:
        raise ValueError(f"item: got {len(place)} indices for shape {x.shape}, expected {x.ndim}")
    return x[tuple(integer("item: index", k) for k in place)]


def put(x: Array, indices: Any, values: Any, mode: str = "raise") -> None:
    """Write values, repeated if they are too few, at positions in C order."""
    places = within("put", reshape(asarray(indices, device=x.device), (-1,)), x.size, mode)
    given = reshape(elements_of(x, values), (-1,))
    if places.size and given.size:
        Flat(x)[places] = repeated(given, places.size)
