# SPDX-License-Identifier: Apache-2.0
"""What is drawn, as operators without arrays: element i is of block `first + i` of a stream."""

from __future__ import annotations

from functools import cache

from cuplug.call.operator import Operator
from cuplug.source.element_wise import elementwise
from cuplug.source.expression import template

_BITS = "cuplug_philox(key, first + (uint64_t)i, sequence)"
_UNITS = {"float32": "cuplug_narrow_unit", "float64": "cuplug_unit"}


def _drawing(name: str, dtype: str, numbers: str, expression: str) -> Operator:
    row = f"{name}(shape: int[], key: uint64, sequence: uint64, first: uint64{numbers})"
    text = f"{row} -> {dtype}[*shape]"
    return elementwise(text, expression, preamble=template("philox.h"))


@cache
def uniform(dtype: str) -> Operator:
    """Return the operator of numbers in [low, high)."""
    unit = f"{_UNITS[dtype]}({_BITS})"
    numbers = f", low: {dtype}, high: {dtype}"
    return _drawing("uniform", dtype, numbers, f"low + (high - low) * {unit}")


@cache
def normal(dtype: str) -> Operator:
    """Return the operator of normal numbers."""
    numbers = ", loc: float64, scale: float64"
    return _drawing("normal", dtype, numbers, f"loc + scale * cuplug_normal({_BITS})")


@cache
def integers(dtype: str) -> Operator:
    """Return the operator of integers from low to low + last."""
    numbers = ", low: uint64, last: uint64"
    return _drawing("integers", dtype, numbers, f"low + cuplug_below({_BITS}, last)")
