# SPDX-License-Identifier: Apache-2.0
"""The dtypes in which functions compute, by NumPy's rules."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from cuplug._engine.array.promotion import NUMBERS, kind_of, promoted, to_dtype, with_number
from cuplug._source.expressions.functions import ALIASES, FUNCTIONS

_UFUNCS = {ours: theirs for theirs, ours in ALIASES.items() if hasattr(np, theirs)}
_UFUNCS |= {"complex_abs": "absolute", "inverse_square": "reciprocal"}
_UFUNCS |= dict.fromkeys(("cube", "fourth", "fifth"), "square")
_UFUNCS |= dict.fromkeys(("root", "inverse_root", "root_of_cube"), "sqrt")
Type = Any  # of a value: a numpy.dtype, or the class of a Python number, which adapts to dtypes


def dtype_of(type_: Type) -> Any:
    """Return the dtype of a single value."""
    return to_dtype(type_) if is_weak(type_) else type_


def is_weak(type_: Type) -> bool:
    """Return whether a type is a Python number type; `in NUMBERS` also finds dtypes."""
    return isinstance(type_, type)


def computed_with(name: str, types: list[Type]) -> tuple[list[Any], Type]:
    """Return the dtypes to which a function's arguments are converted, and its result's type.

    Raises
    ------
    TypeError
        NumPy has no such function for these types, or no expression computes it.
    """
    if all(map(is_weak, types)):
        loop, result = computed_with(name, [dtype_of(each) for each in types])
        kind = kind_of(result)
        return loop, {"bool": bool, "int": int, "uint": int, "complex": complex}.get(kind, float)
    if any(not is_weak(each) and each.kind == "V" for each in types):  # bfloat16, float8
        common = put_together(types)
        is_bool = FUNCTIONS[name].result == "bool"
        return [common] * len(types), np.dtype(bool) if is_bool else common
    ufunc = ufunc_of(name)
    known = [np.dtype(bool) if each is bool else each for each in types]
    *loop, result = ufunc.resolve_dtypes((*known, None))
    if len({*loop}) > 1:
        loop = [np.result_type(*loop)] * len(loop)
    return [_known(name, dtype) for dtype in loop], result


def ufunc_of(name: str) -> Any:
    """Return the NumPy function for a name in `FUNCTIONS`."""
    return getattr(np, _UFUNCS.get(name, name))


def put_together(types: list[Type]) -> Type:
    """Return the common dtype of values. If all are Python numbers, it is their default dtype."""
    strong = [each for each in types if not is_weak(each)]
    if not strong:
        return dtype_of(max(types, key=NUMBERS.index))
    if any(each.kind == "V" for each in strong):
        result = reduce(promoted, strong)
    else:
        result = np.result_type(*strong)
    for each in types:
        if is_weak(each):
            result = with_number(result, each())
    return result


def _known(name: str, dtype: Any) -> Any:
    """Return the dtype of an expression. Functions of truth values accept all numbers."""
    kinds = FUNCTIONS[name].expressions
    if expression_kind(name, dtype) in kinds:
        return dtype
    if [*kinds] == ["bool"]:
        return np.dtype(bool)
    raise TypeError(f"{name}: got {dtype}, expected {' or '.join(kinds)}")


def expression_kind(name: str, dtype: Any) -> str:
    """Return the kind whose expression computes with a dtype. A bool is a number if necessary."""
    kind = kind_of(dtype)
    kinds = FUNCTIONS[name].expressions
    return "uint" if kind == "bool" and kind not in kinds else kind
