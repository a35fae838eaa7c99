# SPDX-License-Identifier: Apache-2.0
"""Dtypes from callers, and the common dtype of combined values."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.base.numpy_dtypes import name_of_descr, numpy_dtype

DEFAULTS = {
    "real floating": "float64",
    "complex floating": "complex128",
    "integral": "int64",
    "indexing": "int64",
}
NUMBERS = (bool, int, float, complex)  # Python's, in the order of promotion
_WIDTHS = ("bool", "int", "float", "complex")


@cache
def name_of(dtype: Any) -> str:
    """Return a dtype's name, which NumPy builds at each access."""
    name = name_of_descr(dtype)
    if dtype.names and name not in DTYPES:
        raise TypeError(f"got structures of dtype {dtype}, expected numbers")
    return name


@cache
def kind_of(dtype: Any) -> str:
    """Return "bool", "int", "uint", "float", "complex" or "storage"."""
    if name_of(dtype) not in DTYPES:
        raise TypeError(f"got elements of dtype {dtype}, expected a dtype of cuplug")
    return DTYPES[name_of(dtype)].kind


_named = cache(numpy_dtype)


def to_dtype(dtype: Any, name: str = "cuplug.array_api") -> Any:
    """Return the numpy.dtype that a caller of a function means."""
    if isinstance(dtype, np.dtype):
        return dtype if dtype.isnative else dtype.newbyteorder("=")
    if isinstance(dtype, str) and dtype in DTYPES:
        return _named(dtype)
    if isinstance(dtype, type) and dtype in NUMBERS:
        return _of_python(dtype)
    try:
        if dtype is not None:  # NumPy interprets it as float64
            return np.dtype(dtype).newbyteorder("=")
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name}: dtype: got {dtype!r}, expected a dtype of NumPy or ml_dtypes")


@cache
def _of_python(dtype: type) -> Any:
    names = ("bool", DEFAULTS["integral"], DEFAULTS["real floating"], "complex128")
    return np.dtype(names[NUMBERS.index(dtype)])


@cache
def promoted(a: Any, b: Any) -> Any:
    """Return the dtype of two arrays' combined values.

    Raises
    ------
    TypeError
        If no dtype holds both, as for float16 and bfloat16.
    """
    if a == b:
        return a
    try:
        return np.promote_types(a, b)
    except TypeError:
        raise TypeError(f"cuplug.array_api: {a} and {b} have no common dtype") from None


def not_computed(where: str, dtype: str) -> TypeError:
    """Return the error for elements that are only moved."""
    wanted = "a dtype that is computed with; convert the elements, or view their bytes as uint8"
    return TypeError(f"{where}: got elements of {dtype}, expected {wanted}")


def with_number(dtype: Any, number: Any) -> Any:
    """Return the dtype of an array's values combined with a Python number."""
    kind: Any = type(number)
    return widened(dtype, kind)


@cache
def widened(dtype: Any, number: type) -> Any:
    """Return the dtype of an array's values combined with numbers of a type."""
    rank = next(k for k, x in enumerate(NUMBERS) if issubclass(number, x))
    kind = kind_of(dtype).removeprefix("u")
    if kind not in _WIDTHS:
        raise not_computed("cuplug.array_api", name_of(dtype))
    own = _WIDTHS.index(kind)
    if rank <= own:
        return dtype
    if rank == 3 and own == 2:
        return np.result_type(dtype, np.complex64)
    return to_dtype(NUMBERS[rank])


def is_typed_number(x: Any) -> bool:
    """Return whether a number has a dtype: NumPy's, and NumPy arrays without dimensions."""
    return isinstance(x, np.generic) or (isinstance(x, np.ndarray) and not x.ndim)
