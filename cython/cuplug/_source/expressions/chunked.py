# SPDX-License-Identifier: Apache-2.0
"""Reductions and scans of arrays in chunks: the operators for each chunk, and for their results.

A reduction is `aggregate` of the values that `chunk` returns for each chunk. `combine` reduces some
of these values to one, in a tree. A scan applies `chunk` to each chunk, `combine` to the last value
of the chunks before it and each of its values, and `aggregate` to each value.

A value has the dtypes in which the operator accumulates, so nothing is rounded between chunks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.call.operator import Operator
from cuplug._engine.signature.variant import Variant
from cuplug._source.expressions.element_wise import UNNAMED, elementwise
from cuplug._source.expressions.expression import Name, uses
from cuplug._source.expressions.reduction_code import Reduction as Code
from cuplug._source.expressions.reduction_code import is_statements
from cuplug._source.expressions.reductions import code_of_reduction, reduction
from cuplug._source.expressions.scans import code_of_scan, scan

__all__ = ["Chunked", "chunked"]

N_ELEMENTS = "n_elements"  # the parameter of `aggregate` for the `n` of `post`
_GIVEN = "given_{}"  # the parameters of `combine` and `aggregate` for the values of `chunk`
_FIRST, _SECOND = "first_{}", "second_{}"  # the parameters of a scan's `combine`
_BETTER = "(({0}) || (!({1}) && b.index < a.index)) ? b : a"


class Chunked(NamedTuple):
    """The operators that compute a reduction or a scan of an array in chunks.

    Attributes
    ----------
    chunk : Operator
        Takes the arguments of the operator, of one chunk. Returns values.
    inclusive : Operator or None
        For an exclusive scan: the inclusive one, whose last value is the value of a chunk.
    combine : Operator
        For a reduction: takes values along an axis. For a scan: takes two values. Returns values.
    aggregate : Operator
        Takes values, along an axis for a reduction, and `n_elements` if `counts` is true.
    scalars : tuple of str
        The names of the scalars that each of these operators takes.
    counts : bool
        True if `aggregate` takes the number of elements that were reduced.
    is_chosen : bool
        True if a value is an element and its number in the chunk.
    has_identity : bool
        True if a chunk without elements has a value.
    """

    chunk: Operator
    inclusive: Operator | None
    combine: Operator
    aggregate: Operator
    scalars: tuple[str, ...]
    counts: bool
    is_chosen: bool
    has_identity: bool


def chunked(operator: Operator, dtypes: Sequence[str]) -> Chunked | None:
    """Return the operators for chunks of a reduction or a scan; None if it needs the whole array.

    Parameters
    ----------
    operator : Operator
    dtypes : sequence of str
        The dtypes of its arrays, then of its outputs.
    """
    made: Any = operator.__reduce__()
    function = getattr(made[0], "func", None)
    if function not in (reduction, scan):
        return None
    return _chunked(function, made[1][0], tuple(made[0].keywords.items()), tuple(dtypes))


@cache
def _chunked(
    function: Any, signature: str, keywords: tuple[Any, ...], dtypes: tuple[str, ...]
) -> Chunked | None:
    given = dict(keywords)
    names = ("reduce", "choose", "map", "post", "identity", "accumulate", "stop", "preamble")
    texts = [given[name] for name in names if name in given]
    if function is reduction:
        code = code_of_reduction(signature, texts)[1]
    else:
        code = code_of_scan(signature, texts, given["exclusive"])[1]
    is_numbered = code.counts and not code.choose
    if is_numbered or (code.choose and code.identity is not None):
        return None  # an element's number in a chunk is not its number in the array
    # the size of a chunk is not the size of the array
    if any(x.kind != "scalar" for x in code.names.scalars):
        return None
    maker = _Maker(code, Variant(-1, dtypes), given["preamble"], given["options"])
    return maker.of_reduction(given["stop"]) if function is reduction else maker.of_scan()


class _Maker:
    """The parts of the operators of one reduction or scan: texts with known dtypes."""

    def __init__(self, code: Code, variant: Variant, preamble: str, options: Any) -> None:
        self.code, self.options, known = code, options, code.names.dtypes(variant)
        self.known = {key: dtype.name for key, dtype in known.items()}
        accumulated = code.accumulators(variant)
        self.fields = {name: dtype.name for name, dtype in accumulated.items()}
        if code.logic:
            self.fields = {"of": "bool"}
        if len(self.fields) == 1:
            self.fields = {"value": next(iter(self.fields.values()))}
        variables = [name for name in self.known if name not in DTYPES]
        defined = [f"typedef {known[name].computed} {name};" for name in variables]
        self.preamble = "\n".join([*defined, preamble])
        self.accumulate = None
        if len(self.fields) > 1:
            self.accumulate = ", ".join(f"{x}: {dtype}" for x, dtype in self.fields.items())
        elif code.accumulate is not None or not self._keeps_dtype():
            self.accumulate = self.fields["value"]

    def _keeps_dtype(self) -> bool:
        """Return whether values have the output's dtype. The code then needs no other dtype."""
        return self.fields["value"] == self.known[self.code.outputs[0].variable]

    # ---- Signatures ----

    def _row(self, inputs: Iterable[str], outputs: Iterable[str]) -> str:
        scalars = [f"{x.name}: {self.known[x.variable]}" for x in self.code.names.scalars]
        results = list(outputs)
        result = f"({', '.join(results)})" if results[1:] else results[0]
        return f"{self.code.names.operator}({', '.join([*inputs, *scalars])}) -> {result}"

    def _arrays(self, names: Iterable[Name]) -> list[str]:
        named = [f"{x.name}: {self.known[x.variable]}[...]" for x in names]
        return [text.removeprefix(f"{UNNAMED}: ") for text in named]

    def _values(self, pattern: str = "{}") -> list[str]:
        return [f"{pattern.format(x)}: {dtype}[...]" for x, dtype in self.fields.items()]

    def _results(self, pattern: str = "{}") -> list[str]:
        """Return the values as outputs.

        A single value is unnamed, since an input may have its name.
        """
        values = self._values(pattern)
        return values if values[1:] else [values[0].partition(": ")[2]]

    # ---- Reductions ----

    def of_reduction(self, stop: str | None) -> Chunked:
        """Return the operators of a reduction."""
        code, is_chosen = self.code, bool(self.code.choose)
        same = {"identity": code.identity, "preamble": self.preamble, "options": self.options}
        chunk = reduction(
            self._row(self._arrays(code.inputs), self._results()),
            map=code.map,
            stop=stop,
            accumulate=self.fields["value"] if is_chosen else self.accumulate,
            **({"choose": code.choose} if is_chosen else {"reduce": code.reduce}),
            **({"post": "value = a; index = i"} if is_chosen else {}),
            **same,
        )
        names = {x: _GIVEN.format(x) for x in self.fields}
        given, mapped = self._values(_GIVEN), "; ".join(f"{x} = {names[x]}" for x in names)
        same |= {"accumulate": self.accumulate, "reduce": self._reduce()}
        same["map"] = mapped if len(names) > 1 else names["value"]
        # since the names are the same, the code is compiled once
        if self._has_elements_as_values():
            given, same["map"] = self._arrays(code.inputs), code.map
        combine = reduction(self._row(given, self._results()), **same)
        post, counts = code.post, uses(code.post, "n")
        if is_chosen:
            post = _renamed(post, {"a": "a.value", "i": "a.index"})
        if counts:
            post, given = _renamed(post, {"n": N_ELEMENTS}), [*given, f"{N_ELEMENTS}: int64"]
        aggregate = reduction(self._row(given, self._arrays(code.outputs)), post=post, **same)
        return self._made(chunk, None, combine, aggregate, counts)

    def _has_elements_as_values(self) -> bool:
        """Return whether the reduced values are the elements themselves."""
        x = self.code.inputs[0]
        is_same = self.fields == {"value": self.known[x.variable]}
        return is_same and len(self.code.inputs) == 1 and self.code.map.strip() == x.name

    def _reduce(self) -> str:
        """Return the text that reduces two values, which may be chosen elements."""
        if not self.code.choose:
            return self.code.reduce
        a, b = "a.value", "b.value"
        better, worse = (_renamed(self.code.choose, {"a": x, "b": y}) for x, y in ((a, b), (b, a)))
        return _BETTER.format(better, worse)

    # ---- Scans ----

    def of_scan(self) -> Chunked:
        """Return the operators of a scan."""
        code = self.code
        row = self._row(self._arrays(code.inputs), self._results())
        same = {"preamble": self.preamble, "options": self.options}
        texts = {"map": code.map, "reduce": code.reduce, "accumulate": self.accumulate, **same}
        texts["identity"] = code.identity
        inclusive = scan(row, **texts) if code.exclusive else None
        chunk = scan(row, exclusive=bool(code.exclusive), **texts)
        same["preamble"] += self._structure()
        combine = elementwise(
            self._row([*self._values(_FIRST), *self._values(_SECOND)], self._results("new_{}")),
            self._of_values({"a": _FIRST, "b": _SECOND}, code.reduce, "new_{}"),
            **same,
        )
        post, counts, given = code.post, uses(code.post, "n"), self._values(_FIRST)
        if counts:
            post = _renamed(post, {"n": N_ELEMENTS})
            given = [*given, f"{N_ELEMENTS}: int64[...]"]
        outputs = self._arrays(code.outputs)
        if len(self.fields) > 1 and not is_statements(post):
            outputs, post = [f"result: {outputs[0]}"], f"result = ({post})"
        text = self._of_values({"a": _FIRST}, post)
        aggregate = elementwise(self._row(given, outputs), text, **same)
        return self._made(chunk, inclusive, combine, aggregate, counts)

    def _structure(self) -> str:
        """Return the type of a value that has fields."""
        if len(self.fields) == 1:
            return ""
        members = " ".join(f"{DTYPES[x].computed} {name};" for name, x in self.fields.items())
        return f"\ntypedef struct {{ {members} }} part_of_scan;"

    def _of_values(self, values: dict[str, str], text: str, result: str = "") -> str:
        """Return an expression with `a` and `b` as values, which are arrays of an operator."""
        if len(self.fields) == 1:
            return _renamed(text, {x: pattern.format("value") for x, pattern in values.items()})
        lines = [
            f"const part_of_scan {x} = {{{', '.join(pattern.format(f) for f in self.fields)}}};"
            for x, pattern in values.items()
        ]
        if not result:
            return "\n".join([*lines, f"{text};"])
        assigned = [f"{result.format(x)} = made_of_two.{x};" for x in self.fields]
        if is_statements(text):
            named = {x: f"made_of_two.{x}" for x in self.fields}
            lines += ["part_of_scan made_of_two;", f"{_renamed(text, named)};"]
        else:
            lines.append(f"const part_of_scan made_of_two = ({text});")
        return "\n".join([*lines, *assigned])

    def _made(
        self, chunk: Any, inclusive: Any, combine: Any, aggregate: Any, counts: bool
    ) -> Chunked:
        scalars = tuple(x.name for x in self.code.names.scalars)
        has_identity = self.code.identity is not None
        chosen = bool(self.code.choose)
        return Chunked(chunk, inclusive, combine, aggregate, scalars, counts, chosen, has_identity)


def _renamed(text: str, names: dict[str, str]) -> str:
    """Return C text with other names, except for members of structures."""
    pattern = rf"(?<![\w.])(?:{'|'.join(map(re.escape, names))})\b"
    return re.sub(pattern, lambda found: names[found[0]], text)
