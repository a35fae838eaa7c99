# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions that create arrays, called with a cuplug array as `like=`.

The results are on the device of `near`. The other parameters are as in NumPy's functions.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug.array_api import conversion
from cuplug.array_api.views import shape_of

standard = import_module("cuplug.array_api")


def array(
    near: Any,
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
) -> Array:
    """Return a new array of the elements of an object, with `ndmin` dimensions or more."""
    is_lent = not isinstance(object, (list, tuple, bool, int, float, complex))
    x = conversion.asarray(object, dtype, near, copy=None if copy else copy)
    flag = {"C": "c_contiguous", "F": "f_contiguous"}.get(_checked(order))
    is_other = flag is not None and not x.flags[flag]
    if is_other and copy is False:
        raise ValueError(f"array: copy: got False, expected None or True (for order {order!r})")
    if is_other or (copy and is_lent and (x is object or x.base is not None)):
        x = x.copy(order)
    found: Array = x[(None,) * (ndmin - x.ndim)] if x.ndim < ndmin else x
    return found


def _checked(order: Any) -> Any:
    wanted = order.upper() if isinstance(order, str) else order
    if wanted not in ("C", "F", "A", "K", None):
        raise ValueError(f"order: got {order!r:.60}, expected 'C', 'F', 'A' or 'K'")
    return wanted


def asarray(
    near: Any,
    a: Any,
    dtype: Any = None,
    order: Any = "K",
    *,
    device: Any = None,
    copy: Any = None,
) -> Array:
    """Return an object's elements as an array; an array is returned unchanged."""
    return array(near if device is None else device, a, dtype, copy=copy, order=order)


asanyarray = asarray


def ascontiguousarray(near: Any, a: Any, dtype: Any = None) -> Array:
    """Return elements in C order, with one dimension or more."""
    return array(near, a, dtype, copy=None, order="C", ndmin=1)


def asfortranarray(near: Any, a: Any, dtype: Any = None) -> Array:
    """Return elements in Fortran order, with one dimension or more."""
    return array(near, a, dtype, copy=None, order="F", ndmin=1)


def require(near: Any, a: Any, dtype: Any = None, requirements: Any = None) -> Array:
    """Return an array with the required flags: "C", "F" and "O" (its own memory) matter."""
    given = [requirements] if isinstance(requirements, str) else requirements or []
    wanted = {_REQUIRED.get(str(x).upper(), x) for x in given}
    if not wanted <= {*_REQUIRED.values()}:
        raise KeyError(f"require: requirements: got {given}, expected some of {[*_REQUIRED]}")
    if {"C", "F"} <= wanted:
        raise ValueError("require: requirements: got C and F order, expected one of them")
    order = next((x for x in ("C", "F") if x in wanted), "A")
    x = array(near, a, dtype, copy=None, order=order)
    return x.copy(order) if "O" in wanted and x.base is not None else x


_REQUIRED = {"C_CONTIGUOUS": "C", "F_CONTIGUOUS": "F", "OWNDATA": "O", "ALIGNED": "A"}
_REQUIRED |= {"WRITEABLE": "W", "ENSUREARRAY": "E", "CONTIGUOUS": "C", "FORTRAN": "F"}
_REQUIRED |= {name: name for name in "CFOAWE"}


def arange(
    near: Any,
    start: Any = 0,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    *,
    device: Any = None,
) -> Array:
    """Return numbers with equal distances."""
    where, step = near if device is None else device, 1 if step is None else step
    made = standard.arange(start, stop, step, dtype=dtype, device=where)
    return made  # type: ignore[no-any-return]


def _new(
    name: str,
    near: Any,
    shape: Any,
    *given: Any,
    dtype: Any = None,
    order: Any = "C",
    device: Any = None,
) -> Array:
    """Return a new array; for order "F", its dimensions are in reverse order in memory."""
    values, given = (given[:1], given[1:]) if name == "full" else ((), given)
    dtype, order = (*given, *(dtype, order)[len(given) :])
    is_reversed = _checked(order) == "F"
    sizes = shape_of(f"{name}: shape", shape)
    made = getattr(standard, name)(
        sizes[::-1] if is_reversed else sizes,
        *values,
        dtype=dtype,
        device=near if device is None else device,
    )
    return made.transpose() if is_reversed else made  # type: ignore[no-any-return]


empty, full, ones, zeros = (partial(_new, name) for name in ("empty", "full", "ones", "zeros"))


def eye(
    near: Any,
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = float,
    order: Any = "C",
    *,
    device: Any = None,
) -> Array:
    """Return a matrix of zeros with ones on a diagonal."""
    made = standard.eye(N, M, k=k, dtype=dtype, device=near if device is None else device)
    return made.copy("F") if _checked(order) == "F" else made  # type: ignore[no-any-return]


def identity(near: Any, n: int, dtype: Any = None) -> Array:
    """Return a square matrix of zeros with ones on the diagonal."""
    return eye(near, n, dtype=float if dtype is None else dtype)


def tri(near: Any, N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Array:
    """Return a matrix of ones on and below a diagonal."""
    made = standard.tri(N, M, k, dtype, device=near)
    return made  # type: ignore[no-any-return]


def fromfunction(
    near: Any, function: Any, shape: Any, *, dtype: Any = float, **keywords: Any
) -> Any:
    """Return the result of a function for the indices of all elements of a shape."""
    return function(*standard.indices(shape, dtype, device=near), **keywords)


def _read(name: str, near: Any, *args: Any, **keywords: Any) -> Array:
    """Return an array that NumPy reads from files, strings and iterators."""
    return conversion.asarray(getattr(np, name)(*args, **keywords), device=near)


_READING = ("frombuffer", "fromfile", "fromiter", "fromstring", "genfromtxt", "loadtxt")
MADE: dict[str, Any] = {name: partial(_read, name) for name in _READING}
MADE |= {"arange": arange, "array": array, "asanyarray": asarray, "asarray": asarray}
MADE |= {"ascontiguousarray": ascontiguousarray, "asfortranarray": asfortranarray}
MADE |= {"empty": empty, "eye": eye, "fromfunction": fromfunction, "full": full}
MADE |= {"identity": identity, "ones": ones, "require": require, "tri": tri, "zeros": zeros}
