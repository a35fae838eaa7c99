# SPDX-License-Identifier: Apache-2.0
"""Functions of rows as text: the C code for a row, and for each element in each phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from cuplug._engine.base.dtypes import DTYPES, Dtype
from cuplug._source.expressions.functions import REDUCED, kept_in
from cuplug._source.expressions.reduction_code import WIDE
from cuplug._source.fusion.code import Text, computed, is_number
from cuplug._source.fusion.rows import Rows
from cuplug._source.fusion.symbol import Symbol

_EXTREMES = {"max": "-", "min": ""}


class Accumulator(NamedTuple):
    """A value that combines the elements of a row."""

    name: str
    type: str
    identity: str
    reduce: str  # an expression of a and b
    map: str  # an expression of the element's value, {}


class Loop(NamedTuple):
    """A phase as text: the code before it, run once for a row, and the code for each element."""

    before: list[str]
    arrays: list[int]  # the arrays that it reads, by number
    used: list[int]  # stored values that it uses, by number
    lines: list[str]
    puts: list[tuple[Accumulator, str]]  # values that accumulators combine
    stores: list[tuple[int, str]]  # results, by number
    keeps: list[tuple[int, str]]  # values stored for later phases, by number


@dataclass
class Program:
    """The code of a row, without the loops around it."""

    loops: list[Loop]
    after: list[str]
    results: dict[int, str]  # results with one value for each row
    kept: list[Symbol]
    functions: dict[str, str]
    bounded: list[tuple[Symbol, Any, Any]]

    @property
    def accumulators(self) -> list[Accumulator]:
        """The accumulators of all phases."""
        return [x for loop in self.loops for x, _ in loop.puts]


class _Writer(Text):
    """Names values: values of elements in each phase, and values of the row once."""

    def __init__(self, rows: Rows, keeps: bool) -> None:
        super().__init__(())
        self._rows, self._keeps = rows, keeps
        self._of_row: dict[int, str] = {}
        self._divisors: dict[str, str] = {}  # of the row, by their values
        self._row_lines: list[str] = []
        self._n = 0
        self.kept: list[Symbol] = []
        self.start()

    def start(self) -> None:
        """Begin a phase."""
        self._of_element: dict[int, str] = {}
        self.lines = []
        self.read: list[int] = []
        self.used: list[int] = []
        self.keeps: list[tuple[int, str]] = []

    def before(self) -> list[str]:
        """Return the lines for the row added since the last call."""
        found, self._row_lines = self._row_lines, []
        return found

    def reduced(self, x: Symbol, value: str) -> None:
        """Name the result of a reduction."""
        name = self._of_row[id(x)] = f"r{self._next()}"
        self._row_lines.append(f"const {computed(x)} {name} = {value};")

    def name(self, x: Symbol) -> str:
        """Return the name of a symbol's value."""
        is_element = self._rows.is_element(x)
        names = self._of_element if is_element else self._of_row
        if id(x) not in names:
            names[id(x)] = self._made(x, is_element)
        return names[id(x)]

    def _made(self, x: Symbol, is_element: bool) -> str:
        if is_number(x):
            return f"s{self._index(self._rows.numbers, x)}"
        if x.kind == "array":
            self.read.append(self._index(self._rows.arrays, x))
            return f"x{self.read[-1]}"
        if is_element and any(x is each for each in self.kept):
            self.used.append(self._index(self.kept, x))
            return f"k{self.used[-1]}"
        parts = [self.name(part) for part in x.parts]
        value = self._quotient(x, parts) if is_element else self.value(x, parts)
        name = f"v{self._next()}"
        lines = self.lines if is_element else self._row_lines
        lines.append(f"const {computed(x)} {name} = {value};")
        if is_element and self._keeps and id(x) in self._rows.kept:
            self.keeps.append((len(self.kept), name))
            self.kept.append(x)
        return name

    def _function(self, name: str, x: Symbol) -> str:
        """Return the name of a C function. For rounded results, exp need not be exact."""
        if name == "exp" and DTYPES[x.type.name].is_half:
            return "cuplug_row_exp"
        return super()._function(name, x)

    def _quotient(self, x: Symbol, parts: list[str]) -> str:
        """Return a value. Quotients of floats by a number of the row become products."""
        is_divided = x.kind == "call" and x.given == "divide" and computed(x) == "float"
        if not is_divided or self._rows.is_element(x.parts[1]):
            return self.value(x, parts)
        if parts[1] not in self._divisors:
            name = self._divisors[parts[1]] = f"divisor_{parts[1]}"
            self._row_lines.append(
                f"const cuplug_row_divisor {name} = cuplug_row_divisor_of({parts[1]});"
            )
        near = "near_" if DTYPES[x.type.name].is_narrow else ""
        return f"cuplug_{near}quotient({parts[0]}, {self._divisors[parts[1]]})"

    def _next(self) -> int:
        self._n += 1
        return self._n

    @staticmethod
    def _index(symbols: list[Symbol], x: Symbol) -> int:
        return next(k for k, each in enumerate(symbols) if each is x)


