# SPDX-License-Identifier: Apache-2.0
"""New arrays, and the properties of the library."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array, may_meet
from cuplug._engine.array.make import empty
from cuplug._engine.array.promotion import (
    DEFAULTS,
    NUMBERS,
    is_typed_number,
    kind_of,
    name_of,
    to_dtype,
)
from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.call.operator import Operator
from cuplug._engine.cuda.devices import devices
from cuplug._engine.cuda.placement import HOST
from cuplug._source.expressions.element_wise import elementwise
from cuplug.array_api.conversion import asarray
from cuplug.array_api.dtypes import NAMES, astype, checked, flag, integer, isdtype, result_type
from cuplug.array_api.elementwise import number_of, unary
from cuplug.array_api.filled import as_bytes, copied, zeros
from cuplug.array_api.functions import stock


@cache
def _assigning(dtype: str) -> Operator:
    return elementwise(f"assign(inout x: {dtype}, value: {dtype})", "x = value")


def assign(x: Array, value: Any) -> None:
    """Write a number or an array, which is broadcast, to all elements of an array."""
    value = as_elements(x, value)
    if isinstance(value, Array):
        more = max(value.ndim - x.ndim, 0)
        if more and value.shape[:more] == (1,) * more:  # NumPy omits it
            value = value.reshape(value.shape[more:])
        if may_meet(x, value):
            value = copied(value)
    if kind_of(x.dtype) == "storage":
        x, value = as_bytes(x), as_bytes(value)
    _assigning(name_of(x.dtype))(x, value)


def assigning(dtype: Any, given: Any) -> Operator | None:
    """Return the operator that writes such arrays, or numbers; None if they are converted."""
    if kind_of(dtype) == "storage":
        return None
    is_array = isinstance(given, np.dtype)  # these equal Python's types
    is_plain = given == dtype if is_array else given is DTYPES[name_of(dtype)].scalar
    return _assigning(name_of(dtype)) if is_plain else None


def as_elements(x: Array, value: Any) -> Any:
    """Return a value to write to elements, as a number or an array of their dtype."""
    if isinstance(value, (*NUMBERS, np.generic)):
        return _number(x.dtype, value)
    if not isinstance(value, Array) or value.device != x.device:
        is_checked = isinstance(value, (list, tuple)) and kind_of(x.dtype) in ("int", "uint")
        value = asarray(value, x.dtype if is_checked else None, x.device)
    return value if value.dtype == x.dtype else astype(value, x.dtype)


def elements_of(x: Array, value: Any) -> Array:
    """Return a value to write to elements, as an array."""
    found = as_elements(x, value)
    return found if isinstance(found, Array) else asarray(found, x.dtype, x.device)


def _number(dtype: Any, value: Any) -> Any:
    """Return a number of a dtype; for integers it has to be in the range, as in NumPy."""
    if kind_of(dtype) == "storage":
        raise TypeError(f"assign: value: got {value}, expected an array of {name_of(dtype)}")
    if isinstance(value, (complex, np.complexfloating)) and kind_of(dtype) != "complex":
        raise TypeError(f"assign: value: got {value}, expected a real number for {dtype}")
    if kind_of(dtype) not in ("int", "uint"):
        return number_of("assign", value, dtype)
    try:
        return int(value)
    except (OverflowError, ValueError):
        wanted = f"a value in the range of {dtype}"
        raise ValueError(f"assign: value: got {value}, expected {wanted}") from None


def _given(value: Any, default: Any) -> Any:
    return default if value is None else value


@cache
def _numbering(of: Any) -> Operator | None:
    """Return the operator that counts in a dtype; None if another dtype replaces it."""
    dtype = name_of(of)
    if kind_of(of) == "complex" or dtype in ("float16", "bfloat16"):
        return None
    text = f"arange(inout x: {dtype}[...], start: {dtype}, step: {dtype})"
    return elementwise(text, f"x = start + ({DTYPES[dtype].computed})i * step")


def _bound(name: str, x: Any) -> Any:
    """Return a number of Python; arrays without dimensions and NumPy's numbers are converted."""
    if isinstance(x, (Array, np.ndarray)) and x.ndim:
        raise TypeError(f"{name}: got an array of shape {x.shape}, expected a number")
    return x.item() if isinstance(x, Array) or is_typed_number(x) else x


def _is_finite(x: Any) -> bool:
    is_integer = isinstance(x, (int, np.integer))
    return is_integer or (isinstance(x, (float, np.floating)) and math.isfinite(x))


