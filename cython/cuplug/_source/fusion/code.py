# SPDX-License-Identifier: Apache-2.0
"""Translation of symbols to C: statements that compute them, and the functions that these call."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from cuplug._engine.base.dtypes import DTYPES
from cuplug._source.expressions.expression import narrowed
from cuplug._source.expressions.functions import FUNCTIONS
from cuplug._source.fusion.promotion import dtype_of, expression_kind
from cuplug._source.fusion.symbol import Symbol

_OWN = re.compile(r"__device__ inline T (\w+)\(")  # functions in a preamble


class Text:
    """C that computes symbols from arrays `x0`, `x1` ... and numbers `s0`, `s1` ...

    Attributes
    ----------
    arrays, numbers : list of Symbol
        The inputs: arguments, reduced values, numbers, and constants that have no C literal.
    lines : list of str
        Statements.
    results : list of str
        The names of the symbols' values.
    functions : dict
        The functions that they call, by name.
    bounded : list of tuple
        Symbols of Python integers, the dtypes that must hold them, and how they may exceed these.
    """

    def __init__(self, symbols: Sequence[Symbol]) -> None:
        self.arrays: list[Symbol] = []
        self.numbers: list[Symbol] = []
        self.lines: list[str] = []
        self.functions: dict[str, str] = {}
        self.bounded: list[tuple[Symbol, Any, Any]] = []
        self._names: dict[int, str] = {}
        self.symbols = symbols
        self.results = [self._name(x) for x in symbols]

    @property
    def parameters(self) -> str:
        """The parameters of an operator: "x0: float32[...], s0: float64"."""
        arrays = [f"x{k}: {x.type.name}[...]" for k, x in enumerate(self.arrays)]
        numbers = [f"s{k}: {dtype_of(x.type).name}" for k, x in enumerate(self.numbers)]
        return ", ".join([*arrays, *numbers])

    def function(self, name: str) -> str:
        """Return a function of elements and numbers that returns the only symbol."""
        own = [*(("x", k, x) for k, x in enumerate(self.arrays))]
        own += [("s", k, x) for k, x in enumerate(self.numbers)]
        given = ", ".join(f"const {computed(x)} {letter}{k}" for letter, k, x in own)
        (result,) = self.results
        body = "\n".join([*self.lines, f"return {result};"])
        return f"__device__ inline {computed(self.symbols[0])} {name}({given}) {{\n{body}\n}}"

    def _name(self, x: Symbol) -> str:
        """Return the name of a symbol's value, which is computed once."""
        if id(x) not in self._names:
            self._names[id(x)] = self._new(x)
        return self._names[id(x)]

    def _new(self, x: Symbol) -> str:
        if x.kind in ("array", "reduced"):
            self.arrays.append(x)
            return f"x{len(self.arrays) - 1}"
        if is_number(x):
            self.numbers.append(x)
            return f"s{len(self.numbers) - 1}"
        value = self.value(x, [self._name(part) for part in x.parts])
        name = f"v{len(self.lines)}"
        self.lines.append(f"const {computed(x)} {name} = {value};")
        return name

    def value(self, x: Symbol, parts: list[str]) -> str:
        """Return a symbol as C code, from the names of its parts."""
        if x.kind == "constant":
            return _written(x.given)
        if x.kind == "where":
            condition, yes, no = parts
            if x.dtype == bool:  # compilers emit jumps for these
                return f"({condition} & {yes}) | (!{condition} & {no})"
            return f"{condition} ? {yes} : {no}"
        if x.kind == "cast":
            if x.parts[0].kind != "constant" and x.parts[0].type is int:
                self.bounded.append((x.parts[0], x.type, x.given))
            return _cast(parts[0], dtype_of(x.parts[0].type).name, x.type.name)
        if x.kind == "rounded":
            return _rounded(parts[0], x.type)
        return f"{self._function(x.given, x)}({', '.join(parts)})"

    def _function(self, name: str, x: Symbol) -> str:
        """Return the name of the C function for a function of the standard and a dtype."""
        dtype = x.parts[0].type
        own = f"fused_{name}_{dtype.name}"
        if own not in self.functions:
            function = FUNCTIONS[name]
            function.check(dtype.name)
            kind = expression_kind(name, dtype)
            before = function.preamble(kind)
            expression = function.expressions[kind]
            for helper in _OWN.findall(before):
                before = re.sub(rf"\b{helper}\b", f"{own}_{helper}", before)
                expression = re.sub(rf"\b{helper}\b", f"{own}_{helper}", expression)
            given = ", ".join(f"const T {each}" for each in "xy"[: function.n])
            self.functions[own] = (
                f"#define T {DTYPES[dtype.name].computed}\n{before}\n"
                f"__device__ inline {computed(x)} {own}({given}) {{\n"
                f"enum {{ usual = 0 }};\nreturn ({expression});\n}}\n#undef T"
            )
        return own


def computed(x: Symbol) -> str:
    """Return the C type of a symbol's value."""
    return DTYPES[dtype_of(x.type).name].computed


def is_number(x: Symbol) -> bool:
    """Return whether code gets a symbol as a number: an argument, or one without a C literal."""
    if x.kind != "constant" or isinstance(x.given, (bool, int)):
        return x.kind == "number"
    z = complex(x.given)
    return not (math.isfinite(z.real) and math.isfinite(z.imag))


def _written(x: Any) -> str:
    if isinstance(x, bool):
        return str(int(x))
    if isinstance(x, int):
        return f"(-{-x - 1}ll - 1)" if x < 0 else f"{x}ull" if x >= 1 << 63 else f"{x}ll"
    if isinstance(x, complex):
        return f"complex({x.real!r}, {x.imag!r})"
    return repr(x)


def _rounded(text: str, dtype: Any) -> str:
    """Return a float rounded to the numbers of a narrow dtype."""
    about = ml_dtypes.finfo(dtype)
    numbers = (about.smallest_normal, float(about.smallest_subnormal) * 2**23, about.max)
    given = ", ".join(f"{float(x)!r}f" for x in numbers)
    beyond = "0x7fc00000u" if np.isnan(dtype.type(np.inf)) else "0x7f800000u"
    return f"cuplug_rounded({text}, {23 - about.nmant}, {given}, {beyond})"


def _cast(text: str, given: str, wanted: str) -> str:
    """Return a conversion. Floats are clipped to the range of integers."""
    source, target = DTYPES[given], DTYPES[wanted]
    if source.computed == target.computed:
        return text
    if target.is_narrow:
        return narrowed(text if source.kind != "complex" else f"real({text})")
    if target.kind == "bool":
        return f"({text} != 0)"
    if target.kind == "complex":
        parts = (f"real({text})", f"imag({text})") if source.kind == "complex" else (text, "0")
        return f"({target.computed})complex((double){parts[0]}, (double){parts[1]})"
    if source.kind == "complex":
        text = f"real({text})"
    if target.kind in ("int", "uint") and source.kind in ("float", "complex"):
        is_single = source.computed in ("float", DTYPES["complex64"].computed)
        return f"cuplug_{wanted}_of_{'float' if is_single else 'double'}({text})"
    return f"({target.computed})({text})"
