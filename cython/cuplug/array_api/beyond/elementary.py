# SPDX-License-Identifier: Apache-2.0
"""Functions of single elements and of differences between neighbors, beyond the standard."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import kind_of
from cuplug.array_api.beyond.comparisons import unique
from cuplug.array_api.beyond.host_values import number, several
from cuplug.array_api.concatenation import concat
from cuplug.array_api.conversion import asarray
from cuplug.array_api.dtypes import astype, checked, integer, result_type
from cuplug.array_api.elementwise import binary, unary
from cuplug.array_api.filled import full, zeros
from cuplug.array_api.indexing import take, take_along_axis
from cuplug.array_api.manipulation import moveaxis
from cuplug.array_api.scans import cumulative_sum, diff
from cuplug.array_api.sorting import argsort, sort, where
from cuplug.array_api.statistical import all as is_all
from cuplug.array_api.statistical import any as is_any
from cuplug.array_api.statistical import sum
from cuplug.array_api.views import axis_of, reshape


def _real(name: str, x: Any) -> Array:
    """Return an array of floats or complex numbers."""
    found = checked(name, "x", x)
    is_whole = kind_of(found.dtype) in ("bool", "int", "uint")
    return astype(found, "float64") if is_whole else found


def angle(x: Array, /, deg: bool = False) -> Array:
    """Return the angles of complex numbers in the plane, in radians or degrees.

    Examples
    --------
    >>> print(xp.angle(xp.asarray([1.0, 1j]), deg=True))
    [ 0. 90.]
    """
    z = checked("angle", "x", x)
    parts = (z.imag, z.real) if kind_of(z.dtype) == "complex" else (0, z)
    found = np.arctan2(*parts)
    return found * (180 / np.pi) if deg else found


def sinc(x: Array, /) -> Array:
    """Return sin(pi x) / (pi x), which is 1 at 0.

    Examples
    --------
    >>> print(xp.sinc(xp.asarray([0.0, 0.5])))
    [1.         0.63661977]
    """
    x = _real("sinc", x)
    y = np.pi * where(x == 0, 1e-20 if x.dtype.itemsize > 2 else 1e-7, x)
    return binary("divide", unary("sin", y), y)


def fix(x: Array, /) -> Array:
    """Return numbers without their fractions; `trunc` is the standard's name.

    Examples
    --------
    >>> print(xp.fix(xp.asarray([2.7, -2.7])))
    [ 2. -2.]
    """
    is_bool = kind_of(checked("fix", "x", x).dtype) == "bool"
    return x.copy() if is_bool else unary("trunc", x)


def _parts(name: str, x: Any) -> tuple[Array, Array | None]:
    found = checked(name, "x", x)
    return (found.real, found.imag) if kind_of(found.dtype) == "complex" else (found, None)


def iscomplex(x: Array, /) -> Array:
    """Return which elements have an imaginary part that is not 0.

    Examples
    --------
    >>> print(xp.iscomplex(xp.asarray([1.0, 1j])))
    [False  True]
    """
    real, imaginary = _parts("iscomplex", x)
    if imaginary is None:
        return zeros(real.shape, dtype="bool", device=real.device)
    return binary("not_equal", imaginary, 0)


def isreal(x: Array, /) -> Array:
    """Return which elements have no imaginary part, or 0.

    Examples
    --------
    >>> print(xp.isreal(xp.asarray([1.0, 1j])))
    [ True False]
    """
    return unary("logical_not", iscomplex(x))


def isposinf(x: Array, /) -> Array:
    """Return which elements are the positive infinity.

    Examples
    --------
    >>> print(xp.isposinf(xp.asarray([-xp.inf, 0.0, xp.inf])))
    [False False  True]
    """
    return _infinite("isposinf", x) & unary("logical_not", unary("signbit", _real("isposinf", x)))


def isneginf(x: Array, /) -> Array:
    """Return which elements are the negative infinity.

    Examples
    --------
    >>> print(xp.isneginf(xp.asarray([-xp.inf, 0.0, xp.inf])))
    [ True False False]
    """
    return _infinite("isneginf", x) & unary("signbit", _real("isneginf", x))


def _infinite(name: str, x: Any) -> Array:
    if kind_of(checked(name, "x", x).dtype) == "complex":
        raise TypeError(f"{name}: x: got {x.dtype}, expected real numbers")
    return unary("isinf", x)


def real_if_close(x: Array, /, tol: float = 100) -> Array:
    """Return real parts if all imaginary ones are near 0: below `tol` epsilons; waits for a GPU.

    Examples
    --------
    >>> print(xp.real_if_close(xp.asarray([1.0 + 0j, 2.0 + 1e-15j])))
    [1. 2.]
    """
    real, imaginary = _parts("real_if_close", x)
    if imaginary is None:
        return real
    bound = tol * float(np.finfo(x.dtype).eps) if tol > 1 else tol
    return real if bool(is_all(unary("abs", imaginary) < bound)) else x


def unwrap(
    x: Array, /, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi
) -> Array:
    """Return values without jumps above half a period, to which multiples of it are added.

    Examples
    --------
    >>> print(xp.unwrap(xp.asarray([0, 90, 170, -170]), period=360))
    [  0  90 170 190]
    """
    along = axis_of("unwrap", axis, checked("unwrap", "x", x).ndim)
    number("unwrap: period", period)
    steps = diff(x, axis=along)
    dtype = result_type(steps, period)
    jump = number("unwrap: discont", period / 2 if discont is None else discont)
    if kind_of(dtype) in ("int", "uint"):
        half, rest = divmod(period, 2)
        is_between = rest == 0
    else:
        half, is_between = period / 2, True
    low = -half
    wrapped = binary("remainder", steps - low, period) + low
    if is_between:
        wrapped = where((wrapped == low) & (steps > 0), half, wrapped)
    change = where(unary("abs", steps) < jump, 0, wrapped - steps)
    first = take(x, asarray([0], device=x.device), axis=along)
    rest_of = take(x, asarray(np.arange(1, x.shape[along]), device=x.device), axis=along)
    moved = astype(rest_of, dtype) + cumulative_sum(change, axis=along)
    return concat([astype(first, dtype), moved], axis=along)


# ---- Bits ----------------------------------------------------------------------------------------


def packbits(x: Array, /, axis: int | None = None, bitorder: str = "big") -> Array:
    """Return bytes whose bits are 1 where elements are not 0, eight elements in each.

    The first element is the highest bit, or the lowest one with `bitorder` "little".

    Examples
    --------
    >>> print(xp.packbits(xp.asarray([1, 0, 0, 0, 0, 0, 1, 1], dtype=xp.uint8)))
    [131]
    """
    if kind_of(checked("packbits", "x", x).dtype) not in ("bool", "int", "uint"):
        raise TypeError(f"packbits: x: got {x.dtype}, expected integers or bools")
    line, along, weights = _bits("packbits", x, axis, bitorder)
    bits = moveaxis(binary("not_equal", line, 0), along, -1)
    rest = -bits.shape[-1] % 8
    if rest:
        bits = concat(
            [bits, zeros((*bits.shape[:-1], rest), dtype="bool", device=x.device)], axis=-1
        )
    bits = astype(reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8)), "uint8")
    return moveaxis(sum(bits * weights, axis=-1, dtype="uint8"), -1, along)


def unpackbits(
    x: Array, /, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Return the bits of bytes, the highest first or, with `bitorder` "little", the lowest.

    `count` is the number of returned bits: bits after the last byte are 0. If negative, so many
    bits are omitted at the end.

    Examples
    --------
    >>> print(xp.unpackbits(xp.asarray([131], dtype=xp.uint8)))
    [1 0 0 0 0 0 1 1]
    """
    if checked("unpackbits", "x", x).dtype != np.uint8:
        raise TypeError(f"unpackbits: x: got {x.dtype}, expected uint8")
    line, along, weights = _bits("unpackbits", x, axis, bitorder)
    parts = moveaxis(line, along, -1)
    bits = binary("not_equal", parts[..., None] & weights, 0)
    bits = reshape(astype(bits, "uint8"), (*parts.shape[:-1], 8 * parts.shape[-1]))
    n = bits.shape[-1]
    if count is not None:
        wanted = integer("unpackbits: count", count)
        if wanted < -n:
            raise ValueError(f"unpackbits: count: got {wanted}, expected at least {-n}")
        wanted = wanted if wanted >= 0 else n + wanted
        more = zeros((*bits.shape[:-1], max(wanted - n, 0)), dtype="uint8", device=x.device)
        bits = concat([bits[..., :wanted], more], axis=-1)
    return moveaxis(bits, -1, along)