def _n_steps(start: Any, stop: Any, step: Any, is_whole: bool) -> int:
    if is_whole:
        n: int = -((start - stop) // step)
        return n if n > 0 else 0
    if all(isinstance(x, (int, np.integer)) for x in (start, stop, step)):
        return _n_steps(int(start), int(stop), int(step), True)
    try:
        return max(math.ceil((stop - start) / step), 0)
    except OverflowError:
        raise ValueError("arange: got more than 2**63 numbers, expected fewer") from None


def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Array:
    """Return numbers from `start` to before `stop`, at equal distances.

    Examples
    --------
    >>> print(xp.arange(2, 10, 3))
    [2 5 8]
    """
    start, stop = (0, start) if stop is None else (start, stop)
    start, stop, step = (_bound("arange", x) for x in (start, stop, step))
    given = (start, stop, step)
    is_whole = type(start) is type(stop) is type(step) is int
    if not is_whole and not all(map(_is_finite, given)):
        raise ValueError(f"arange: got start, stop and step {given}, expected finite numbers")
    if step == 0:
        raise ValueError("arange: step: got 0, expected another number")
    if dtype is None:
        wanted = to_dtype(int) if is_whole else result_type(*[to_dtype(type(x)) for x in given])
    else:
        wanted = to_dtype(dtype)
    n = _n_steps(*given, is_whole)
    counting = _numbering(wanted)
    if kind_of(wanted) == "bool" and n > 2:
        raise TypeError(f"arange: dtype: got bool for {n} numbers, expected at most 2")
    if counting is None or kind_of(wanted) == "bool":
        return astype(arange(start, stop, step, dtype="float64", device=device), wanted)
    result = empty(n, wanted, device)
    if n:
        counting(result, start, step)
    return result


@cache
def _spacing(dtype: str) -> Operator:
    text = f"linspace(inout x: {dtype}[...], a: {dtype}, b: {dtype}, parts: int)"
    return elementwise(text, "x = i == parts ? b : a + i * ((b - a) / (parts > 0 ? parts : 1))")


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Array:
    """Return `num` numbers from `start` to `stop`, at equal distances."""
    num = integer("linspace: num", num)
    start, stop = _bound("linspace", start), _bound("linspace", stop)
    is_complex = isinstance(start, complex) or isinstance(stop, complex)
    by_default = DEFAULTS["complex floating" if is_complex else "real floating"]
    wanted = to_dtype(_given(dtype, by_default))
    name = "complex128" if kind_of(wanted) == "complex" else "float64"
    result = empty(num, name, device)
    _spacing(name)(
        result, start, stop, num - flag("linspace: endpoint", endpoint) if num > 1 else num
    )
    if kind_of(wanted) in ("int", "uint"):
        result = unary("floor", result)  # NumPy rounds them in this way
    return result if result.dtype == wanted else astype(result, wanted)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: Any = None,
) -> Array:
    """Return a matrix of ones on diagonal k, and zeros.

    Examples
    --------
    >>> print(xp.eye(2, 3, k=1))
    [[0. 1. 0.]
     [0. 0. 1.]]
    """
    rows = integer("eye: n_rows", n_rows)
    columns = rows if n_cols is None else integer("eye: n_cols", n_cols)
    k = integer("eye: k", k)
    if rows < 0 or columns < 0:
        raise ValueError(f"eye: got {rows} rows and {columns} columns, expected at least 0")
    result: Array = zeros((rows, columns), dtype=dtype, device=device)
    n = min(rows, columns - k) if k >= 0 else min(rows + k, columns)
    if n > 0:
        first = k if k >= 0 else -k * columns
        result.reshape(-1)[first :: columns + 1][:n] = 1
    return result


def tril(x: Array, /, *, k: int = 0) -> Array:
    """Return matrices with zeros above diagonal k.

    Examples
    --------
    >>> print(xp.tril(xp.asarray([[1, 2], [3, 4]])))
    [[1 0]
     [3 4]]
    """
    return _triangle("tril", x, k)


def triu(x: Array, /, *, k: int = 0) -> Array:
    """Return matrices with zeros below diagonal k.

    Examples
    --------
    >>> print(xp.triu(xp.asarray([[1, 2], [3, 4]])))
    [[1 2]
     [0 4]]
    """
    return _triangle("triu", x, k)


def _triangle(name: str, x: Array, k: int) -> Array:
    if checked(name, "x", x).ndim < 2:
        raise ValueError(f"{name}: x: got {x.ndim} dimensions, expected at least 2")
    result: Array = stock(f"indexing.{name}")(x, k)
    return result


# ---- Capabilities -------------------------------------------------------------------------------


class Info:
    """The result of `__array_namespace_info__`."""

    def capabilities(self) -> dict[str, Any]:
        """Return the features that depend on values, and limits."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """Return the default device for new arrays."""
        return empty(0).device

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Return the default dtypes of new arrays."""
        return {kind: np.dtype(name) for kind, name in DEFAULTS.items()}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """Return the dtypes of a kind, by name."""
        every = {name: np.dtype(name) for name in NAMES}
        return {name: x for name, x in every.items() if kind is None or isdtype(x, kind)}

    def devices(self) -> tuple[Any, ...]:
        """Return the host and the GPUs."""
        return HOST, *devices()


def __array_namespace_info__() -> Info:
    """Return the capabilities of the library.

    Examples
    --------
    >>> xp.__array_namespace_info__().capabilities()["boolean indexing"]
    True
    """
    return Info()
