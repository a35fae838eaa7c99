# SPDX-License-Identifier: Apache-2.0
"""Random arguments from signatures, for property tests with Hypothesis.

::

    @given(cuplug.testing.arguments(gather))
    def test_gather(arguments):
        result = gather(**arguments)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cuplug._engine.base import numpy_dtypes
from cuplug._engine.base.dtypes import DTYPES, Dtype
from cuplug._engine.call.operator import Operator
from cuplug._engine.signature.evaluate import (
    ARRAYS,
    LOOP,
    interval,
    shape_of,
)
from cuplug._engine.signature.signature import Parameter, Signature, parse
from cuplug._engine.signature.solver import (
    Limits,
    Names,
    Unsolved,
    element_range,
    solve,
)
from cuplug._integration.author.gradient_arguments import Gradients, misfit

try:
    from hypothesis import reject
    from hypothesis import strategies as st
except ImportError:
    raise ModuleNotFoundError(
        "cuplug.testing needs the package hypothesis: pip install hypothesis"
    ) from None
from cuplug._integration.author.drawing import arrays, ranged_elements, tiled

__all__ = ["arguments", "numpy_dtype"]

Draw = Any
Sizes = st.SearchStrategy[int]
Pins = dict[str, st.SearchStrategy[Any]]
Maker = Callable[[Names], Any]
MOST_USUAL = 6
MAX_BYTES = 1 << 24  # of all arrays of a call
MAX_FAILURES = 10  # of the solver, consecutive
UNLIMITED = (-math.inf, math.inf)
SMALL = st.integers(1, MOST_USUAL)
WITH_EMPTY = st.integers(0, MOST_USUAL)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype of a dtype name, including names of ml_dtypes.

    Examples
    --------
    >>> cuplug.testing.numpy_dtype("float32")
    dtype('float32')
    """
    return numpy_dtypes.numpy_dtype(name)


