# SPDX-License-Identifier: Apache-2.0
"""The functions that the class Array calls; this module computes nothing itself."""

from __future__ import annotations

from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array, may_meet
from cuplug._engine.array.promotion import NUMBERS, kind_of, name_of
from cuplug._engine.call.operator import Operator
from cuplug._source.expressions.element_wise import elementwise
from cuplug._source.expressions.functions import known_power
from cuplug.array_api.beyond.outputs import into_out
from cuplug.array_api.conversion import asarray
from cuplug.array_api.creation import assign, assigning
from cuplug.array_api.dtypes import checked, in_dtype, integer
from cuplug.array_api.elementwise import (
    CALLED,
    binary,
    direct,
    direct_power,
    in_common,
    made,
    unary,
)
from cuplug.array_api.filled import copied, zeros_like
from cuplug.array_api.functions import ArrayFunction, stock
from cuplug.array_api.views import (
    axis_of,
    broadcast_to,
    matrix_transpose,
    part_of_complex,
    permute_dims,
    viewed,
)

__all__ = [
    "CALLED",
    "IN_PLACE",
    "apply_operator",
    "asarray",
    "assign",
    "broadcast_to",
    "copied",
    "exchanged",
    "in_floats",
    "in_place",
    "matmul",
    "matmul_in_place",
    "matrix_transpose",
    "namespace",
    "part",
    "permute_dims",
    "rounded",
    "standard",
    "stock",
    "viewed",
]

standard = import_module("cuplug.array_api")
DECIMALS = 308  # float64 has a power of ten for each
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


_OPERANDS = (Array, *NUMBERS)


