# SPDX-License-Identifier: Apache-2.0
"""Outputs of generators: shapes, dtypes, and arrays in `out`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuplug._engine.array.make import empty
from cuplug._engine.array.promotion import kind_of, to_dtype
from cuplug.array_api.conversion import from_dlpack
from cuplug.array_api.creation import assigning
from cuplug.array_api.views import is_in_order, shape_of

Size = int | Sequence[int] | None

# By the dtypes that callers pass: determining one takes longer than drawing a few elements.
_FLOATS: dict[Any, Any] = {}
_INTEGERS: dict[Any, tuple[Any, int, int]] = {}


def floating(name: str, dtype: Any) -> Any:
    """Return the floating dtype for a caller's argument."""
    try:
        return _FLOATS[dtype]
    except (KeyError, TypeError):
        pass
    found = to_dtype(dtype)
    if found.name not in ("float32", "float64"):
        raise TypeError(f"{name}: dtype: got {found.name}, expected float32 or float64")
    if isinstance(dtype, (str, type)):
        _FLOATS[dtype] = found
    return found


def integral(dtype: Any) -> tuple[Any, int, int]:
    """Return the dtype of integers that a caller requests, its minimum and its maximum."""
    try:
        return _INTEGERS[dtype]
    except (KeyError, TypeError):
        pass
    found = to_dtype(dtype)
    if kind_of(found) not in ("bool", "int", "uint"):
        raise TypeError(f"integers: dtype: got {found}, expected bool or one of integers")
    is_bool = found.name == "bool"
    limits = (0, 1) if is_bool else (int(np.iinfo(found).min), int(np.iinfo(found).max))
    if isinstance(dtype, (str, type)):
        _INTEGERS[dtype] = (found, *limits)
    return (found, *limits)


def shape_of_size(size: Size) -> tuple[int, ...]:
    """Return the shape for a caller's argument."""
    if size is None:
        return ()
    shape = shape_of("size", size)
    if any(n < 0 for n in shape):
        raise ValueError(f"size: got {shape}, expected sizes of at least 0")
    return shape


def fitting(name: str, dtype: Any, size: Size, out: Any) -> Any:
    """Return the output for an array of any library: itself, or a new one if it is strided."""
    if not hasattr(type(out), "shape"):
        raise TypeError(f"{name}: out: got {type(out).__name__}, expected an array")
    seen = from_dlpack(out)  # on its device
    if seen.dtype != dtype:
        raise TypeError(f"{name}: out: got {seen.dtype}, expected {dtype}")
    if size is not None and seen.shape != shape_of_size(size):
        raise ValueError(f"{name}: out: got shape {seen.shape}, expected {shape_of_size(size)}")
    if is_in_order(seen):
        return out
    if not seen.flags.writeable:
        raise ValueError(f"{name}: out: got a read-only array, expected a writable one")
    return empty(seen.shape, dtype, seen.device)


def written(x: Any, out: Any) -> None:
    """Write the drawn numbers to their array."""
    if x is not out:
        write = assigning(x.dtype, x.dtype)
        assert write is not None  # of one dtype
        write(out, x)
