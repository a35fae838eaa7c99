# SPDX-License-Identifier: Apache-2.0
"""Random arguments from signatures, for property tests with Hypothesis.

::

    @given(cuplug.testing.arguments(gather))
    def test_gather(arguments):
        result = gather(**arguments)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from cuplug._engine.base import numpy_dtypes
from cuplug._engine.base.dtypes import DTYPES, Dtype
from cuplug._engine.call.operator import Operator
from cuplug._engine.signature.evaluate import (
    ARRAYS,
    LOOP,
    choices,
    conditions_hold,
    elements_hold,
    interval,
    shape_of,
)
from cuplug._engine.signature.signature import Parameter, Signature, parse
from cuplug._engine.signature.steps import NoValue
from cuplug._integration.author.gradient_arguments import Gradients, misfit

try:
    from hypothesis import assume
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
MOST_USUAL = 6
SMALL = st.integers(1, MOST_USUAL)
WITH_EMPTY = st.integers(0, MOST_USUAL)


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
    for s in signatures:
        for x in s.parameters:
            if x.kind == "handle" and not x.has_default and x.name not in pins:
                raise ValueError(
                    f"arguments: {x.name}: got no handle[{x.tag}], expected one in pinned; "
                    "an operator of the plugin makes one"
                )
    drawn = st.sampled_from(signatures).flatmap(
        lambda signature: _arguments(signature, sizes, all_bits, pins)
    )
    if isinstance(operator, str):
        return drawn
    fitted = drawn.map(Gradients(operator).fitted)
    return fitted.filter(lambda given: not misfit(operator, given))


@st.composite
def _arguments(
    draw: Draw, signature: Signature, sizes: Sizes, all_bits: bool, pins: Pins
) -> dict[str, Any]:
    dtypes = [draw(st.sampled_from(names)) for _, names in signature.variables]
    names = {name: draw(pin) for name, pin in pins.items()}
    _draw_sizes(draw, signature, sizes, names)
    given = sorted(size for size in _numbers(names.values()) if size > 0) or [1]
    drawn = {}
    for x in signature.parameters:
        if x.name in pins:
            drawn[x.name] = names[x.name]
        elif x.has_default and (x.kind == "handle" or draw(st.booleans())):
            names[x.name] = x.default
        elif x.kind in ARRAYS:
            # Their places: sizes may be worked out of parameters that come later.
            drawn[x.name] = names[x.name] = (x,) * draw(st.integers(1, 3))
        else:
            allowed = _allowed(signature, x, dtypes, names)
            assume(allowed[0] <= allowed[1])
            found = choices(signature, x.name, names)
            values = _values(x, dtypes, given, all_bits, allowed)
            drawn[x.name] = draw(st.sampled_from(found) if found else values)
            names[x.name] = drawn[x.name]
    assume(conditions_hold(signature, names))
    for name, places in drawn.items():
        if not (isinstance(places, tuple) and places and isinstance(places[0], Parameter)):
            continue
        x = places[0]
        dtype = numpy_dtype(dtypes[x.type_variable])
        shapes = [_shape(draw, signature, x, names) for _ in places]
        own = _ranged_elements(signature, x, dtype, names)
        if own is None:
            arrays = [draw(_arrays(dtype, shape, given[0], all_bits)) for shape in shapes]
        else:
            arrays = [draw(_arrays_of(own, dtype, shape)) for shape in shapes]
        drawn[name] = arrays if x.kind == "arrays" else arrays[0]
    return {name: value for name, value in drawn.items() if value is not None}


def _numbers(values: Iterable[Any]) -> set[int]:
    """Return the sizes among what names stand for."""
    parts = [x if isinstance(x, tuple) else (x,) for x in values]
    return {x for part in parts for x in part if type(x) is int}


def _draw_sizes(draw: Draw, signature: Signature, sizes: Sizes, names: dict[str, Any]) -> None:
    """Add the dimensions and groups of them, in the ranges that `where` says."""
    described = (*signature.parameters, *signature.outputs)
    groups = {value for x in described for kind, value in x.dims if kind == "variadic"}
    lists = {x.name for x in signature.parameters}  # *shape stands for the items of one
    for number, name in enumerate(signature.dim_names):
        if name in names or name in lists:
            continue
        if number in groups:
            names[name] = tuple(draw(st.lists(sizes, max_size=2)))
        else:
            low, high = interval(signature, name, names)
            found = choices(signature, name, names)
            assume(max(low, 0) <= high)
            names[name] = draw(
                st.sampled_from(found) if found else _sizes_between(sizes, low, high)
            )
    names[LOOP] = tuple(draw(st.lists(sizes, max_size=3)))


def _sizes_between(sizes: Sizes, low: float, high: float) -> Sizes:
    if low <= 1 and high >= MOST_USUAL:
        return sizes.filter(lambda size: size >= low)
    first = int(max(low, 0))
    return st.integers(first, int(min(high, first + MOST_USUAL)))


def _shape(
    draw: Draw, signature: Signature, x: Parameter, names: dict[str, Any]
) -> tuple[int, ...]:
    loop = names[LOOP] if x.kind == "inout" else _broadcastable(draw, names[LOOP])
    try:
        shape = shape_of(signature, x, names | {LOOP: loop})
    except NoValue:
        shape = (-1,)
    assume(min(shape, default=0) >= 0)
    return shape


def _broadcastable(draw: Draw, loop: tuple[int, ...]) -> tuple[int, ...]:
    """Make some sizes 1, now and then."""
    if not draw(st.sampled_from((False, False, True))):
        return loop
    return tuple(1 if draw(st.booleans()) else size for size in loop)


def _arrays(
    dtype: np.dtype[Any], shape: tuple[int, ...], bound: int, all_bits: bool
) -> st.SearchStrategy[Any]:
    known = DTYPES[numpy_dtypes.name_of_descr(dtype)]
    if known.kind == "storage":
        unsigned = np.dtype(known.stored.removesuffix("_t"))
        return hnp.arrays(unsigned, shape).map(lambda x: x.view(dtype))
    if dtype.isbuiltin != 1:  # those of ml_dtypes
        wide = _arrays(np.dtype("float32"), shape, bound, all_bits)
        return wide.map(lambda x: _narrow(x, dtype))
    return hnp.arrays(dtype, shape, elements=_elements(dtype, bound, all_bits))


def _ranged_elements(
    signature: Signature, x: Parameter, dtype: np.dtype[Any], names: dict[str, Any]
) -> Sizes | None:
    """Return the elements that `where` allows; None if it says nothing of them."""
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
    """Return the least and the largest element to draw."""
    if dtype.scalar is not int:
        return (0, 1) if dtype.scalar is bool else (-8, 8)
    bits = min(8 * dtype.n_bytes, 63)
    return (0, 2**bits - 1) if dtype.kind == "uint" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _arrays_of(
    elements: Sizes, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> st.SearchStrategy[Any]:
    n = math.prod(shape)
    assume(not (n and elements.is_empty))
    return st.lists(elements, min_size=n, max_size=n).map(
        lambda items: np.array(items).astype(dtype).reshape(shape)
    )


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


def _allowed(
    signature: Signature, x: Parameter, dtypes: list[str], names: dict[str, Any]
) -> tuple[float, float]:
    """Return the range that `where` leaves to a scalar."""
    if x.kind != "scalar":
        return -math.inf, math.inf
    step = 1 if DTYPES[dtypes[x.type_variable]].scalar is int else 0
    return interval(signature, x.name, names, step)


def _values(
    x: Parameter,
    dtypes: list[str],
    sizes: list[int],
    all_bits: bool,
    allowed: tuple[float, float],
) -> st.SearchStrategy[Any]:
    """Return a strategy for what is no array."""
    if x.kind == "choice":
        return st.sampled_from(x.choices)
    if x.kind == "string":
        usual = st.sampled_from(("", "a", "\u00e9"))
        return st.just(x.default) if x.default is not None else usual
    dtype = DTYPES[dtypes[x.type_variable]]
    if x.kind == "list":
        return st.lists(_scalars(dtype, sizes, all_bits), max_size=3)
    if dtype.scalar in (int, float) and allowed != (-math.inf, math.inf):
        return _scalars_between(dtype, *allowed)
    return _scalars(dtype, sizes, all_bits)


def _scalars(dtype: Dtype, sizes: list[int], all_bits: bool) -> st.SearchStrategy[Any]:
    if dtype.scalar is bool:
        return st.booleans()
    if dtype.scalar is int:
        low = -2 if all_bits and dtype.kind == "int" else 0
        return st.integers(0, sizes[0]) | st.integers(low, sizes[-1] + 2 * all_bits)
    if dtype.scalar is complex:
        return st.builds(complex, st.integers(-2, 2), st.integers(-2, 2))
    return st.floats(width=16) if all_bits else st.floats(-2, 2, width=16)


def _scalars_between(dtype: Dtype, low: float, high: float) -> st.SearchStrategy[Any]:
    """Return numbers of a range, its ends now and then; of an open one those near its end."""
    if math.isinf(low):
        low = max(high - MOST_USUAL, 0 if dtype.kind == "uint" else -math.inf)
    if math.isinf(high):
        high = low + MOST_USUAL
    if dtype.scalar is int:
        low, high = math.ceil(low), math.floor(high)
        return st.integers(low, high) | st.sampled_from((low, high))
    return st.floats(low, high)
