# SPDX-License-Identifier: Apache-2.0
"""Functions of single elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from cuplug.array.array import Array
from cuplug.array_api.dtypes import (
    DEFAULTS,
    astype,
    checked,
    kind_of,
    name_of,
    promoted,
    with_number,
)
from cuplug.array_api.expressions import FUNCTIONS
from cuplug.base.dtypes import DTYPES
from cuplug.call.operator import Operator
from cuplug.source.element_wise import elementwise

NUMBERS = (bool, int, float, complex)
_OF_FLOATS = frozenset(
    name
    for name, x in FUNCTIONS.items()
    if "float" in x.expressions and not {"int", "bool"} & {*x.expressions}
)


# Those of which there is no more to be said than their expressions.
PLAIN = [name for name in FUNCTIONS if name not in ("abs", "complex_abs", "imag", "real")]


@cache
def made(name: str, dtype: str, in_place: bool = False) -> Operator:
    """Return the operator of a function for arguments of a dtype; x is changed, or a new array."""
    function = FUNCTIONS[name]
    kind = DTYPES[dtype].kind if dtype in DTYPES else ""
    if kind not in function.expressions:
        kinds = " or ".join(function.expressions)
        raise TypeError(f"{name}: seen {dtype}, wanted numbers of the kind {kinds}")
    function.check(dtype)
    result = {"real": "float32" if dtype == "complex64" else "float64"}.get(
        function.result, function.result
    )
    expression, preamble = function.expressions[kind], function.preamble(kind)
    parameters = ", ".join(f"{x}: T" for x in "xy"[: function.n])
    if in_place:
        name, parameters = f"{name}_in_place", f"inout {parameters}"
        return elementwise(
            f"{name}({parameters}) where T: {dtype}", f"x = ({expression})", preamble=preamble
        )
    text = f"{name}({parameters}) -> {result} where T: {dtype}"
    return elementwise(text, expression, preamble=preamble)


def unary(name: str, x: Array) -> Array:
    """Call a function of one array."""
    dtype = checked(name, "x", x).dtype
    function = _direct(name, dtype)
    if function is None:
        dtype = _floating(name, dtype)
        x, function = astype(x, dtype), made(name, name_of(dtype))
    result: Array = function(x)
    return result


def binary(name: str, x: Any, y: Any) -> Array:
    """Call a function of two arrays, or of an array and a number."""
    if type(x) is Array and type(y) is Array and x.dtype is y.dtype:
        direct = _direct(name, x.dtype)
        if direct is not None:
            same: Array = direct(x, y)
            return same
    x, y = in_common(name, x, y)
    dtype = name_of((x if isinstance(x, Array) else y).dtype)
    result: Array = made(name, dtype)(x, y)
    return result


@cache
def _direct(name: str, dtype: Any) -> Operator | None:
    """Return the operator for arrays of one dtype; None where these are converted first."""
    return made(name, name_of(dtype)) if _floating(name, dtype) == dtype else None


def in_common(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Return two arguments with the dtype that both are promoted to; numbers stay such."""
    if not isinstance(x, Array):
        y, x = in_common(name, y, x) if isinstance(y, Array) else checked(name, "x", x)
        return x, y
    y = plain_number(y)
    if not isinstance(y, NUMBERS):
        dtype = _common(name, x.dtype, checked(name, "y", y).dtype)
        return _with_dtype(x, dtype), _with_dtype(y, dtype)
    return _with_dtype(x, _floating(name, with_number(x.dtype, y))), y


def plain_number(x: Any) -> Any:
    """Return a number of NumPy's as one of Python's, and others as they are."""
    is_number = isinstance(x, np.generic) and x.dtype.name in DTYPES
    return x.item() if is_number else x


@cache
def _common(name: str, a: Any, b: Any) -> Any:
    return _floating(name, promoted(a, b))


def _floating(name: str, dtype: Any) -> Any:
    """Return a dtype; that of floats for integers, where a function is of floats alone."""
    is_wide = name in _OF_FLOATS and kind_of(dtype) in ("int", "uint")
    return np.dtype(DEFAULTS["real floating"]) if is_wide else dtype


def _with_dtype(x: Array, dtype: Any) -> Array:
    return x if x.dtype is dtype or x.dtype == dtype else astype(x, dtype)


def named(name: str) -> Callable[..., Array]:
    """Return a function of the standard."""

    def one(x: Array, /) -> Array:
        return unary(name, x)

    def two(x1: Any, x2: Any, /) -> Array:
        return binary(name, x1, x2)

    function = one if FUNCTIONS[name].n == 1 else two
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {name} of {'each element' if function is one else 'elements'}."
    return function


def abs(x: Array, /) -> Array:
    """Return the absolute value of each element."""
    return unary("complex_abs" if kind_of(checked("abs", "x", x).dtype) == "complex" else "abs", x)


def imag(x: Array, /) -> Array:
    """Return the imaginary part of each element."""
    return unary("imag", x)


def real(x: Array, /) -> Array:
    """Return the real part of each element."""
    is_complex = kind_of(checked("real", "x", x).dtype) == "complex"
    return unary("real" if is_complex else "positive", x)


def _in_range(bound: Array, dtype: Any) -> Array:
    """Return bounds in a dtype: those of integers outside of its range are its limits."""
    kinds = {kind_of(bound.dtype), kind_of(dtype)}
    if bound.dtype != dtype and kinds <= {"int", "uint"}:
        limits, own = np.iinfo(dtype), np.iinfo(bound.dtype)
        if own.min < limits.min:
            bound = binary("maximum", bound, int(limits.min))
        if own.max > limits.max:
            bound = binary("minimum", bound, int(limits.max))
    return astype(bound, dtype)


def clip(x: Array, /, min: Any = None, max: Any = None) -> Array:
    """Return elements in the range from `min` to `max`, in the array's dtype."""
    for name, bound in (("maximum", min), ("minimum", max)):
        if bound is not None:
            x = binary(name, x, _in_range(bound, x.dtype) if isinstance(bound, Array) else bound)
    return unary("positive", x) if min is None and max is None else x
