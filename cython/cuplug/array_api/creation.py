# SPDX-License-Identifier: Apache-2.0
"""New arrays."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from cuplug.arguments.to_array import to_array
from cuplug.array.array import Array, may_meet
from cuplug.array.make import empty
from cuplug.array_api.dtypes import (
    DEFAULTS,
    astype,
    checked,
    flag,
    integer,
    kind_of,
    name_of,
    result_type,
    to_dtype,
)
from cuplug.array_api.elementwise import NUMBERS, plain_number, unary
from cuplug.array_api.filled import copied, zeros
from cuplug.array_api.joins import stack
from cuplug.base.dtypes import DTYPES
from cuplug.base.public import public
from cuplug.call.operator import Operator
from cuplug.source.element_wise import elementwise

MAX_NDIM = 64  # of arrays


@public
def asarray(x: Any, /, dtype: Any = None, device: Any = None, *, copy: bool | None = None) -> Array:
    """Make an `Array` of an array of any library, of numbers, or of lists of them.

    Parameters
    ----------
    x : array_like
        Of the host: anything that numpy.asarray takes, structures for kernels, too; elements of the
        other byte order are converted to the machine's. On a GPU, of any library: its memory is
        shared, and kept. In lists: cuplug's own on GPUs, too.
    dtype : str or numpy.dtype, optional
        What elements are converted to.
    device : str, int or device, optional
        "cpu", "cuda", "cuda:1". Without it that of an `Array`, or of an array on a GPU; for others
        as for `empty`.
    copy : bool, optional
        True: always; False: never, which is a ValueError where it cannot be. Without it memory
        of the same device is shared.

    Returns
    -------
    Array

    Raises
    ------
    TypeError, ValueError
        Elements that no operator takes, a device that is none, a read-only array on a GPU, one of
        another library on another GPU.
    MemoryError, CudaError
        As for `empty`.
    """
    if dtype is None and copy is None:
        is_own = isinstance(x, Array) and device is None
        return x if is_own else _read(x, None, device, None)
    copy = None if copy is None else flag("asarray: copy", copy)
    if isinstance(x, Array):
        result = x if device is None else to_array(x, None, device, copy)
    else:
        is_converted_here = _may_be_out_of_range(x, dtype)
        result = _read(x, None if is_converted_here else dtype, device, copy)
    wanted = result.dtype if dtype is None else to_dtype(dtype, "asarray")
    if wanted == result.dtype and not (copy and result is x):
        return result
    if wanted == result.dtype and not wanted.names:
        return copied(result)
    if wanted == result.dtype:  # no operator copies structures
        return to_array(result.numpy(), None, result.device, None)
    if copy is False:
        raise ValueError(f"asarray: copy: seen False, but {result.dtype} has to become {wanted}")
    return astype(result, wanted)


def _read(x: Any, dtype: Any, device: Any, copy: bool | None) -> Array:
    try:
        return to_array(x, dtype, device, copy)
    except TypeError:
        gpu = None if copy is False else _gpu_in(x, MAX_NDIM)
        if gpu is None:
            raise
        return _stacked(x, gpu if device is None else device)


def _gpu_in(x: Any, depth: int) -> Any:
    """Return the GPU of the first array on one in lists nested so deeply; None: there is none."""
    if isinstance(x, (list, tuple)):
        return next(filter(None, (_gpu_in(part, depth - 1) for part in x if depth)), None)
    return x.device if isinstance(x, Array) and x.device.type == "cuda" else None


def _stacked(x: Any, device: Any) -> Array:
    """Return nested lists with arrays on GPUs as one array, which NumPy cannot make."""
    if not isinstance(x, (list, tuple)):
        return asarray(x, device=device)
    return stack([_stacked(part, device) for part in x])


def _may_be_out_of_range(x: Any, dtype: Any) -> bool:
    """Say whether floats become integers, for which NumPy makes anything of large ones."""
    if dtype is None or not isinstance(x, (np.ndarray, np.generic)):
        return False
    own, wanted = (DTYPES.get(y.name) for y in (x.dtype, to_dtype(dtype, "asarray")))
    return bool(own and wanted and own.kind == "float" and wanted.kind in ("int", "uint"))


@cache
def _assigning(dtype: str) -> Operator:
    return elementwise(f"assign(inout x: {dtype}, value: {dtype})", "x = value")


def assign(x: Array, value: Any) -> None:
    """Write a number or an array, which is broadcast, to all of an array."""
    value = as_elements(x, value)
    if isinstance(value, Array) and may_meet(x, value):
        value = copied(value)
    _assigning(name_of(x.dtype))(x, value)


def assigning(dtype: Any, given: Any) -> Operator | None:
    """Return what writes arrays of a dtype, or numbers of a type; None: they are converted."""
    is_array = isinstance(given, np.dtype)  # which equal Python's types
    is_plain = given == dtype if is_array else given is DTYPES[name_of(dtype)].scalar
    return _assigning(name_of(dtype)) if is_plain else None


def as_elements(x: Array, value: Any) -> Any:
    """Return what is written to elements of an array as a number or an array of its dtype."""
    value = plain_number(value)
    if isinstance(value, NUMBERS):
        return _number(x.dtype, value)
    if not isinstance(value, Array) or value.device != x.device:
        value = asarray(value, device=x.device)
    return value if value.dtype == x.dtype else astype(value, x.dtype)


def _number(dtype: Any, value: Any) -> Any:
    if isinstance(value, complex) and kind_of(dtype) != "complex":
        raise TypeError(f"assign: value: seen {value}, wanted a real number for {dtype}")
    try:
        return DTYPES[name_of(dtype)].scalar(value)
    except (OverflowError, ValueError):
        seen = value if isinstance(value, float) else "an integer beyond 64 bits"
        wanted = f"a value in the range of {dtype}"
        raise ValueError(f"assign: value: seen {seen}, wanted {wanted}") from None


def _given(value: Any, default: Any) -> Any:
    return default if value is None else value


@cache
def _numbering(of: Any) -> Operator | None:
    """Return what counts in a dtype; None where others count for it."""
    dtype = name_of(of)
    if kind_of(of) == "complex" or dtype in ("float16", "bfloat16"):
        return None
    text = f"arange(inout x: {dtype}[...], start: {dtype}, step: {dtype})"
    return elementwise(text, f"x = start + ({DTYPES[dtype].computed})i * step")


def _is_finite(x: Any) -> bool:
    is_integer = isinstance(x, (int, np.integer))
    return is_integer or (isinstance(x, (float, np.floating)) and math.isfinite(x))


def _n_steps(start: Any, stop: Any, step: Any, is_whole: bool) -> int:
    if is_whole or all(isinstance(x, (int, np.integer)) for x in (start, stop, step)):
        return max(-((int(start) - int(stop)) // int(step)), 0)
    try:
        return max(math.ceil((stop - start) / step), 0)
    except OverflowError:
        raise ValueError("arange: seen more than 2**63 numbers, wanted fewer") from None


def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Array:
    """Return numbers from `start` to before `stop`, at equal distances."""
    start, stop = (0, start) if stop is None else (start, stop)
    given = (start, stop, step)
    is_whole = type(start) is type(stop) is type(step) is int
    if not is_whole and not all(map(_is_finite, given)):
        raise ValueError(f"arange: seen start, stop and step {given}, wanted finite numbers")
    if step == 0:
        raise ValueError("arange: step: seen 0, wanted another number")
    if dtype is None:
        wanted = to_dtype(int) if is_whole else result_type(*[to_dtype(type(x)) for x in given])
    else:
        wanted = to_dtype(dtype)
    n = _n_steps(*given, is_whole)
    counting = _numbering(wanted)
    if counting is None:
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
    is_complex = isinstance(start, complex) or isinstance(stop, complex)
    by_default = DEFAULTS["complex floating" if is_complex else "real floating"]
    wanted = to_dtype(_given(dtype, by_default))
    name = "complex128" if kind_of(wanted) == "complex" else "float64"
    result = empty(num, name, device)
    _spacing(name)(
        result, start, stop, num - flag("linspace: endpoint", endpoint) if num > 1 else num
    )
    if kind_of(wanted) in ("int", "uint"):
        result = unary("floor", result)  # as NumPy rounds them
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
    """Return a matrix of ones on diagonal k, and zeros."""
    rows = integer("eye: n_rows", n_rows)
    columns = rows if n_cols is None else integer("eye: n_cols", n_cols)
    k = integer("eye: k", k)
    if rows < 0 or columns < 0:
        raise ValueError(f"eye: seen {rows} rows and {columns} columns, wanted at least 0")
    result: Array = zeros((rows, columns), dtype=dtype, device=device)
    n = min(rows, columns - k) if k >= 0 else min(rows + k, columns)
    if n > 0:
        first = k if k >= 0 else -k * columns
        result.reshape(-1)[first :: columns + 1][:n] = 1
    return result


@cache
def _triangle(name: str, relation: str, dtype: str) -> Operator:
    text = f"{name}(x: {dtype}, row: int64, column: int64, k: int) -> {dtype}"
    return elementwise(text, f"column - row {relation} k ? x : 0")


def tril(x: Array, /, *, k: int = 0) -> Array:
    """Return matrices with zeros above diagonal k."""
    return _triangle_of("tril", "<=", x, k)


def triu(x: Array, /, *, k: int = 0) -> Array:
    """Return matrices with zeros below diagonal k."""
    return _triangle_of("triu", ">=", x, k)


def _triangle_of(name: str, relation: str, x: Array, k: int) -> Array:
    if checked(name, "x", x).ndim < 2:
        raise ValueError(f"{name}: x: seen {x.ndim} dimensions, wanted at least 2")
    if not x.size:
        return copied(x)
    rows, columns = (arange(n, device=x.device) for n in x.shape[-2:])
    result: Array = _triangle(name, relation, name_of(x.dtype))(x, rows[:, None], columns, k)
    return result


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Return an array of another library as an `Array`, where it is, without a copy."""
    where = device
    if where is None and hasattr(x, "__dlpack_device__"):
        where = "cpu" if x.__dlpack_device__()[0] in (1, 3) else None
    return asarray(x, device=where, copy=copy)
