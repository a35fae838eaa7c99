# SPDX-License-Identifier: Apache-2.0
"""Arrays as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from cuplug._engine.base.numpy_dtypes import name_of_descr

EDGE = 3  # elements at each end of a dimension that is too long to be shown


def shown(x: Any) -> str:
    """Return an array's text: its values, of a large array only the ends, and its device."""
    head = f"{type(x).__name__}("
    dtype = name_of_descr(x.dtype) if _is_packed(x.dtype) else x.dtype
    return f"{head}{_text(x, ', ', head)}, dtype={dtype}, device='{x.device}')"


def format_values(x: Any) -> str:
    """Return only the values, as NumPy prints them."""
    return _text(x, " ", "") if x.ndim or _is_packed(x.dtype) else str(x.numpy())


def as_html(x: Any) -> str:
    """Return the layout and the values, for notebooks."""
    from html import escape

    facts = f"shape {x.shape}, {x.dtype}, on {x.device}, {x.nbytes:,} bytes"
    name, values = type(x).__name__, escape(format_values(x))
    return f"<b>{name}</b> <small>{escape(facts)}</small><pre>{values}</pre>"


def _is_packed(dtype: Any) -> bool:
    return name_of_descr(dtype) in (dtype.names or ())


def _pair(dtype: Any) -> Callable[[Any], str]:
    """Return the formatter for a packed pair's byte: two numbers, the low bits first."""
    try:
        import ml_dtypes
    except ImportError:
        return hex
    of = getattr(ml_dtypes, name_of_descr(dtype).removesuffix("_x2"))
    return lambda x: f"({numpy.uint8(x & 15).view(of)!s}, {numpy.uint8(x >> 4).view(of)!s})"


def _text(x: Any, separator: str, head: str) -> str:
    is_long = x.size > numpy.get_printoptions()["threshold"]
    values = _ends(x, x.ndim - 1) if is_long else x.numpy()
    threshold = 0 if is_long else values.size
    formatter: Any = None
    if _is_packed(x.dtype):
        values, formatter = values.view("uint8"), {"int": _pair(x.dtype)}
    text: str = numpy.array2string(
        values,
        separator=separator,
        prefix=head,
        formatter=formatter,
        threshold=threshold,
        edgeitems=EDGE,
    )
    return text


def _ends(x: Any, axis: int) -> Any:
    """Return the elements at the ends of dimensions up to `axis`: no more are copied."""
    if axis < 0:
        return x.numpy()
    if x.shape[axis] <= 2 * EDGE:
        return _ends(x, axis - 1)
    before = (slice(None),) * axis
    parts = [slice(None, EDGE + 1), slice(-EDGE, None)]
    return numpy.concatenate([_ends(x[(*before, part)], axis - 1) for part in parts], axis=axis)
