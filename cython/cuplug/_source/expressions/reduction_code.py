# SPDX-License-Identifier: Apache-2.0
"""The code of reductions and scans for a variant: types, names, the user's texts as functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from cuplug._engine.base.dtypes import DTYPES, Dtype
from cuplug._engine.signature.variant import Variant
from cuplug._source.expressions.expression import (
    HOST,
    Name,
    Names,
    load,
    narrowed,
    numbers,
    preamble,
    prelude,
    quoted,
    returned,
    store,
    types,
    unpacked,
    uses,
)

WIDE = {"bool": "int64", "int": "int64", "uint": "uint64"}  # kind -> accumulator
FIELD = re.compile(r"\s*(\w+)\s*:\s*(\w+)\s*")
_ASSIGNMENT = re.compile(r";|(?<![=!<>])=(?!=)")
# reduce -> the same for values that are 0 or 1, without a jump; condition for a final value
_LOGICAL = {"a||b": ("a | b", "a"), "a&&b": ("a & b", "!a")}
_CHOICE = re.compile(r"\?|&&|\|\||\bif\b|\bf?(?:min|max)\b")
_EXTREMES = ("max(a,b)", "max(b,a)", "min(a,b)", "min(b,a)")


def is_statements(text: str) -> bool:
    """Return whether a text assigns names and is not an expression."""
    return _ASSIGNMENT.search(text) is not None


def read_fields(text: str) -> dict[str, str]:
    """Return the fields of "value: T, index: int64"; none for a dtype."""
    matches = [FIELD.fullmatch(part) for part in text.split(",")] if ":" in text else []
    if None in matches:
        raise ValueError(f"accumulate: got {text!r}, expected a dtype, or 'name: dtype, ...'")
    return {found[1]: found[2] for found in matches if found}


class Reduction(NamedTuple):
    """The computation of a reduction: `post` of all `map`s, which `reduce` combines."""

    names: Names
    map: str
    reduce: str
    post: str
    identity: str | None
    preamble: str
    accumulate: str | None  # a dtype or fields; None: the outputs' dtypes
    stop: str | None  # a condition on `a`: further values do not change it
    choose: str | None = None  # instead of `reduce`: whether b replaces a
    exclusive: bool | None = None  # in a scan: whether an output excludes its own element

    @property
    def inputs(self) -> tuple[Name, ...]:
        """The arrays that are read."""
        return self.names.arrays[: len(self.names.arrays) - len(self.outputs)]

    @property
    def outputs(self) -> list[Name]:
        """The arrays that are written."""
        return self.names.outputs

    @property
    def counts(self) -> bool:
        """True if the code uses the numbers of elements, `i`."""
        return bool(self.choose) or (uses(self.map, "i") and "i" not in self.names.words)

    @property
    def logic(self) -> tuple[str, str] | None:
        """The combination of values that are 0 or 1, and the condition to stop; else None."""
        outputs = [x.variable for x in self.outputs]
        is_plain = outputs == ["bool"] and self.accumulate is None
        return _LOGICAL.get(self.reduce.replace(" ", "")) if is_plain else None

    @property
    def is_extreme(self) -> bool:
        """True if the result is one of the elements, unchanged."""
        texts = (self.map, self.post, self.identity, self.accumulate, self.stop, self.preamble)
        variables = {x.variable for x in (self.inputs[0], *self.outputs)}
        is_plain = texts == (self.inputs[0].name, "a", None, None, None, "")
        is_one = len(variables) == len(self.outputs) == 1
        return is_plain and is_one and self.reduce.replace(" ", "") in _EXTREMES

    @property
    def is_idempotent(self) -> bool:
        """True if elements may be combined several times."""
        return self.logic is not None or self.is_extreme

    @property
    def has_choices(self) -> bool:
        """True if conditions choose between elements."""
        text = f"{self.map};{self.reduce};{self.preamble}"
        return bool(self.choose) or _CHOICE.search(text) is not None

    @property
    def stops(self) -> str | None:
        """The condition under which the remaining elements do not matter."""
        return self.stop or (self.logic[1] if self.logic else None)

    @property
    def fields(self) -> dict[str, str]:
        """The names of the combined values, with dtypes or type variables; {} for one number."""
        if self.choose:
            return {"value": self.accumulate or self.inputs[0].variable, "index": "int64"}
        if self.accumulate is not None:
            return read_fields(self.accumulate)
        return {x.name: "" for x in self.outputs} if len(self.outputs) > 1 else {}

    def accumulators(self, variant: Variant) -> dict[str, Dtype]:
        """Return the dtypes in which values are combined. As in NumPy, narrow ones are widened."""
        dtypes = self.names.dtypes(variant)
        wide = {x.name: self._wider(dtypes[x.variable]) for x in self.outputs}
        if not self.fields:
            given = self.accumulate or self._flag(dtypes) or self._extreme(variant)
            return {"of": DTYPES[given] if given else next(iter(wide.values()))}
        known = DTYPES | dtypes
        found = {name: known[kind] if kind else wide[name] for name, kind in self.fields.items()}
        return {name: DTYPES["float32"] if x.is_narrow else x for name, x in found.items()}

    def _flag(self, dtypes: dict[str, Dtype]) -> str | None:
        """Return an integer dtype as wide as the first array: comparisons need no conversion."""
        n_bytes = min(dtypes[self.inputs[0].variable].n_bytes, 8)
        return f"uint{8 * n_bytes}" if self.logic else None

    def _extreme(self, variant: Variant) -> str | None:
        """Return the elements' own integer dtype on the host: vectors hold more narrow elements."""
        dtype = self.names.dtypes(variant)[self.outputs[0].variable]
        is_kept = variant.on_host and dtype.kind in WIDE and self.is_extreme
        return ("uint8" if dtype.kind == "bool" else dtype.name) if is_kept else None

    @staticmethod
    def _wider(output: Dtype) -> Dtype:
        return DTYPES["float32" if output.is_narrow else WIDE.get(output.kind, output.name)]

    def texts(self) -> dict[str, str]:
        """Return the user's texts, by the names that error messages use."""
        name = self.names.operator
        texts = {f"{name} map": self.map, f"{name} reduce": self.reduce, f"{name} post": self.post}
        texts |= {f"{name} identity": self.identity or "", f"{name} stop": self.stop or ""}
        texts |= {f"{name} choose": self.choose or ""}
        return texts | {f"{name} preamble": self.preamble}

    def value_type(self, variant: Variant) -> str:
        """Return the definition of the type `cuplug_value`."""
        accumulators = self.accumulators(variant)
        if not self.fields:
            return f"typedef {accumulators['of'].computed} cuplug_value;"
        members = " ".join(f"{x.computed} {name};" for name, x in accumulators.items())
        return f"typedef struct cuplug_value {{ {members} }} cuplug_value;"

    def functions(self, variant: Variant) -> str:
        """Return the expressions as functions: `cuplug_map` and so on."""
        code = _Functions(self, variant)
        a = "const cuplug_value a"
        dtypes = self.names.dtypes(variant)
        own = [f"const {dtypes[x.variable].computed} {x.name}" for x in self.inputs]
        index = "const int64_t i" if self.counts else "const int64_t"
        functions = [
            code.of_value("map", [*own, index], self.map),
            *(code.choosing() if self.choose else code.reducing(self.reduce)),
            code.of_value("identity", [], self.identity),
            code.of_outputs([a, "const int64_t n"], self.post),
            code.of_truth("stops", [a], self.stops),
        ]
        return "\n".join(functions)

    def held(self, dtype: Dtype, variant: Variant) -> str:
        """Return the C type of elements in the code.

        On the host, float16 is float, except in scans, which read elements in place.
        """
        is_float = variant.on_host and dtype.name == "float16" and self.exclusive is None
        return "float" if is_float else dtype.stored

    def element(self, variant: Variant, place: str) -> str:
        """Return the function that maps stored values, which are `place` for each array."""
        dtypes, values = self.names.dtypes(variant), []
        for x in self.inputs:
            dtype, at = dtypes[x.variable], place.format(x.name)
            is_same = self.held(dtype, variant) == dtype.computed
            values.append(at if is_same else load(dtype, at))
        listed = ", ".join(["given", *values, "i"])
        return (
            "__device__ inline cuplug_value cuplug_element(const cuplug_numbers given, "
            f"const cuplug_places p, int64_t at, int64_t i) {{ return cuplug_map({listed}); }}"
        )

    def lists(self, variant: Variant) -> str:
        """Return the lines that the templates repeat for each array."""
        dtypes, n = self.names.dtypes(variant), len(self.inputs)
        each = []
        for k, x in enumerate(self.names.arrays):
            dtype = dtypes[x.variable]
            is_held = k >= n or self.held(dtype, variant) == dtype.stored
            each.append(f"DO({k}, {x.name}, {dtype.stored if is_held else 'cuplug_half'})")
        results = " ".join(f"{dtypes[x.variable].stored} {x.name};" for x in self.outputs)
        return f"""#define CUPLUG_EACH_INPUT(DO) {" ".join(each[:n])}
#define CUPLUG_EACH_OUTPUT(DO) {" ".join(each[n:])}
typedef struct cuplug_results {{ {results} }} cuplug_results;"""

    def head(self, variant: Variant) -> str:
        """Return the code before the loops, up to the positions of elements."""
        code = f"""{self.value_type(variant)}
{preamble(self.preamble, self.names, variant)}
{numbers(self.names, variant)}
{self.lists(variant)}
{self.functions(variant)}
"""
        host = HOST if self.exclusive is None else (*HOST, "host/scalar_halves.h")
        return f"{prelude(variant, code, host)}\n{types(self.names, variant, code)}"


