# SPDX-License-Identifier: Apache-2.0
"""Element-wise functions."""

from __future__ import annotations

from functools import cache, partial, reduce
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import (
    DEFAULTS,
    NUMBERS,
    is_typed_number,
    kind_of,
    name_of,
    not_computed,
    promoted,
    widened,
    with_number,
)
from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.call.operator import Operator
from cuplug._source.expressions.element_wise import elementwise
from cuplug._source.expressions.functions import (
    BY_NUMBER,
    FUNCTIONS,
    NOT_PUBLIC,
    POWERS,
    known_power,
)
from cuplug.array_api.dtypes import astype, checked, finfo, in_dtype
from cuplug.array_api.elementwise_docs import docstrings
from cuplug.array_api.filled import full_like
from cuplug.array_api.functions import ArrayFunction
from cuplug.array_api.views import part_of_complex

_OF_FLOATS = frozenset(
    name
    for name, x in FUNCTIONS.items()
    if "float" in x.expressions and not {"int", "bool"} & {*x.expressions}
)


# Functions of the standard.
PLAIN = [name for name in FUNCTIONS if name not in NOT_PUBLIC]
_DOCSTRINGS = docstrings()
_PARTS = {"real": 0, "imag": 1}  # views of complex numbers


@cache
def made(
    name: str,
    dtype: str,
    in_place: bool = False,
    given: tuple[str, ...] = (),
    by_number: bool = False,
) -> Operator:
    """Return the operator of a function for a dtype. It modifies x or creates an array.

    Arguments with the dtypes in `given` are converted as they are read. `by_number` selects an
    operator for a number as the second argument.
    """
    function = (by_number and BY_NUMBER.get(name)) or FUNCTIONS[name]
    kind = DTYPES[dtype].kind if dtype in DTYPES else ""
    if kind == "storage":
        raise not_computed(f"{name}: x", dtype)
    if kind not in function.expressions:
        if kind == "complex":
            raise TypeError(f"{name}: got {dtype}, expected real numbers; use real, imag or abs")
        kinds = " or ".join(function.expressions)
        raise TypeError(f"{name}: got {dtype}, expected numbers of the kind {kinds}; use astype")
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
    if given:
        result = dtype if result == "T" else result
        parameters = ", ".join(f"{x}: {own}" for x, own in zip("vw", given, strict=False))
        read = ", ".join(f"{x} = {own}" for x, own in zip("xy"[: function.n], "vw", strict=False))
        preamble = f"typedef {DTYPES[dtype].computed} T;\n{preamble}"
        text, code = f"{name}({parameters}) -> (z: {result})", f"const T {read}; z = ({expression})"
        return elementwise(text, code, preamble=preamble)
    text = f"{name}({parameters}) -> {result} where T: {dtype}"
    return elementwise(text, expression, preamble=preamble)


def unary(name: str, x: Array) -> Array:
    """Call a function of one array."""
    result: Array = CALLED[name](x)
    return result


def binary(name: str, x: Any, y: Any) -> Array:
    """Call a function of two arrays, or of an array and a number."""
    result: Array = CALLED[name](x, y)
    return result


def _of_kind(name: str, dtype: Any) -> str:
    """Return the name of the operator of a function for elements of a dtype."""
    if name == "abs" and kind_of(dtype) == "complex":
        return "complex_abs"
    return "positive" if name == "real" and kind_of(dtype) != "complex" else name


def _unary(name: str, x: Array) -> Array:
    if name in _PARTS and kind_of(checked(name, "x", x).dtype) == "complex":
        return part_of_complex(x, _PARTS[name])
    x = in_dtype(x, _floating(name, checked(name, "x", x).dtype))
    result: Array = made(_of_kind(name, x.dtype), name_of(x.dtype))(x)
    return result


def _binary(name: str, x: Any, y: Any) -> Array:
    if name in _REFLECTED and (compared := _compared_integers(name, x, y)) is not None:
        return compared
    x, y = in_common(name, x, y)
    dtype = name_of((x if isinstance(x, Array) else y).dtype)
    result: Array = made(name, dtype)(x, y)
    return result


def _wanted(name: str, given: tuple[Any, ...]) -> Any:
    """Return the dtype in which a function computes, for dtypes and types of numbers."""
    wanted = reduce(promoted, (x for x in given if isinstance(x, np.dtype)))
    for number in given:
        wanted = wanted if isinstance(number, np.dtype) else widened(wanted, number)
    return _floating(name, wanted)


def kept(name: str, *given: Any) -> Any:
    """Return the common dtype of arrays and numbers that need no conversion; None if some do."""
    wanted = _wanted(name, given)
    return wanted if all(x == wanted for x in given if isinstance(x, np.dtype)) else None


