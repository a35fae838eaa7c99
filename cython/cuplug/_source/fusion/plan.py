# SPDX-License-Identifier: Apache-2.0
"""The computation of a traced function, with as few operators as possible."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cuplug._engine.base.dtypes import DTYPES
from cuplug._source.expressions.element_wise import elementwise
from cuplug._source.expressions.functions import REDUCED, kept_in
from cuplug._source.expressions.reduction_code import WIDE
from cuplug._source.expressions.reductions import reduction
from cuplug._source.fusion.code import Text
from cuplug._source.fusion.promotion import ufunc_of
from cuplug._source.fusion.rowwise import RowStep, row_step
from cuplug._source.fusion.symbol import Symbol, check_fits

Values = dict[int, Any]  # values of reduced symbols, by the symbols' ids


class Step:
    """One operator: its arguments, and its computation."""

    def __init__(
        self, text: Text, call: Callable[..., Any], fixed: dict[str, Any] | None = None
    ) -> None:
        self.arrays, self.numbers, self.bounded = text.arrays, text.numbers, text.bounded
        self.call, self.fixed = call, fixed or {}

    @property
    def is_reduced(self) -> bool:
        """True for a reduction, whose axes are fixed."""
        return bool(self.fixed)


def _text(symbols: Sequence[Symbol]) -> Text:
    text = Text(symbols)
    if not text.arrays:
        raise TypeError("fuse: got a result that depends on no array, expected one that does")
    return text


def _preamble(*functions: str, **known: str) -> str:
    return "\n".join([*known.values(), *functions])


def _elements(name: str, symbols: Sequence[Symbol], is_apart: bool = False) -> Step:
    """Return the element-wise operator of symbols, or the reduction that computes the only one.

    If `is_apart`, the result of the reduction is always an argument of the operator.
    """
    text = _text(symbols)
    ends = len(symbols) == 1 and not is_apart
    if ends and [x.kind for x in text.arrays] == ["reduced"] and not text.numbers:
        return _reduced(name, text.arrays[0], None if text.arrays[0] is symbols[0] else text)
    outputs = ", ".join(f"r{k}: {x.dtype.name}[...]" for k, x in enumerate(symbols))
    stores = [f"r{k} = {result};" for k, result in enumerate(text.results)]
    made = elementwise(
        f"{name}({text.parameters}) -> {f'({outputs})' if symbols[1:] else outputs}",
        "\n".join([*text.lines, *stores]),
        preamble=_preamble(**text.functions),
        doc=f"{name}, fused.",
    )
    return Step(text, made)


def _reduced(name: str, symbol: Symbol, after: Text | None) -> Step:
    """Return the reduction of a symbol. `after` is computed from its result."""
    reduced, axis, keepdims = symbol.given
    text = _text(symbol.parts)
    reduce, identity, mapped = REDUCED["sum" if reduced in ("mean", "var") else reduced]
    names = [f"x{k}" for k in range(len(text.arrays))] + [f"s{k}" for k in range(len(text.numbers))]
    value, post = f"fused_map({', '.join(names)})", "a / n" if reduced == "mean" else "a"
    result, functions = symbol.type.name, [text.function("fused_map")]
    known = dict(text.functions)
    kind = DTYPES[result]
    accumulate = kept_in(reduced, result) or WIDE.get(kind.kind, result)
    mapped = value if mapped is None else f"{value} != 0"
    if reduced == "var":  # of distances from the mean: their sum corrects the rounding of the mean
        post = "max(a.square - a.sum * a.sum / n, 0) / n"
        kept = "double" if result == "float64" else "float"
        mapped = f"{kept} d = {value}; sum = d; square = d * d"
        reduce = "sum = a.sum + b.sum; square = a.square + b.square"
        identity, accumulate = "sum = 0; square = 0", f"sum: {accumulate}, square: {accumulate}"
    if after is not None:
        post, result = f"fused_post({post})", after.symbols[0].dtype.name
        functions.append(after.function("fused_post"))
        known |= after.functions
    made = reduction(
        f"{name}({text.parameters}) -> {result}[...]",
        map=mapped,
        reduce=reduce,
        identity=identity,
        post=post,
        accumulate=accumulate,
        preamble=_preamble(*functions, **known),
        doc=f"{name}, fused.",
    )
    axes = tuple(axis) if isinstance(axis, list | tuple) else None if axis is None else (axis,)
    return Step(text, made, {"axis": axes, "keepdims": keepdims})


def number_in(x: Symbol, args: Any) -> Any:
    """Return the value of a symbol computed only from numbers, for the arguments of a call."""
    if x.kind in ("number", "constant"):
        return args[x.given] if x.kind == "number" else x.given
    parts = [number_in(part, args) for part in x.parts]
    if x.kind == "where":
        return parts[1] if parts[0] else parts[2]
    with np.errstate(all="ignore"):
        found = parts[0] if x.kind in ("cast", "rounded") else ufunc_of(x.given)(*parts)
        return x.dtype.type(found).item()


def _stored(x: Symbol) -> Symbol:
    """Return the computation of a result without its final rounding, which storing does."""
    return x.parts[0] if x.kind == "rounded" else x


def _is_rounded(x: Symbol) -> bool:
    """Return whether a result is the reduction itself, rounded to 16 or 8 bits."""
    return x.kind == "cast" and x.parts[0].kind == "reduced"


def _read_again(results: Sequence[Symbol]) -> set[int]:
    """Return the ids of reduced symbols that results depend on, other than by rounding one."""
    rest = [part for x in results for part in (x.parts[0].parts if _is_rounded(x) else (x,))]
    seen: dict[int, Symbol] = {}
    while rest:
        x = rest.pop()
        if id(x) not in seen:
            seen[id(x)] = x
            rest += x.parts
    return {key for key, x in seen.items() if x.kind == "reduced"}


class Plan:
    """Operators for the symbols that a traced function returned."""

    def __init__(self, name: str, result: Any, parameters: Sequence[str]) -> None:
        self._name, self._result, self._parameters = name, result, parameters
        self._steps: dict[Any, Step] = {}
        parts = list(result) if isinstance(result, (tuple, list)) else [result]
        self._parts = parts
        self._symbols = [_stored(x) for x in parts if isinstance(x, Symbol)]
        if not self._symbols:
            raise TypeError(f"fuse: {name}: got a function that returns no array, expected one")
        self._rows = row_step(name, self._symbols)
        again = _read_again(self._symbols)
        self._apart = [
            _elements(name, (x,), _is_rounded(x) and id(x.parts[0]) in again) for x in self._symbols
        ]
        read = [{id(leaf) for leaf in step.arrays} for step in self._apart]
        self._read_alike = all(each == read[0] for each in read)
        self._may_join = not any(
            step.is_reduced or any(x.kind == "reduced" for x in step.arrays) for step in self._apart
        )

    def __call__(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Compute the function of the arguments."""
        if self._rows is not None and self._rows.has_one_shape(args):
            try:
                made = self._run(self._rows, args, {}, keywords)
            except (TypeError, ValueError):  # long rows, or rows of different shapes
                return self.by_steps(args, keywords)
            return self._returned(list(made) if self._symbols[1:] else [made])
        return self.by_steps(args, keywords)

    def by_steps(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Compute with an operator for each reduction, and others for the remaining code."""
        if len(self._symbols) == 1:
            found = [self._run(self._apart[0], args, {}, keywords)]
        else:
            found = self._several(args, keywords)
        return self._returned(found)

    def _returned(self, found: Sequence[Any]) -> Any:
        """Return results in the structure that the function returns."""
        if not isinstance(self._result, (tuple, list)):
            return found[0]
        rest = iter(found)
        return type(self._result)(next(rest) if isinstance(x, Symbol) else x for x in self._parts)

    def _several(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
        """Compute all results in one call if they have one shape."""
        if self._may_join and (self._read_alike or self._have_one_shape(args)):
            step = self._step(tuple(self._symbols))
            return list(self._run(step, args, {}, keywords))
        if "out" in keywords:
            raise TypeError(f"{self._name}: out: got several operators, expected results of one")
        done: Values = {}
        return [
            self._value(x, args, done, keywords)
            if x.kind == "reduced"
            else self._run(step, args, done, keywords)
            for x, step in zip(self._symbols, self._apart, strict=True)
        ]

    def _have_one_shape(self, args: Sequence[Any]) -> bool:
        shapes = {
            np.broadcast_shapes(*(tuple(args[x.given].shape) for x in step.arrays))
            for step in self._apart
        }
        return len(shapes) == 1

    def _run(
        self,
        step: Step | RowStep,
        args: Sequence[Any],
        done: Values,
        keywords: Mapping[str, Any],
    ) -> Any:
        inner = {key: value for key, value in keywords.items() if key != "out"}
        given = [self._value(x, args, done, inner) for x in step.arrays]
        for x, dtype, beyond in step.bounded:
            check_fits(number_in(x, args), dtype, beyond)
        for x in step.numbers:
            number = args[x.given] if x.kind == "number" else x.given
            given.append(number.item() if isinstance(number, np.generic) else number)
        try:
            return step.call(*given, **step.fixed, **keywords)
        except (TypeError, ValueError) as error:
            self._explain(step, error)
            raise

    @property
    def direct(self) -> tuple[Any, ...] | None:
        """The only operator of the function, which takes its arguments, for `remember`."""
        step = self._rows or self._apart[0]
        leaves = [*step.arrays, *step.numbers]
        is_plain = all(x.kind in ("array", "number") for x in leaves) and not step.bounded
        if not isinstance(self._result, Symbol) or not is_plain:
            return None
        order = tuple([x.given for x in leaves])
        return step.call, order, step.fixed, functools.partial(self._otherwise, step)

    def _otherwise(
        self, step: Step | RowStep, error: Exception, args: Sequence[Any], keywords: dict[str, Any]
    ) -> Any:
        """Compute by steps if rows are long; else raise the operator's error."""
        if step is self._rows:
            return self.by_steps(args, keywords)
        self._explain(step, error)
        raise error

    def _explain(self, step: Step | RowStep, error: Exception) -> None:
        error.args = (self._with_parameters(step, str(error)), *error.args[1:])

    def _with_parameters(self, step: Step | RowStep, message: str) -> str:
        """Return a step's message with the names of the function's parameters."""
        if not message.startswith(f"{self._name}: "):
            return message
        leaves = {"x": step.arrays, "s": step.numbers}
        message = re.sub(rf"^({self._name}: )r\d+(?=: )", r"\1out", message)

        def name(found: re.Match[str]) -> str:
            for leaf in leaves[found[1]][int(found[2]) :][:1]:
                if leaf.kind in ("array", "number"):
                    return self._parameters[leaf.given]
            return found[0]

        return re.sub(r"\b([xs])(\d+)\b", name, message)

    def _value(
        self, x: Symbol, args: Sequence[Any], done: Values, keywords: Mapping[str, Any]
    ) -> Any:
        if x.kind == "array":
            return args[x.given]
        if id(x) not in done:
            done[id(x)] = self._run(self._step((x,)), args, done, keywords)
        return done[id(x)]

    def _step(self, symbols: tuple[Symbol, ...]) -> Step:
        key = tuple(map(id, symbols))
        if key not in self._steps:
            self._steps[key] = _elements(self._name, symbols)
        return self._steps[key]