def _bits(name: str, x: Array, axis: int | None, bitorder: str) -> tuple[Array, int, Array]:
    """Return the elements, the dimension of the bits, and the weights of bits in a byte."""
    if bitorder not in ("big", "little"):
        raise ValueError(f'{name}: bitorder: got {bitorder!r:.60}, expected "big" or "little"')
    line = reshape(x, (-1,)) if axis is None else x
    weights = 1 << np.arange(8, dtype=np.uint8)
    given = weights if bitorder == "little" else weights[::-1].copy()
    along = axis_of(name, 0 if axis is None else axis, line.ndim)
    return line, along, asarray(given, device=x.device)


# ---- Order and sets ------------------------------------------------------------------------------


def lexsort(keys: Any, /, axis: int = -1) -> Array:
    """Return the positions that sort by the last key, then by those before it.

    Examples
    --------
    >>> print(xp.lexsort([xp.asarray([1, 0, 2]), xp.asarray([5, 5, 4])]))
    [2 1 0]
    """
    given = several("lexsort: keys", keys)
    if not given:
        raise TypeError("lexsort: keys: got none, expected at least one")
    if not checked("lexsort", "keys", given[0]).ndim:
        return zeros((), dtype="int64", device=given[0].device)
    found = argsort(given[0], axis=axis)
    for key in given[1:]:
        place = argsort(take_along_axis(key, found, axis=axis), axis=axis)
        found = take_along_axis(found, place, axis=axis)
    return found


