# SPDX-License-Identifier: Apache-2.0
"""Data types: their names, promotion, conversions."""

from __future__ import annotations

from functools import cache, partial
from operator import index
from typing import Any, NamedTuple

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import (
    NUMBERS,
    kind_of,
    name_of,
    not_computed,
    promoted,
    to_dtype,
    with_number,
)
from cuplug._engine.base.dtypes import DTYPES
from cuplug.array_api.functions import ArrayFunction

__all__ = [
    "astype",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
    "result_type",
]

NAMES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)
# For `isdtype`, and for the tables of functions: the kinds of <cuplug/plugin.h>.
KINDS = {
    "bool": {"bool"},
    "signed integer": {"int"},
    "unsigned integer": {"uint"},
    "integral": {"int", "uint"},
    "real floating": {"float"},
    "complex floating": {"complex"},
    "numeric": {"int", "uint", "float", "complex"},
}


def checked(name: str, argument: str, x: Any) -> Any:
    """Return an argument that must be an Array."""
    if not isinstance(x, Array):
        wanted = "a cuplug.Array; use cuplug.asarray"
        raise TypeError(f"{name}: {argument}: got {type(x).__name__}, expected {wanted}")
    return x


def checked_order(name: str, x: Any, argument: str = "x") -> Any:
    """Return an argument that must be an Array of real numbers."""
    if kind_of(checked(name, argument, x).dtype) == "complex":
        what = f"{name}: {argument}"
        raise TypeError(f"{what}: got {x.dtype}, expected real numbers; use real, imag or abs")
    return x


def integer(what: str, value: Any) -> int:
    """Return an argument that must be an integer."""
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return value
    try:
        is_axis = what.endswith((": axis", ": axes"))
        if isinstance(value, np.bool_) or (type(value) is bool and is_axis):
            raise TypeError("NumPy rejects it, too; NumPy 1 only warns of its own bools")
        number = index(value)
    except TypeError:
        raise TypeError(f"{what}: got {value!r:.60}, expected an integer") from None
    if number.bit_length() > 128:  # Python may not write to it
        raise ValueError(f"{what}: got an integer beyond 128 bits, expected a smaller one")
    return number


def flag(what: str, value: Any) -> bool:
    """Return an argument that must be true or false."""
    try:
        return bool(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what}: got {type(value).__name__}, expected True or False") from None


def sequence(what: str, value: Any, wanted: str) -> tuple[Any, ...]:
    """Return the items of an argument, which must not be empty."""
    try:
        return tuple(value)
    except TypeError:
        raise TypeError(f"{what}: got {type(value).__name__}, expected {wanted}") from None


def _is_python_number(x: Any) -> bool:
    return isinstance(x, NUMBERS) and not isinstance(x, np.generic)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """Return the dtype to which arrays, dtypes and numbers are promoted.

    Examples
    --------
    >>> xp.result_type(xp.int32, xp.float32)
    dtype('float64')
    """
    numbers = [x for x in arrays_and_dtypes if _is_python_number(x)]
    dtypes = [
        x.dtype if isinstance(x, (Array, np.generic, np.ndarray)) else to_dtype(x)
        for x in arrays_and_dtypes
        if not _is_python_number(x)
    ]
    if not dtypes:
        raise ValueError("result_type: got no array and no dtype, expected one")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promoted(result, dtype)
    for number in numbers:
        result = with_number(result, number)
    return result


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether a dtype, or an array's dtype, is promoted to another one.

    Examples
    --------
    >>> xp.can_cast(xp.int32, xp.float32), xp.can_cast(xp.int32, xp.int64)
    (False, True)
    """
    dtype, wanted = from_.dtype if isinstance(from_, Array) else to_dtype(from_), to_dtype(to)
    try:
        return bool(promoted(dtype, wanted) == wanted)
    except TypeError:
        return False


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype is another one, or of a kind such as "real floating", or of several.

    Examples
    --------
    >>> xp.isdtype(xp.float32, "real floating")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, x) for x in kind)
    if isinstance(kind, str) and kind in KINDS:
        return kind_of(to_dtype(dtype)) in KINDS[kind]
    if isinstance(kind, str) and kind not in DTYPES:
        raise ValueError(f"isdtype: kind: got {kind!r}, expected a dtype or {', '.join(KINDS)}")
    return bool(to_dtype(dtype) == to_dtype(kind))


class FloatInfo(NamedTuple):
    """The result of `finfo`."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