def direct(name: str, *given: Any, in_place: bool = False) -> Operator | None:
    """Return the operator for arrays of dtypes and numbers of types; None if some are converted."""
    if name in _REFLECTED and _are_mixed(*given):
        return _compared_signs(name, *map(name_of, given))
    wanted = kept(name, *given)
    if wanted is not None:
        by_number = name in BY_NUMBER and not isinstance(given[1], np.dtype)
        return made(_of_kind(name, wanted), name_of(wanted), in_place, by_number=by_number)
    return None if in_place else _converting(name, *given)


def _converting(name: str, *given: Any) -> Operator | None:
    """Return the operator that converts its arguments as it reads them; None if none exists."""
    wanted = _wanted(name, given)
    if kind_of(wanted) == "complex" or DTYPES[name_of(wanted)].is_narrow:
        return None
    if len(given) != FUNCTIONS[name].n:
        return None
    own = [name_of(x if isinstance(x, np.dtype) else wanted) for x in given]
    return made(name, name_of(wanted), given=tuple(own))


_REFLECTED = {"equal": "equal", "not_equal": "not_equal"}
_REFLECTED |= {"less": "greater", "less_equal": "greater_equal"}
_REFLECTED |= {theirs: name for name, theirs in _REFLECTED.items()}


def _compared_integers(name: str, x: Any, y: Any) -> Array | None:
    """Compare integers by value, in no common dtype; None if the types are not two integers.

    A number is compared in the array's dtype, if it fits; int64 and uint64 have no common dtype.
    """
    if not isinstance(x, Array):
        name, x, y = _REFLECTED[name], y, x
    if not isinstance(x, Array) or kind_of(x.dtype) not in ("int", "uint"):
        return None
    if isinstance(y, Array):
        if not _are_mixed(x.dtype, y.dtype):
            return None
        compared: Array = _compared_signs(name, name_of(x.dtype), name_of(y.dtype))(x, y)
        return compared
    y = plain_number(y)
    if not isinstance(y, int) or isinstance(y, bool):
        return None
    limits = np.iinfo(x.dtype)
    if limits.min <= y <= limits.max:
        result: Array = made(name, name_of(x.dtype))(x, y)
        return result
    is_true = name == "not_equal" or (name != "equal" and ("less" in name) == (y > 0))
    return full_like(x, is_true, dtype="bool")


def _are_mixed(*given: Any) -> bool:
    """Return whether two integer dtypes are signed and unsigned, without a common dtype."""
    if not all(isinstance(x, np.dtype) for x in given):
        return False
    return {kind_of(x) for x in given} == {"int", "uint"} and promoted(*given).kind == "f"


@cache
def _compared_signs(name: str, own: str, other: str) -> Operator:
    """Return the operator that compares signed integers with unsigned ones."""
    text, signed = FUNCTIONS[name].expressions["int"], "x" if own.startswith("i") else "y"
    plain = text.replace("x", "(uint64_t)x").replace("y", "(uint64_t)y")
    apart = "".join("-1" if c == signed else "0" if c in "xy" else c for c in text)
    return elementwise(f"{name}(x: {own}, y: {other}) -> bool", f"{signed} < 0 ? {apart} : {plain}")


def direct_power(x: Any, exponent: Any = None, in_place: bool = False) -> Operator | None:
    """Return the operator for arrays of dtypes; None if they are converted or a number is known."""
    return direct("pow", x, exponent, in_place=in_place) if isinstance(exponent, np.dtype) else None


def _power(x1: Any, x2: Any, /) -> Array:
    if isinstance(x1, Array) and is_typed_number(x2):
        x1, x2 = in_common("pow", x1, x2)
    name = known_power(x1.dtype, x2) if isinstance(x1, Array) else None
    return _POWERS[name](x1) if name else _binary("pow", x1, x2)