def arguments(
    operator: Operator | str,
    sizes: Sizes = WITH_EMPTY,
    all_bits: bool = False,
    pinned: Mapping[str, Any] | None = None,
    made: Mapping[str, Maker] | None = None,
) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for the arguments of an operator.

    Parameters
    ----------
    operator : Operator or str
        An operator, or the text of one signature. If it has overloads, any of them is drawn.
    sizes : strategy of int
        Sizes of dimensions to start from: conditions of the signature can require others.
    all_bits : bool
        If True, integers of the whole range, infinities and NaNs, scalars a little below zero and
        beyond all sizes; otherwise integers in 0 <= i < the smallest size (so that they can be
        indices), and finite numbers.
    pinned : dict, optional
        Values, or strategies of them, of scalars, strings and dimensions, by name: they are always
        given. None omits an optional array.
    made : dict, optional
        Functions that return a parameter's value, or a strategy of values, by name: indices,
        addresses, handles. A function receives a dict: the sizes and scalars of the call by name,
        the number of items for a list of arrays, and "shape" and "dtype" for an array.

    Returns
    -------
    strategy of dict
        Name -> NumPy array, scalar or string: to be called as `operator(**arguments)`. Parameters
        with a default are sometimes omitted. If no values satisfy the conditions of the signature,
        ValueError names the conditions when an example is drawn.

    Examples
    --------
    >>> @hypothesis.given(cuplug.testing.arguments(cuplug.ops.relu))
    ... def test_relu(arguments):
    ...     assert (cuplug.ops.relu(**arguments) >= 0).all()
    """
    texts = (operator,) if isinstance(operator, str) else operator.signatures
    signatures = [parse(text) for text in texts]
    made = made or {}
    pins = {
        name: x if isinstance(x, st.SearchStrategy) else st.just(x)
        for name, x in (pinned or {}).items()
    }
    known = {name for s in signatures for name in (*[x.name for x in s.parameters], *s.dim_names)}
    for name in (*pins, *made):
        if name not in known:
            wanted = f"one of {', '.join(sorted(known))}" if known else "no name"
            where = "pinned" if name in pins else "made"
            raise ValueError(f"arguments: {where}: got unknown name {name}, expected {wanted}")
    for s in signatures:
        for x in s.parameters:
            if x.kind == "handle" and not x.has_default and x.name not in (*pins, *made):
                raise ValueError(
                    f"arguments: {x.name}: got no handle[{x.tag}], expected one in pinned; "
                    "an operator of the plugin makes one"
                )
    failures: list[Unsolved] = []
    drawn = st.sampled_from(signatures).flatmap(
        lambda signature: _arguments(_Drawing(signature, sizes, all_bits, pins, made, failures))
    )
    if isinstance(operator, str):
        return drawn
    fitted = drawn.map(Gradients(operator).fitted)
    return fitted.filter(lambda given: not misfit(operator, given))


class _Drawing(NamedTuple):
    """The state from which the arguments of one signature are drawn."""

    signature: Signature
    sizes: Sizes
    all_bits: bool
    pins: Pins
    made: Mapping[str, Maker]
    failures: list[Unsolved]  # since values were last found


@st.composite
def _arguments(draw: Draw, of: _Drawing) -> dict[str, Any]:
    signature = of.signature
    dtypes = [draw(st.sampled_from(names)) for _, names in signature.variables]
    names = {name: draw(pin) for name, pin in of.pins.items()}
    wishes = _size_wishes(draw, of, names)
    loops = {x.name: _loop(draw, x, names[LOOP]) for x in signature.parameters}
    sizes = sorted(x for x in _numbers([*names.values(), *wishes.values()]) if x > 0) or [1]
    limits: dict[str, Limits] = {}
    given = []
    n_each = draw(st.integers(1, 3)) if signature.each_names else 0
    for x in signature.parameters:
        if x.name in of.pins:
            given.append(x)
        elif x.has_default and (_is_unmade(of, x) or draw(st.booleans())):
            names[x.name] = x.default
        else:
            given.append(x)
            _add_wish(draw, of, x, dtypes, sizes, (names, wishes, limits))
            if x.is_each:
                wishes[x.name] = (x,) * n_each
    names = _solved(of, names, wishes, limits, (dtypes, loops))
    bound = min((x for x in _numbers(names.values()) if x > 0), default=1)
    own = [_own_sizes(draw, of, names) for _ in range(n_each)]
    drawn = {
        x.name: _argument(draw, of, x, dtypes, names, (bound, loops[x.name], own)) for x in given
    }
    return {name: value for name, value in drawn.items() if value is not None}


def _is_unmade(of: _Drawing, x: Parameter) -> bool:
    return x.kind == "handle" and x.name not in of.made


def _numbers(values: Iterable[Any]) -> set[int]:
    """Return the sizes among the values of names."""
    parts = [x if isinstance(x, tuple) else (x,) for x in values]
    return {x for part in parts for x in part if type(x) is int}


def _size_wishes(draw: Draw, of: _Drawing, names: Names) -> Names:
    """Draw dimensions and groups of them, and the loop dimensions, which are added to `names`."""
    described = (*of.signature.parameters, *of.signature.outputs)
    groups = {value for x in described for kind, value in x.dims if kind == "variadic"}
    lists = {x.name for x in of.signature.parameters}  # *shape represents the items of one
    wishes: Names = {}
    for number, name in enumerate(of.signature.dim_names):
        if name not in names and name not in lists:
            group = number in groups
            wishes[name] = tuple(draw(st.lists(of.sizes, max_size=2))) if group else draw(of.sizes)
    names[LOOP] = tuple(draw(st.lists(of.sizes, max_size=3)))
    return wishes


def _add_wish(
    draw: Draw,
    of: _Drawing,
    x: Parameter,
    dtypes: list[str],
    sizes: list[int],
    into: tuple[Names, Names, dict[str, Limits]],
) -> None:
    """Draw a value for a parameter that is not an array; for a list of arrays, their number."""
    names, wishes, limits = into
    if x.kind == "arrays":
        wishes[x.name] = (x,) * draw(st.integers(1, 3))
    elif x.kind in ARRAYS or x.name in of.made:
        names[x.name] = (x,) if x.kind in ARRAYS else None
    else:
        dtype = DTYPES[dtypes[x.type_variable]] if x.type_variable >= 0 else None
        allowed = _allowed(of.signature, x, dtypes, wishes | names)
        wishes[x.name] = draw(_values(x, dtype, sizes, of.all_bits, allowed))
        if dtype and dtype.scalar is int and x.kind != "dtype":
            info = np.iinfo(dtypes[x.type_variable])
            limits[x.name] = (int(info.min), int(info.max))
        else:
            limits[x.name] = UNLIMITED


def _solved(
    of: _Drawing, names: Names, wishes: Names, limits: dict[str, Limits], how: tuple[Any, Any]
) -> Names:
    """Return values close to the wishes that satisfy all conditions, for arrays not too large."""
    dtypes, loops = how
    bytes_of = [numpy_dtype(name).itemsize for name in dtypes]

    def accepts(found: Names) -> bool:
        total = 0
        for x in (*of.signature.parameters, *of.signature.outputs):
            if x.kind not in (*ARRAYS, "output") or found.get(x.name, x) is None:
                continue
            shape = shape_of(of.signature, x, found | {LOOP: loops.get(x.name, found[LOOP])})
            total += math.prod(shape) * bytes_of[x.type_variable] * len(found.get(x.name, (x,)))
            elements = element_range(of.signature, x, found) if math.prod(shape) else None
            if total > MAX_BYTES or (elements and elements[0] > elements[1]):
                return False
        return True

    try:
        found = solve(of.signature, names, wishes, limits, accepts)
    except Unsolved as error:
        of.failures.append(error)
        if len(of.failures) >= MAX_FAILURES:
            raise
        reject()
    of.failures.clear()
    return found


def _argument(
    draw: Draw,
    of: _Drawing,
    x: Parameter,
    dtypes: list[str],
    names: Names,
    how: tuple[int, tuple[int, ...], list[Names]],
) -> Any:
    """Return the value of one parameter."""
    bound, loop, own = how
    if x.name in of.pins or (x.kind not in ARRAYS and x.name not in of.made):
        return names[x.name]
    if x.kind not in ARRAYS:
        return _made(draw, of, x, names)
    dtype = numpy_dtype(dtypes[x.type_variable])
    shape = shape_of(of.signature, x, names | {LOOP: loop})
    if x.name in of.made:
        return _made(draw, of, x, names | {"shape": shape, "dtype": dtype})
    ranged = ranged_elements(of.signature, x, dtype, names)
    if ranged is not None and math.prod(shape):
        strategy = tiled(dtype, shape, ranged)
    else:
        strategy = arrays(dtype, shape, bound, of.all_bits)
    if x.is_each:
        shapes = [shape_of(of.signature, x, names | sizes) for sizes in own]
        return [draw(arrays(dtype, shape, bound, of.all_bits)) for shape in shapes]
    items = [draw(strategy) for _ in names[x.name]]
    return items if x.kind == "arrays" else items[0]


def _own_sizes(draw: Draw, of: _Drawing, names: Names) -> Names:
    """Return other sizes for the names whose value differs between items of a list."""
    own = [of.signature.dim_names[k] for k in of.signature.each_names]
    drawn: Names = {name: draw(of.sizes) for name in own if isinstance(names[name], int)}
    groups = [name for name in own if name not in drawn]
    return drawn | {name: tuple(draw(st.lists(of.sizes, max_size=2))) for name in groups}


def _made(draw: Draw, of: _Drawing, x: Parameter, names: Names) -> Any:
    counts = {
        y.name: len(names[y.name] or ()) for y in of.signature.parameters if y.kind == "arrays"
    }
    single = {y.name for y in of.signature.parameters if y.kind in ARRAYS}
    plain = {k: v for k, v in names.items() if k not in (LOOP, *single)} | counts
    value = of.made[x.name](plain)
    return draw(value) if isinstance(value, st.SearchStrategy) else value


def _loop(draw: Draw, x: Parameter, loop: tuple[int, ...]) -> tuple[int, ...]:
    has_loop = x.kind != "inout" and any(kind == "loop" for kind, _ in x.dims)
    return _broadcastable(draw, loop) if has_loop else loop


def _broadcastable(draw: Draw, loop: tuple[int, ...]) -> tuple[int, ...]:
    """Make some sizes 1, sometimes."""
    if not draw(st.sampled_from((False, False, True))):
        return loop
    return tuple(1 if draw(st.booleans()) else size for size in loop)


def _allowed(signature: Signature, x: Parameter, dtypes: list[str], names: Names) -> Limits:
    """Return the range that `where` allows for a scalar."""
    if x.kind != "scalar":
        return UNLIMITED
    step = 1 if DTYPES[dtypes[x.type_variable]].scalar is int else 0
    return interval(signature, x.name, names, step)


def _values(
    x: Parameter,
    dtype: Dtype | None,
    sizes: list[int],
    all_bits: bool,
    allowed: Limits,
) -> st.SearchStrategy[Any]:
    """Return a strategy for a parameter that is not an array."""
    if x.kind == "choice":
        return st.sampled_from(x.choices)
    if x.kind == "dtype":
        assert dtype
        return st.just(dtype.name)
    if x.kind == "string":
        usual = st.sampled_from(("", "a", "\u00e9"))
        return st.just(x.default) if x.default is not None else usual
    assert dtype
    if x.kind == "list":
        return st.lists(_scalars(dtype, sizes, all_bits), max_size=3)
    if dtype.scalar in (int, float) and allowed[0] <= allowed[1] and allowed != UNLIMITED:
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
    """Return numbers of a range, sometimes its ends; of an open range, numbers near its end."""
    if math.isinf(low):
        low = max(high - MOST_USUAL, 0 if dtype.kind == "uint" else -math.inf)
    if math.isinf(high):
        high = low + MOST_USUAL
    if dtype.scalar is int:
        low, high = math.ceil(low), math.floor(high)
        return st.integers(low, high) | st.sampled_from((low, high))
    return st.floats(low, high)