class IntegerInfo(NamedTuple):
    """The result of `iinfo`."""

    bits: int
    max: int
    min: int
    dtype: Any


def finfo(type: Any, /) -> FloatInfo:
    """Return the limits of a floating dtype, or of an array's dtype.

    Examples
    --------
    >>> xp.finfo(xp.float32).bits
    32
    """
    import ml_dtypes

    dtype = type.dtype if isinstance(type, Array) else to_dtype(type, "finfo")
    known = DTYPES.get(name_of(dtype), DTYPES["bool"])
    if known.kind not in ("float", "complex", "storage") or known.n_packed > 1:
        raise ValueError(f"finfo: type: got {dtype}, expected a floating dtype")
    dtype = np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype
    x = ml_dtypes.finfo(dtype)
    eps, most, least, smallest = (float(y) for y in (x.eps, x.max, x.min, x.smallest_normal))
    return FloatInfo(int(x.bits), eps, most, least, smallest, dtype)


def iinfo(type: Any, /) -> IntegerInfo:
    """Return the limits of an integer dtype, or of an array's dtype.

    Examples
    --------
    >>> xp.iinfo(xp.int8).max
    127
    """
    dtype = type.dtype if isinstance(type, Array) else to_dtype(type, "iinfo")
    if dtype.kind not in "iu":
        raise ValueError(f"iinfo: type: got {dtype}, expected an integer dtype")
    x = np.iinfo(dtype)
    return IntegerInfo(int(x.bits), int(x.max), int(x.min), dtype)


@cache
def _converting(from_: Any, to: Any) -> Any:
    from cuplug._source.expressions.element_wise import (
        elementwise,  # takes longer than `asarray`
    )

    if name_of(to) not in DTYPES:
        raise TypeError(f"astype: dtype: got {to}, expected one of numbers")
    for dtype in (from_, to):
        if kind_of(dtype) == "storage":
            raise not_computed("astype", name_of(dtype))
    if kind_of(to) != "complex" == kind_of(from_):
        raise TypeError(f"astype: got {from_}, expected real numbers for {to}; see real()")
    is_number = kind_of(from_) == "bool" != kind_of(to)  # for vectors, whose bools are masks
    text = "x ? 1 : 0" if is_number else "x"
    return elementwise(f"astype(x: {name_of(from_)}[...]) -> {name_of(to)}[...]", text)


@cache
def conversion(from_: Any, to: Any) -> Any:
    """Return the operator that converts elements of one dtype to another."""
    converting = _converting(from_, to)
    return converting if from_ == to else ArrayFunction(converting, lambda _: converting)


def _direct_conversion(from_: Any, dtype: Any) -> Any:
    to = to_dtype(dtype)
    return None if from_ == to else _converting(from_, to)


@partial(ArrayFunction, convert=_direct_conversion)
def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """Convert elements. Values outside of an integer's range become its limits.

    Examples
    --------
    >>> print(xp.astype(xp.asarray([1.7, -1.7, 300.0]), xp.int8))
    [  1  -1 127]
    """
    checked("astype", "x", x)
    wanted = to_dtype(dtype, "astype")
    result = x if device is None else x.to_device(device)
    if result.dtype == wanted:
        is_copied = copy is True or flag("astype: copy", copy)
        return result.copy() if is_copied else result
    converted: Array = conversion(result.dtype, wanted)(result)
    return converted


def in_dtype(x: Array, dtype: Any) -> Array:
    """Return an array, converted if its dtype differs."""
    return x if x.dtype is dtype or x.dtype == dtype else astype(x, dtype)