def setxor1d(x1: Array, x2: Array, /, assume_unique: bool = False) -> Array:
    """Return the elements that are in exactly one of two arrays, sorted.

    Examples
    --------
    >>> print(xp.setxor1d(xp.asarray([1, 2, 3]), xp.asarray([2, 4])))
    [1 3 4]
    """
    own = [reshape(x, (-1,)) if assume_unique else unique(x) for x in (x1, x2)]
    both = sort(concat(own))
    if not both.size:
        return both
    edge = full((1,), True, dtype="bool", device=both.device)
    is_new = concat([edge, binary("not_equal", both[1:], both[:-1]), edge])
    found: Array = both[is_new[1:] & is_new[:-1]]
    return found


def ediff1d(x: Array, /, to_end: Any = None, to_begin: Any = None) -> Array:
    """Return differences of neighbors in C order, between values for the start and the end.

    Examples
    --------
    >>> print(xp.ediff1d(xp.asarray([1, 4, 9]), to_begin=0))
    [0 3 5]
    """
    line = reshape(checked("ediff1d", "x", x), (-1,))
    parts = []
    for name, each in (("to_begin", to_begin), ("", None), ("to_end", to_end)):
        if not name:
            parts.append(diff(line))
        elif each is not None:
            ends = asarray(each, device=x.device)
            if not np.can_cast(ends.dtype, x.dtype, "same_kind"):
                raise TypeError(f"ediff1d: {name}: got {ends.dtype}, expected {x.dtype}")
            parts.append(reshape(astype(ends, x.dtype), (-1,)))
    return concat(parts)


