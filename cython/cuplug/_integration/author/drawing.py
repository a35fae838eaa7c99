# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for the elements of arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cuplug._engine.base import numpy_dtypes
from cuplug._engine.base.dtypes import DTYPES, Dtype
from cuplug._engine.signature.evaluate import choices, elements_hold, interval
from cuplug._engine.signature.signature import Parameter, Signature
from cuplug._engine.signature.solver import TILE

__all__ = ["arrays", "ranged_elements", "tiled"]


def arrays(
    dtype: np.dtype[Any], shape: tuple[int, ...], bound: int, all_bits: bool
) -> st.SearchStrategy[Any]:
    known = DTYPES[numpy_dtypes.name_of_descr(dtype)]
    if known.kind == "storage":
        unsigned = np.dtype(known.stored.removesuffix("_t"))
        return tiled(unsigned, shape, None).map(lambda x: x.view(dtype))
    if dtype.isbuiltin != 1:  # the dtypes of ml_dtypes
        wide = arrays(np.dtype("float32"), shape, bound, all_bits)
        return wide.map(lambda x: _narrow(x, dtype))
    return tiled(dtype, shape, _elements(dtype, bound, all_bits))


def tiled(dtype: np.dtype[Any], shape: tuple[int, ...], elements: Any) -> st.SearchStrategy[Any]:
    """Return arrays. Large ones repeat elements with a period that divides no usual size."""
    if math.prod(shape) <= 2 * TILE:
        return hnp.arrays(dtype, shape, elements=elements)
    tiles = hnp.arrays(dtype, TILE, elements=elements, fill=st.nothing())
    return tiles.map(lambda tile: np.resize(tile, shape))


def ranged_elements(
    signature: Signature, x: Parameter, dtype: np.dtype[Any], names: dict[str, Any]
) -> st.SearchStrategy[Any] | None:
    """Return the elements that `where` allows; None if it does not restrict them."""
    if all(condition.element != x.name for condition in signature.ranges):
        return None
    known = DTYPES[numpy_dtypes.name_of_descr(dtype)]
    least, most = _ends(known)
    low, high = interval(signature, x.name, names, 1 if known.scalar is int else 0)
    low, high = max(low, least), min(high, most)
    found = choices(signature, x.name, names)
    if low > high or found == []:
        return st.nothing()
    if found is not None:
        elements = st.sampled_from(found)
    elif known.scalar is float:
        elements = st.floats(low, high).map(lambda x: float(np.asarray(x).astype(dtype)))
    else:
        elements = st.integers(math.ceil(low), math.floor(high))
    return elements.filter(lambda element: elements_hold(signature, x.name, element, names))


def _ends(dtype: Dtype) -> tuple[float, float]:
    """Return the smallest and the largest element to draw."""
    if dtype.scalar is not int:
        return (0, 1) if dtype.scalar is bool else (-8, 8)
    bits = min(8 * dtype.n_bytes, 63)
    return (0, 2**bits - 1) if dtype.kind == "uint" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _narrow(x: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(dtype)


def _elements(dtype: np.dtype[Any], bound: int, all_bits: bool) -> st.SearchStrategy[Any]:
    if dtype.kind in "iu" and not all_bits:
        return st.integers(0, min(bound, np.iinfo(dtype).max + 1) - 1)
    if dtype.kind == "f" and not all_bits:
        # Sums of a few elements are exact, except in float64, which reveals results computed in
        # float32.
        return st.floats(-8, 8, width=32 if dtype.itemsize == 8 else 16)
    if dtype.kind == "c" and not all_bits:
        return st.builds(complex, st.integers(-8, 8), st.integers(-8, 8))
    return hnp.from_dtype(dtype)