def _accumulators(x: Symbol, number: int) -> tuple[list[Accumulator], str]:
    """Return the accumulators of a reduction, and the result as text."""
    name, result = x.given[0], DTYPES[x.type.name]
    of_sum = name in ("mean", "var")
    reduce, identity, _ = REDUCED["sum" if of_sum else name]
    kind = kept_in(name, result.name) or WIDE.get(result.kind, result.name)
    type_ = DTYPES[kind].computed
    maps = ["{}"] if name in ("sum", "prod", "max", "min", "mean", "var") else ["({} != 0)"]
    if name in _EXTREMES:
        identity = _limit(name, DTYPES[kind])
    if name == "var":  # of distances from the mean: their sum corrects the rounding of the mean
        maps = ["{}", "({0} * {0})"]
    own = [
        Accumulator(f"a{number}_{k}", type_, identity or "0", reduce, of)
        for k, of in enumerate(maps)
    ]
    a, count = own[0].name, f"({type_})n"
    made = {"mean": f"{a} / {count}"}
    if name == "var":
        square = own[1].name
        made["var"] = f"max({square} - {a} * {a} / {count}, ({type_})0) / {count}"
    is_truth = result.kind == "bool"
    return own, made.get(name, f"{a} != 0" if is_truth else f"({result.computed}){a}")


def _limit(name: str, dtype: Dtype) -> str:
    """Return the bound that no element exceeds."""
    if dtype.kind == "float":
        return f"{_EXTREMES[name]}({dtype.computed})cuplug_float_of_bits(0x7f800000u)"
    if dtype.kind == "uint":
        return "0" if name == "max" else f"({dtype.computed})-1"
    least = f"(-({dtype.computed})0x7fffffffffffffff - 1)"
    return least if name == "max" else f"({dtype.computed})0x7fffffffffffffff"


def program_of(rows: Rows, keeps: bool) -> Program:
    """Return the code of a row, with or without memory for values that later phases use."""
    writer, loops, results, number = _Writer(rows, keeps), [], {}, 0
    for phase in rows.phases:
        writer.start()
        puts, pending = [], []
        known: dict[Any, int] = {}
        for x in phase.reduced:
            value = writer.name(x.parts[0])
            key = tuple((each, each.map.format(value)) for each in _accumulators(x, 0)[0])
            own, made = _accumulators(x, known.setdefault(key, number))
            pending.append((x, made))
            # reuses an equal accumulator: a mean and a variance share their sum
            if known[key] == number:
                puts += [(each, each.map.format(value)) for each in own]
                number += 1
        stores = [(k, writer.name(rows.results[k])) for k in phase.results]
        loops.append(
            Loop(
                writer.before(),
                writer.read,
                writer.used,
                writer.lines,
                puts,
                stores,
                writer.keeps,
            )
        )
        for x, made in pending:
            writer.reduced(x, made)
    for k, x in enumerate(rows.results):
        if rows.kinds[k] != "row":
            results[k] = writer.name(x)
    after = writer.before()
    return Program(loops, after, results, writer.kept, writer.functions, writer.bounded)
