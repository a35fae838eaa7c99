# SPDX-License-Identifier: Apache-2.0
"""Functions of rows: reductions along the last axis and computations from them, in phases."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from cuplug._engine.base.dtypes import DTYPES
from cuplug._source.expressions.expression import vector_functions
from cuplug._source.expressions.functions import FUNCTIONS, REDUCED
from cuplug._source.fusion.code import is_number
from cuplug._source.fusion.promotion import dtype_of, expression_kind
from cuplug._source.fusion.symbol import Symbol

MOST = 65536  # elements of a row; many threads reduce longer ones
_MOST_OVERLOADS = 16
_LAST = (-1, [-1], (-1,))
_MAY_FAIL = ("floor_divide", "remainder", "pow")  # for integers


@dataclass
class Phase:
    """One pass over the elements of a row."""

    reduced: list[Symbol] = field(default_factory=list)
    # numbers of results with an element for each of the row
    results: list[int] = field(default_factory=list)

    def roots(self, results: Sequence[Symbol]) -> list[Symbol]:
        """Return the computation of each element."""
        return [x.parts[0] for x in self.reduced] + [results[k] for k in self.results]


@dataclass
class Rows:
    """The computation of each row.

    Attributes
    ----------
    results : sequence of Symbol
    kinds : list of str
        For each result: "row", an element for each of the row; "kept", one with the dimension of
        size 1, or "dropped", without it.
    arrays, numbers : list of Symbol
        The inputs.
    phases : list of Phase
    elements : set of int
        The ids of symbols with a value for each element of a row.
    kept : set of int
        The ids of elements that are expensive to compute and that several phases use.
    """

    results: Sequence[Symbol]
    kinds: list[str]
    arrays: list[Symbol]
    numbers: list[Symbol]
    phases: list[Phase]
    elements: set[int]
    kept: set[int]

    def is_element(self, x: Symbol) -> bool:
        """Return whether a symbol has a value for each element of a row."""
        return id(x) in self.elements

    def read_by(self, result: Symbol) -> list[Symbol]:
        """Return the arrays that a result depends on."""
        own = {id(x) for x in _each([result])}
        return [x for x in self.arrays if id(x) in own]

    def signatures(self, name: str) -> list[str]:
        """Return the overloads: arrays have all elements of a row, or one for each row."""
        own: list[set[int]] = [
            {k for k, x in enumerate(self.arrays) if id(x) in _leaves(root)}
            for phase in self.phases
            for root in phase.roots(self.results)
        ]
        found = []
        for sizes in itertools.product("n1", repeat=len(self.arrays)):
            if all(any(sizes[k] == "n" for k in arrays) for arrays in own):
                found.append(self._signature(name, sizes))
        return found

    def _signature(self, name: str, sizes: Sequence[str]) -> str:
        given = [
            f"x{k}: {x.type.name}[..., {size}]"
            for k, (x, size) in enumerate(zip(self.arrays, sizes, strict=True))
        ]
        given += [f"s{k}: {dtype_of(x.type).name}" for k, x in enumerate(self.numbers)]
        dims = {"row": "..., n", "kept": "..., 1", "dropped": "..."}
        outputs = [
            f"r{k}: {x.dtype.name}[{dims[kind]}]"
            for k, (x, kind) in enumerate(zip(self.results, self.kinds, strict=True))
        ]
        listed = ", ".join(outputs)
        made = f"({listed})" if outputs[1:] else listed
        return f"{name}({', '.join(given)}) -> {made} where n <= {MOST}"


def rows_of(results: Sequence[Symbol]) -> Rows | None:
    """Return how results are computed row by row; None if they cannot be."""
    symbols = list(_each(results))
    reduced = [x for x in symbols if x.kind == "reduced"]
    is_one = len(results) == 1 and _is_one_step(results[0], reduced)
    if not reduced or is_one or not all(map(_is_plain, symbols)):
        return None
    kinds: dict[int, str] = {}
    for x in symbols:  # parts precede the symbols that use them
        kind = _kind_of(x, kinds)
        if kind is None:
            return None
        kinds[id(x)] = kind
    levels: dict[int, int] = {}
    for x in symbols:
        below = [levels[id(part)] for part in x.parts]
        levels[id(x)] = max(below, default=0) + (x.kind == "reduced")
    phases = [Phase() for _ in range(max(levels.values()))]
    for x in reduced:
        phases[levels[id(x)] - 1].reduced.append(x)
    last = Phase(results=[k for k, x in enumerate(results) if kinds[id(x)] == "row"])
    phases += [last] if last.results else []
    arrays = [x for x in symbols if x.kind == "array"]
    numbers = [x for x in symbols if is_number(x)]
    of_results = [kinds[id(x)] for x in results]
    if "scalar" in of_results or 1 << len(arrays) > _MOST_OVERLOADS:
        return None
    elements = {key for key, kind in kinds.items() if kind == "row"}
    rows = Rows(results, of_results, arrays, numbers, phases, elements, set())
    rows.kept = _used_again(rows)
    return rows


def _each(results: Sequence[Symbol]) -> Iterator[Symbol]:
    """Yield each symbol once, after its parts."""
    seen: set[int] = set()
    rest = [(x, False) for x in reversed(results)]
    while rest:
        x, is_left = rest.pop()
        if id(x) in seen:
            continue
        if is_left:
            seen.add(id(x))
            yield x
        else:
            rest.append((x, True))
            rest += [(part, False) for part in reversed(x.parts)]


def _leaves(root: Symbol) -> set[int]:
    """Return the ids of the symbols that a value depends on, without the parts of reductions."""
    found: set[int] = set()
    rest = [root]
    while rest:
        x = rest.pop()
        found.add(id(x))
        rest += () if x.kind == "reduced" else x.parts
    return found


def _is_one_step(result: Symbol, reduced: Sequence[Symbol]) -> bool:
    """Return whether a result is one reduction, or computed only from one."""
    leaves = [x for x in _each([result]) if id(x) in _leaves(result) and not x.parts]
    return len(reduced) == 1 and all(x.kind != "array" for x in leaves)


def _is_plain(x: Symbol) -> bool:
    """Return whether rows can compute a symbol: real, cannot fail, reduced along the last axis."""
    kind = DTYPES[dtype_of(x.type).name].kind
    if x.kind == "reduced":
        name, axis, _ = x.given
        return axis in _LAST and kind != "complex" and (name in REDUCED or name in ("mean", "var"))
    fails = x.kind == "call" and kind in ("int", "uint") and x.given in _MAY_FAIL
    return not fails and kind not in ("complex", "storage")


def _kind_of(x: Symbol, kinds: dict[int, str]) -> str | None:
    own = {kinds[id(part)] for part in x.parts} - {"scalar"}
    if x.kind == "array":
        return "row"
    if x.kind == "reduced":
        return ("kept" if x.given[2] else "dropped") if own == {"row"} else None
    if "dropped" in own and len(own) > 1:
        return None
    return "row" if "row" in own else min(own, default="scalar")


def _used_again(rows: Rows) -> set[int]:
    known: set[int] = set()
    again: set[int] = set()
    for phase in rows.phases:
        fresh: set[int] = set()
        rest = phase.roots(rows.results)
        while rest:
            x = rest.pop()
            if takes_long(x):
                if id(x) in known:
                    again.add(id(x))
                    continue
                fresh.add(id(x))
            rest += () if x.kind == "reduced" else x.parts
        known |= fresh
    return again


def takes_long(x: Symbol) -> bool:
    """Return whether a symbol is a function such as exp."""
    return x.kind == "call" and _is_long(x.given, expression_kind(x.given, x.parts[0].type))


@cache
def _is_long(name: str, kind: str) -> bool:
    function = FUNCTIONS[name]
    return bool(vector_functions(function.preamble(kind) + function.expressions[kind]))