# ---- Positions -----------------------------------------------------------------------------------


def unravel_index(indices: Array, /, shape: Any, order: str | None = "C") -> tuple[Array, ...]:
    """Return positions along each dimension of a shape; waits for a GPU, to check them.

    Examples
    --------
    >>> print(*xp.unravel_index(xp.asarray([2, 3]), (2, 3)))
    [0 1] [2 0]
    """
    places = checked("unravel_index", "indices", indices)
    if kind_of(places.dtype) not in ("int", "uint"):
        raise TypeError(f"unravel_index: indices: got {places.dtype}, expected integers")
    order = "C" if order is None else order
    sizes = _sizes("unravel_index: shape", shape)
    if order not in ("C", "F"):
        raise ValueError(f'unravel_index: order: got {order!r}, expected "C" or "F"')
    n = math.prod(sizes)
    if bool(is_any((places < 0) | (places >= n))):
        raise ValueError(f"unravel_index: got an index beyond {sizes}, expected 0 <= index < {n}")
    found, rest = [], astype(places, "int64")
    for size in sizes if order == "F" else reversed(sizes):
        found.append(binary("remainder", rest, size))
        rest = binary("floor_divide", rest, size)
    return tuple(found if order == "F" else reversed(found))


def _sizes(named: str, shape: Any) -> list[int]:
    """Return the sizes of a shape, whose positions fit in 64 bits."""
    given = [shape] if isinstance(shape, (int, np.integer)) else several(named, shape)
    sizes = [integer(named, size) for size in given]
    if min(sizes, default=0) < 0 or math.prod(sizes) >= 1 << 63:
        raise ValueError(f"{named}: got {sizes}, expected sizes >= 0 with a product below 2**63")
    return sizes


def ravel_multi_index(
    multi_index: Any, /, dims: Any, mode: Any = "raise", order: str | None = "C"
) -> Any:
    """Return positions in C or Fortran order; `mode` is "raise", which waits for a GPU, "wrap" or
    "clip", or one for each dimension.

    Examples
    --------
    >>> print(xp.ravel_multi_index((xp.asarray([0, 1]), xp.asarray([2, 0])), (2, 3)))
    [2 3]
    """
    sizes = _sizes("ravel_multi_index: dims", dims)
    modes = [mode] * len(sizes)
    if not isinstance(mode, str):
        modes = [str(each) for each in several("ravel_multi_index: mode", mode)]
    given = several("ravel_multi_index: multi_index", multi_index)
    if not len(given) == len(sizes) == len(modes):
        raise ValueError(
            f"ravel_multi_index: got {len(given)} positions and {len(modes)} modes, "
            f"expected {len(sizes)} (as dims)"
        )
    order = "C" if order is None else order
    if order not in ("C", "F") or not all(each in ("raise", "wrap", "clip") for each in modes):
        raise ValueError(
            f"ravel_multi_index: got mode {mode!r:.60} and order {order!r:.60}, expected the modes "
            "raise, wrap or clip, and the order C or F"
        )
    total: Any = 0
    step = 1
    pairs = [*zip(given, sizes, modes, strict=True)]
    for places, size, each in pairs if order == "F" else reversed(pairs):
        places = checked("ravel_multi_index", "multi_index", places)
        if kind_of(places.dtype) not in ("bool", "int", "uint"):
            raise TypeError(f"ravel_multi_index: got {places.dtype}, expected integers")
        if each == "raise" and bool(is_any((places < 0) | (places >= size))):
            raise ValueError(
                f"ravel_multi_index: got a position beyond {size}, expected 0 <= position < {size}"
            )
        if each == "wrap":
            places = binary("remainder", places, size)
        elif each == "clip":
            places = where(places < 0, 0, where(places >= size, size - 1, places))
        total = total + astype(places, "int64") * step
        step *= size
    return total