def in_common(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Return two arguments in the dtype to which both are promoted. Numbers stay numbers.

    Python numbers adapt to the array. NumPy's numbers have dtypes, as arrays do.
    """
    if not isinstance(x, Array):
        y, x = in_common(name, y, x) if isinstance(y, Array) else checked(name, "x", x)
        return x, y
    if kind_of(x.dtype) == "storage":
        raise not_computed(f"{name}: x", name_of(x.dtype))
    if is_typed_number(y):
        dtype = _common(name, x.dtype, y.dtype)
        return in_dtype(x, dtype), number_of(name, y, dtype)
    if isinstance(y, NUMBERS):
        dtype = _floating(name, with_number(x.dtype, y))
        return in_dtype(x, dtype), number_of(name, y, dtype)
    dtype = _common(name, x.dtype, checked(name, "y", y).dtype)
    return in_dtype(x, dtype), in_dtype(y, dtype)


def number_of(name: str, x: Any, dtype: Any) -> Any:
    """Return a number as a Python number of a dtype. Floats are rounded once, and may be infinite.

    Integers outside an integer dtype's range are unchanged.
    """
    kind = kind_of(dtype)
    if kind in ("int", "uint"):
        return int(x)
    if kind == "bool":
        return bool(x)
    if isinstance(x, int) and x.bit_length() > 1024:
        wanted = f"one in the range of {dtype}"
        raise ValueError(f"{name}: got an integer beyond the range of float64, expected {wanted}")
    number = DTYPES[name_of(dtype)].scalar(x)
    if kind == "float" and abs(number) <= _largest(dtype):
        return number  # the operator rounds it
    with np.errstate(over="ignore"):
        return type(number)(np.asarray(number).astype(dtype)[()])


@cache
def _largest(dtype: Any) -> float:
    return finfo(dtype).max


def plain_number(x: Any) -> Any:
    """Return a NumPy number as a Python number, and other objects unchanged."""
    return x.item() if is_typed_number(x) and x.dtype.name in DTYPES else x


@cache
def _common(name: str, a: Any, b: Any) -> Any:
    return _floating(name, promoted(a, b))


# Functions of bools that NumPy computes in int8.
_COUNTED = {"floor_divide", "remainder", "pow", "square"}
_COUNTED |= {"bitwise_left_shift", "bitwise_right_shift"}


def _floating(name: str, dtype: Any) -> Any:
    """Return the dtype of a computation only in floats, with integers unchanged."""
    kind = kind_of(dtype)
    if name in _OF_FLOATS and (kind in ("int", "uint") or (kind, name) == ("bool", "divide")):
        return np.dtype(DEFAULTS["real floating"])
    return np.dtype("int8") if kind == "bool" and name in _COUNTED else dtype


def _named(name: str) -> ArrayFunction:
    """Return a function of the standard."""

    def one(x: Array, /) -> Array:
        return _unary(name, x)

    def two(x1: Any, x2: Any, /) -> Array:
        return _binary(name, x1, x2)

    function = one if FUNCTIONS[name].n == 1 else two
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOCSTRINGS.get(name)
    find = None if name in _PARTS else partial(direct, name)
    return ArrayFunction(function, find, again=FUNCTIONS[name].n == 2)


_power.__name__ = _power.__qualname__ = "pow"
_power.__doc__ = _DOCSTRINGS["pow"]
_POWERS: dict[str, Any] = {name: _named(name) for name in POWERS.values()}
CALLED = {name: _named(name) for name in PLAIN} | {
    "pow": ArrayFunction(_power, direct_power, again=True)
}


@cache
def _clipping(dtype: str) -> Operator:
    text = f"clip(x: {dtype}, low: {dtype}, high: {dtype}) -> {dtype}"
    return elementwise(text, "min(high, max(x, low))")


def _direct_clip(*given: Any) -> Operator | None:
    """Return the operator that clips in one call, if no dtype changes."""
    dtype = kept("clip", *given) if len(given) == 3 and isinstance(given[0], np.dtype) else None
    is_real = dtype is not None and kind_of(dtype) in ("int", "uint", "float")
    return _clipping(name_of(dtype)) if is_real else None


def _in_range(bound: Array, dtype: Any) -> Array:
    """Return bounds in a dtype. Those outside of an integer's range become its limits."""
    kinds = {kind_of(bound.dtype), kind_of(dtype)}
    if bound.dtype != dtype and kinds <= {"int", "uint"}:
        limits, own = np.iinfo(dtype), np.iinfo(bound.dtype)
        if own.min < limits.min:
            bound = binary("maximum", bound, int(limits.min))
        if own.max > limits.max:
            bound = binary("minimum", bound, int(limits.max))
    return astype(bound, dtype)


def bounds_for(dtype: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Return bounds for `clip`; None for Python integers that no element of a dtype can exceed."""
    if kind_of(dtype) in ("int", "uint"):
        limits = np.iinfo(dtype)
        low = None if type(low) is int and low < limits.min else low
        high = None if type(high) is int and high > limits.max else high
    return low, high


_RANKS = {"storage": 0, "bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}


@partial(ArrayFunction, find=_direct_clip, again=True)
def clip(x: Array, /, min: Any = None, max: Any = None) -> Array:
    """Return elements in the range from `min` to `max`, in the array's dtype.

    Bounds of another kind, such as floats for integers, widen the result, as in operators. So do
    NumPy's numbers.

    Examples
    --------
    >>> print(xp.clip(xp.asarray([-1, 5, 9]), 0, 6))
    [0 5 6]
    """
    min, max = bounds_for(checked("clip", "x", x).dtype, min, max)
    rank = _RANKS[kind_of(x.dtype)]
    for name, bound in (("maximum", min), ("minimum", max)):
        if bound is not None:
            is_kept = isinstance(bound, Array) and _RANKS[kind_of(bound.dtype)] <= rank
            x = binary(name, x, _in_range(bound, x.dtype) if is_kept else bound)
    return unary("positive", x) if min is None and max is None else x