# Imported at the first use: keys that require a copy, and NumPy's functions.
_LATER = {
    "indexing": "put_at put_converted take_at",
    "beyond.nan_aware": "reduced_part",
    "beyond.numpy_attributes": "Flags Flat byteswapped element in_memory_order in_order"
    " is_reversed put within",
    "beyond.numpy_functions": "call_numpy",
    "beyond.numpy_ufuncs": "call_ufunc",
}
_HOMES = {name: module for module, names in _LATER.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"cuplug.array_api.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def apply_operator(name: str, x: Array, other: Any, reflected: bool = False) -> Any:
    """Return the result of a Python operator."""
    if isinstance(other, (list, tuple)):  # Python finds other types unequal
        checked(name, "y", other)
    if not isinstance(other, _OPERANDS) and not _is_number(other):
        return NotImplemented
    return binary(name, other, x) if reflected else binary(name, x, other)


def matmul(x: Any, y: Any) -> Any:
    """Return the result of `@`, which another library's array may compute."""
    if isinstance(x, Array) and isinstance(y, Array):
        return standard.matmul(x, y)
    return NotImplemented


def matmul_in_place(x: Array, y: Any) -> Any:
    """Write the result of `@` to `x`, whose shape and kind of numbers it must have."""
    found = matmul(x, _on_host(x, y))
    return found if found is NotImplemented else into_out(found, x)


def _on_host(x: Array, other: Any) -> Any:
    """Return an array of NumPy as one of cuplug, if `x` is in host memory."""
    if isinstance(other, np.ndarray) and other.ndim and x.device.type == "cpu":
        return asarray(other, device="cpu")
    return other


def _is_number(x: Any) -> bool:
    return hasattr(x, "dtype") and getattr(x, "ndim", None) == 0


def in_place(name: str, x: Array, other: Any) -> Array:
    """Modify an array as Python's `+=` and similar operators do.

    NumPy's only modify host memory.
    """
    other = _on_host(x, other)
    if name == "pow" and (short := known_power(x.dtype, other)):
        made(short, name_of(x.dtype), True)(x)
        return x
    own, y = in_common(name, x, other)
    if own.dtype != x.dtype:
        if not np.can_cast(own.dtype, x.dtype, "same_kind"):
            seen = f"{x.dtype} and {getattr(other, 'dtype', other)!s:.40}"
            raise TypeError(
                f"{name}: got {seen}, which are promoted to {own.dtype}, expected numbers that "
                f"keep {x.dtype} (in place); use an expression, x = x + y"
            )
        found = binary(name, own, y)
        assign(x, found if found.shape == x.shape else broadcast_to(found, x.shape))
        return x
    if isinstance(y, Array):
        y = y if y.shape == x.shape else broadcast_to(y, x.shape)
        if may_meet(x, y):
            assign(x, binary(name, x, y))
            return x
    made(name, name_of(x.dtype), True)(x, y)
    return x


_CHANGING = "add subtract multiply divide floor_divide remainder"
_CHANGING += " bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"
# For operands of the same shape, in other memory, and numbers.
IN_PLACE: dict[str, ArrayFunction[..., Any]] = {
    name: ArrayFunction(partial(in_place, name), partial(direct, name, in_place=True), True, True)
    for name in _CHANGING.split()
}
_in_place_power = partial(direct_power, in_place=True)
IN_PLACE["pow"] = ArrayFunction(partial(in_place, "pow"), _in_place_power, True, True)
IN_PLACE["assign"] = ArrayFunction(assign, assigning, True, True)


def namespace(api_version: str | None) -> ModuleType:
    """Return the functions of the standard."""
    if api_version not in (None, *VERSIONS):
        raise ValueError(f"api_version: got {api_version!r}, expected one of {', '.join(VERSIONS)}")
    return standard


def part(x: Array, number: int) -> Array:
    """Return the real parts (number 0) or imaginary parts (number 1) as a view."""
    if kind_of(x.dtype) != "complex":
        return zeros_like(x) if number else x
    return part_of_complex(x, number)


def exchanged(x: Array, *axes: int) -> Array:
    """Return a view with two dimensions exchanged."""
    a, b = (axis_of("swapaxes", axis, x.ndim) for axis in axes)
    order = list(range(x.ndim))
    order[a], order[b] = b, a
    return permute_dims(x, order)


# Numbers that are too large to be scaled have no decimals.
_ROUNDED = """
__device__ inline T rounded(T x, T scale, bool is_up) {
  const T there = is_up ? x * scale : x / scale, whole = rint(there);
  if (!isfinite(there)) return x;
  return whole == 0 ? whole : is_up ? whole / scale : whole * scale;
}
"""


def in_floats(name: str, x: Array, dtype: Any) -> Array:
    """Return elements in the dtype in which a mean or a variance is computed."""
    found: Array = x.astype(dtype, False)
    if found.dtype.kind in "biu":
        raise TypeError(f"{name}: dtype: got {found.dtype}, expected one of floats")
    return found


@cache
def _rounding(dtype: str) -> Operator:
    text = f"round(x: T, scale: float64, is_up: bool) -> T where T: {dtype}"
    return elementwise(text, "rounded(x, (T)scale, is_up)", preamble=_ROUNDED)


def rounded(x: Array, decimals: int) -> Array:
    """Return each element rounded to a number of decimals, halves to even."""
    n = integer("round: decimals", decimals)
    if kind_of(x.dtype) == "bool":  # as NumPy's
        x = in_dtype(x, np.dtype("float16"))
    if not n:
        return unary("round", x)
    if not -DECIMALS <= n <= DECIMALS:
        raise ValueError(f"round: decimals: got {n}, expected {-DECIMALS} to {DECIMALS}")
    if n > 0 and kind_of(x.dtype) in ("int", "uint"):
        return copied(x)
    scale = 10.0 ** (n if n > 0 else -n)
    if kind_of(x.dtype) == "float":
        result: Array = _rounding(name_of(x.dtype))(x, scale, n > 0)
        return result
    there, back = ("multiply", "divide") if n > 0 else ("divide", "multiply")
    whole = unary("round", binary(there, x, scale))
    return in_dtype(binary(back, whole, scale), x.dtype)
