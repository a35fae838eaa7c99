# SPDX-License-Identifier: Apache-2.0
"""Random arguments from signatures, for property tests with Hypothesis.

@given(cuplug.testing.arguments(gather))
def test_gather(arguments):
    result = gather(**arguments)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cuplug.author.fitting import misfit
from cuplug.base import numpy_dtypes
from cuplug.base.dtypes import DTYPES
from cuplug.call.operator import Operator
from cuplug.signature.signature import Parameter, Signature, parse

try:
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as hnp
except ImportError:
    raise ModuleNotFoundError(
        "cuplug.testing needs the package hypothesis: pip install hypothesis"
    ) from None

__all__ = ["arguments", "numpy_dtype"]

Draw = Any
Sizes = st.SearchStrategy[int]
Pins = dict[str, st.SearchStrategy[Any]]
SMALL = st.integers(1, 6)
WITH_EMPTY = st.integers(0, 6)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype of a dtype name, those of ml_dtypes included."""
    return numpy_dtypes.numpy_dtype(name)


def arguments(
    operator: Operator | str,
    sizes: Sizes = WITH_EMPTY,
    all_bits: bool = False,
    pinned: Mapping[str, Any] | None = None,
) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for the arguments of an operator.

    Parameters
    ----------
    operator : Operator or str
        An operator, or the text of one signature. Of an operator with overloads, any.
    sizes : strategy of int
        Sizes of dimensions.
    all_bits : bool
        Integers of the whole range, infinities and NaNs, scalars a little below zero and beyond
        all sizes; else integers in 0 <= i < the smallest size (so that they can be indices), and
        finite numbers.
    pinned : dict, optional
        Values, or strategies of them, of scalars, strings and dimensions, by name: they are always
        given. None leaves an optional array out.

    Returns
    -------
    strategy of dict
        Name -> NumPy array, scalar or string: to be called as `operator(**arguments)`. Parameters
        with a default are left out now and then.
    """
    texts = (operator,) if isinstance(operator, str) else operator.signatures
    signatures = [parse(text) for text in texts]
    pins = {
        name: x if isinstance(x, st.SearchStrategy) else st.just(x)
        for name, x in (pinned or {}).items()
    }
    known = {name for s in signatures for name in (*[x.name for x in s.parameters], *s.dim_names)}
    for name in pins.keys() - known:
        wanted = f"wanted one of {', '.join(sorted(known))}" if known else "there is none"
        raise ValueError(f"arguments: pinned: {name}: no such parameter or dimension, {wanted}")
    drawn = st.sampled_from(signatures).flatmap(
        lambda signature: _arguments(signature, sizes, all_bits, pins)
    )
    if isinstance(operator, str):
        return drawn
    return drawn.filter(lambda given: not misfit(operator, given))


@st.composite
def _arguments(
    draw: Draw, signature: Signature, sizes: Sizes, all_bits: bool, pins: Pins
) -> dict[str, Any]:
    dtypes = [draw(st.sampled_from(names)) for _, names in signature.variables]
    named = [draw(pins.get(name, sizes)) for name in signature.dim_names]
    groups = [draw(st.lists(sizes, max_size=2)) for _ in signature.dim_names]
    loop = draw(st.lists(sizes, max_size=3))
    given = sorted({size for size in (*named, *loop) if size}) or [1]
    drawn = {}
    for x in signature.parameters:
        if x.name in pins:
            value = draw(pins[x.name])
            if value is None and x.is_array:
                continue
            drawn[x.name] = value
        elif x.has_default and draw(st.booleans()):
            continue
        elif x.is_array:
            shape = _shape(draw, x, named, groups, loop)
            dtype = numpy_dtype(dtypes[x.type_variable])
            drawn[x.name] = draw(_arrays(dtype, shape, given[0], all_bits))
        else:
            drawn[x.name] = draw(_scalars(signature, x, dtypes, given, all_bits))
    return drawn


def _shape(
    draw: Draw, x: Parameter, named: list[int], groups: list[list[int]], loop: list[int]
) -> tuple[int, ...]:
    shape: list[int] = []
    for kind, value in x.dims:
        if kind == "loop":
            shape += loop if x.kind == "inout" else _broadcastable(draw, loop)
        elif kind == "variadic":
            shape += groups[value]
        else:
            shape.append(named[value] if kind == "named" else value)
    return tuple(shape)


def _broadcastable(draw: Draw, loop: list[int]) -> list[int]:
    """Make some sizes 1, now and then."""
    if not draw(st.sampled_from((False, False, True))):
        return loop
    return [1 if draw(st.booleans()) else size for size in loop]


def _arrays(
    dtype: np.dtype[Any], shape: tuple[int, ...], bound: int, all_bits: bool
) -> st.SearchStrategy[Any]:
    if dtype.isbuiltin != 1:  # those of ml_dtypes
        wide = _arrays(np.dtype("float32"), shape, bound, all_bits)
        return wide.map(lambda x: _narrow(x, dtype))
    return hnp.arrays(dtype, shape, elements=_elements(dtype, bound, all_bits))


def _narrow(x: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(dtype)


def _elements(dtype: np.dtype[Any], bound: int, all_bits: bool) -> st.SearchStrategy[Any]:
    if dtype.kind in "iu" and not all_bits:
        return st.integers(0, min(bound, np.iinfo(dtype).max + 1) - 1)
    if dtype.kind == "f" and not all_bits:
        return st.floats(-8, 8, width=16)
    if dtype.kind == "c" and not all_bits:
        return st.builds(complex, st.integers(-8, 8), st.integers(-8, 8))
    return hnp.from_dtype(dtype)


def _scalars(
    signature: Signature, x: Parameter, dtypes: list[str], sizes: list[int], all_bits: bool
) -> st.SearchStrategy[Any]:
    if x.kind == "choice":
        return st.sampled_from(x.choices)
    if x.kind == "string":
        return st.just(x.default) if x.has_default else st.sampled_from(("", "a", "\u00e9"))
    dtype = DTYPES[dtypes[x.type_variable]]
    if dtype.scalar is bool:
        return st.booleans()
    if dtype.scalar is int:
        low = -2 if all_bits and not dtype.name.startswith("u") else 0
        return st.integers(0, sizes[0]) | st.integers(low, sizes[-1] + 2 * all_bits)
    if dtype.scalar is complex:
        return st.builds(complex, st.integers(-2, 2), st.integers(-2, 2))
    return st.floats(width=16) if all_bits else st.floats(-2, 2, width=16)
