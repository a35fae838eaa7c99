# SPDX-License-Identifier: Apache-2.0
"""Arguments that are read on the host: numbers, or small arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug.array_api.conversion import asarray

_KINDS = {"integers": "iu", "real numbers": "biuf", "numbers": "biufc"}


def on_the_host(what: str, value: Any, wanted: str) -> np.ndarray[Any, Any]:
    """Return an argument as a NumPy array of `wanted`: integers or real numbers."""
    given: Any = value.numpy() if isinstance(value, Array) else value
    try:
        found = np.asarray("" if isinstance(given, np.ma.MaskedArray) else given)
    except (TypeError, ValueError, OverflowError):
        found = np.asarray("")
    if found.dtype.kind in _KINDS[wanted] or not found.size:
        return found
    raise TypeError(f"{what}: got {value!r:.60}, expected {wanted}")


def together(name: str, *values: Any) -> list[Array]:
    """Return arguments, one or more of which are arrays, as arrays on their device."""
    where_to = next((x.device for x in values if isinstance(x, Array)), None)
    if where_to is None:
        raise TypeError(f"{name}: got no cuplug.Array, expected one; use cuplug.asarray")
    return [x if isinstance(x, Array) else asarray(x, device=where_to) for x in values]


def with_lists(values: Sequence[Any]) -> list[Any]:
    """Return arguments, of which lists become arrays on the device of the first array."""
    where_to = next((x.device for x in values if isinstance(x, Array)), None)
    is_alone = where_to is None
    return [
        x if is_alone or not isinstance(x, (list, tuple)) else asarray(x, device=where_to)
        for x in values
    ]


def several(what: str, value: Any) -> list[Any]:
    """Return the items of an argument that must be a sequence."""
    try:
        return list(value)
    except TypeError:
        raise TypeError(f"{what}: got {value!r:.60}, expected a sequence") from None


def number(what: str, value: Any) -> float:
    """Return an argument that must be a real number."""
    found = on_the_host(what, value, "real numbers")
    if found.size != 1 or found.ndim:
        raise TypeError(f"{what}: got {value!r:.60}, expected a real number")
    return float(found)