_CHOSEN = "cuplug_chosen"
_MADE = "cuplug_value made; made.value = value; made.index = i; return made;"


class _Functions(NamedTuple):
    """The user's texts as functions."""

    op: Reduction
    variant: Variant

    def of_value(self, part: str, parameters: list[str], text: str | None) -> str:
        """Return a function that returns a `cuplug_value`."""
        if text is None:
            zero = "{0}" if self.variant.on_host else "{}"
            return self._function(
                "cuplug_value", part, [], f"cuplug_value zero = {zero}; return zero;"
            )
        dtypes = self.op.accumulators(self.variant)
        if self.op.logic:
            text, as_bool = (self.op.logic[0], "") if part == "reduce" else (text, " != 0")
            body = f"return ({quoted(text, self._name(part), f'){as_bool};')}"
        elif self.op.choose:
            value = returned(
                dtypes["value"], text, self._name(part), "value =", self.variant.on_host
            )
            body = f"{dtypes['value'].computed} value; {value} {_MADE}"
        elif self.op.fields and not is_statements(text):
            body = f"return ({quoted(text, self._name(part), ');')}"
        elif not self.op.fields:
            body = returned(dtypes["of"], text, self._name(part), "return", self.variant.on_host)
        else:
            body = self._assigned("cuplug_value", part, dtypes, {n: n for n in dtypes}, text)
        return self._function("cuplug_value", part, parameters, body)

    def reducing(self, text: str) -> list[str]:
        """Return the function that combines two values, under both of its names."""
        pair = ["const cuplug_value a", "const cuplug_value b"]
        reduce = self.of_value("reduce", pair, text)
        return [reduce, "#define cuplug_follow cuplug_reduce"]

    def choosing(self) -> list[str]:
        """Return the function that compares two values, and the functions that combine them."""
        kind = self.op.accumulators(self.variant)["value"].computed
        pair = [f"const {kind} a", f"const {kind} b"]
        given = "cuplug_given, {0}.value, {1}.value"
        worse, better = (f"cuplug_better({given.format(*x)})" for x in ("ba", "ab"))
        a, b = "const cuplug_value a", "const cuplug_value b"
        body = f"return {better} || (!{worse} && b.index < a.index) ? b : a;"
        return [
            self.of_truth("better", pair, self.op.choose, "choose"),
            self._function("cuplug_value", "reduce", [a, b], body),
            self._function("cuplug_value", "follow", [a, b], f"return {better} ? b : a;"),
        ]

    def of_outputs(self, parameters: list[str], text: str) -> str:
        """Return the function that returns `cuplug_results`."""
        known = self.op.names.dtypes(self.variant)
        dtypes = {x.name: known[x.variable] for x in self.op.outputs}
        late = {x for x, dtype in dtypes.items() if dtype.is_narrow and is_statements(text)}
        stored = {x: store(of, narrowed(x) if x in late else x) for x, of in dtypes.items()}
        body = self._assigned("cuplug_results", "post", dtypes, stored, text)
        if self.op.choose:
            kind = self.op.accumulators(self.variant)["value"].computed
            parameters = ["const cuplug_value cuplug_chosen", *parameters[1:]]
            body = f"const {kind} a = {_CHOSEN}.value; const int64_t i = {_CHOSEN}.index; {body}"
        return self._function("cuplug_results", "results_of", parameters, body)

    def of_truth(self, part: str, parameters: list[str], text: str | None, of: str = "stop") -> str:
        """Return a function that returns an int."""
        body = f"return ({quoted(text or '0', self._name(of), ') != 0;')}"
        return self._function("int", part, parameters, body)

    def _name(self, part: str) -> str:
        return f"{self.op.names.operator} {part}"

    def _assigned(
        self,
        result: str,
        part: str,
        dtypes: Mapping[str, Dtype],
        values: Mapping[str, str],
        text: str,
    ) -> str:
        """Return statements that return a struct, whose members were assigned under their names."""
        made = {name: x.computed for name, x in dtypes.items()}
        if is_statements(text):  # narrow outputs are rounded when they are stored
            made |= {name: "double" for name, x in dtypes.items() if x.is_narrow}
        declared = " ".join(f"{type_} {name};" for name, type_ in made.items())
        members = " ".join(f"cuplug_made.{name} = {value};" for name, value in values.items())
        if is_statements(text):
            body = "{" + quoted(text, self._name(part), ";}")
        else:
            name, dtype = next(iter(dtypes.items()))
            body = returned(dtype, text, self._name(part), f"{name} =", self.variant.on_host)
        return f"{result} cuplug_made; {declared} {body} {members} return cuplug_made;"

    def _function(self, result: str, part: str, parameters: list[str], body: str) -> str:
        listed = ", ".join(["const cuplug_numbers cuplug_given", *parameters])
        given = unpacked(self.op.names, self.variant)
        return f"__device__ inline {result} cuplug_{part}({listed}) {{ {given} {body} }}"
