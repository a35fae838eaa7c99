# SPDX-License-Identifier: Apache-2.0
"""The code of element-wise operators for one element of a variant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from cuplug._engine.base.dtypes import Dtype
from cuplug._engine.signature.formula import Term
from cuplug._engine.signature.variant import Variant
from cuplug._source.expressions.expression import (
    Name,
    Names,
    is_wide,
    load,
    may_divide,
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
    vector_functions,
)

# Functions that were measured to take longer than exp on a GPU: their times relative to exp.
WORK = {"pow": 3} | dict.fromkeys(("acosh", "asinh", "atanh", "erf", "erfc", "log"), 2)
OF_GROUPS, OF_BITS = 1, 2  # CUPLUG_CODE_...
# On a host, expressions of 16-bit floats as expressions of their bits. Nothing is converted, and
# vectors hold twice as many elements. These return 16-bit floats, and the others bools. `{0}` is
# infinity.
_HALVES_OF_BITS = {
    "x": "x",
    "-x": "x ^ 0x8000",
    "abs(x)": "x & 0x7fff",
    "copysign(x, y)": "(x & 0x7fff) | (y & 0x8000)",
}
_BOOLS_OF_BITS = {
    "signbit(x) != 0": "x > 0x7fff",
    "isnan(x) != 0": "(x & 0x7fff) > {0}",
    "isinf(x) != 0": "(x & 0x7fff) == {0}",
    "isfinite(x) != 0": "(x & 0x7fff) < {0}",
    "x == y": "((x == y) & ((x & 0x7fff) <= {0})) | (((x | y) & 0x7fff) == 0)",
    "x != y": "((x != y) | ((x & 0x7fff) > {0})) & (((x | y) & 0x7fff) != 0)",
}
_INFINITY = {"float16": "0x7c00", "bfloat16": "0x7f80"}
SIZE = re.compile(r"\bsize\(\s*(\w+)\s*(?:,\s*-?\s*\d+\s*)?\)")  # of an array, or along a dimension


class Elementwise(NamedTuple):
    """The computation of an element-wise operator."""

    given: Names  # the signature's names
    text: str  # statements that assign the outputs; if `is_value`, an expression
    is_value: bool
    preamble: str
    sizes: dict[str, Term]  # by their spelling

    @property
    def names(self) -> Names:
        """The signature's names and, after its scalars, the sizes."""
        sizes = [Name(self._size_name(text), "int64", "size") for text in self.sizes]
        given = self.given
        return Names(given.operator, given.arrays, (*given.scalars, *sizes))

    def _size_name(self, text: str) -> str:
        return text if text.isidentifier() else f"cuplug_size_{[*self.sizes].index(text)}"

    @property
    def raw(self) -> int:
        """A bit for each array that the code indexes itself."""
        return sum(1 << k for k, x in enumerate(self.given.arrays) if x.kind == "raw")

    @property
    def counters(self) -> list[str]:
        """The counters in the text: `i`, the element's number, and `n`, the number of elements."""
        return [x for x in ("i", "n") if uses(self.text, x) and x not in self.names.words]

    @property
    def may_divide(self) -> bool:
        """True if integer operations may have no defined result."""
        return may_divide(self.text + self.preamble)

    @property
    def has_usual(self) -> bool:
        """True if the text depends on `usual`, with CUPLUG_USUAL in the preamble.

        With 2, the result reports whether an element is usual. If all elements of a group are,
        vectors compute it, with 1. Otherwise the elements are computed one by one, with 0.
        """
        return "CUPLUG_USUAL" in self.preamble and uses(self.text, "usual")

    def wants_groups(self, variant: Variant) -> bool:
        """True if the code for the host processes only complete groups of elements.

        Vector instructions round some functions, and complex products that compilers fuse,
        differently from scalar instructions. Groups also apply to 16-bit floats, which are
        converted many at a time.
        """
        is_complex = any(x.kind == "complex" for x in self.names.dtypes(variant).values())
        return is_complex or bool(self._functions) or self.converts(variant)

    def converts(self, variant: Variant) -> bool:
        """True if the code for the host receives 16-bit floats as they are stored."""
        dtypes = self.names.dtypes(variant)
        is_half = any(dtypes[x.variable].is_half for _, x in self.names.looped)
        return variant.on_host and is_half and not self.has_usual

    def of_bits(self, variant: Variant) -> tuple[Elementwise, Variant] | None:
        """Return the operator on the bits of 16-bit floats, and its variant, or None."""
        half, made = variant.types[0], variant.types[-1]
        known = {half: _HALVES_OF_BITS, "bool": _BOOLS_OF_BITS}.get(made, {})
        is_alike = half in _INFINITY and {*variant.types[:-1]} <= {half}
        is_plain = self.is_value and not (self.preamble or self.given.scalars)
        if not (is_alike and is_plain and self.text in known):
            return None
        text = known[self.text].format(_INFINITY[half])
        types = tuple("uint16" if x == half else x for x in variant.types)
        return self._replace(text=text), variant._replace(types=types)

    @property
    def _functions(self) -> list[str]:
        return vector_functions(self.text + self.preamble)

    @property
    def work(self) -> int:
        """The time of an element on a GPU, in units of functions such as exp."""
        return sum(WORK.get(name, 1) for name in self._functions)

    def tile_side(self, variant: Variant) -> int:
        """Return the side of tiles, CUPLUG__TILE_SIDE of <cuplug/walk.h>."""
        dtypes = self.names.dtypes(variant)
        inputs = [x for x in self.names.arrays if x.kind != "output"]
        n_bytes = sum(dtypes[x.variable].n_bytes for x in inputs)
        return 128 if n_bytes <= 1 else 64 if n_bytes <= 8 else 32

    @staticmethod
    def held(dtype: Dtype, variant: Variant) -> str:
        """Return the C type of elements in the code. On the host, 16-bit floats are float."""
        return "float" if variant.on_host and dtype.is_half else dtype.stored

    @property
    def counts(self) -> bool:
        """True if the text uses the number of elements or an element's number."""
        whole = {x.name for x in self.given.arrays if x.kind != "raw"}
        of_whole = any(whole & {*re.findall(r"\w+", text)} for text in self.sizes)
        return of_whole or bool(self.counters)

    def body(self, variant: Variant) -> str:
        """Return the statements on computed values."""
        name, text = self.names.operator, self._computed(variant)
        if not self.is_value and uses(text, "return"):  # the assigned value is stored
            body = quoted(text, name, ";}")
            return f"\n#define return goto cuplug_return\n{{{body}#undef return\ncuplug_return:;"
        if not self.is_value:
            return "{" + quoted(text, name, ";}")
        output = self.names.outputs[0]
        dtype = self.names.dtypes(variant)[output.variable]
        return returned(dtype, text, name, f"{output.name} =", variant.on_host)

    def _computed(self, variant: Variant) -> str:
        """Return the text with names for sizes, and elements of raw arrays as computed values."""
        text = self.text
        if any(not each.isidentifier() for each in self.sizes):
            text = SIZE.sub(
                lambda at: self._size_name(at[0]) if at[0] in self.sizes else at[0], text
            )
        dtypes = self.names.dtypes(variant)
        for x in self.names.arrays:
            if x.kind == "raw" and load(dtypes[x.variable], "") != "":
                text = _loaded(text, x.name, dtypes[x.variable])
        return text

    def element(self, variant: Variant) -> str:
        """Return the function for one element, whose scope contains only the user's names."""
        dtypes = self.names.dtypes(variant)
        parameters, before, after = ["const cuplug_numbers cuplug_given"], [], []
        for x in self.names.arrays:
            dtype, is_read = dtypes[x.variable], x.kind != "output"
            if x.kind == "raw":
                parameters.append(f"const {dtype.stored} *const {x.name}")
                continue
            const = "const " if x.kind == "array" else ""
            held, at = self.held(dtype, variant), f"*cuplug_at_{x.name}"
            is_same = held == dtype.computed
            parameters.append(f"{const}{held} {at}")
            value = (at if is_same else load(dtype, at)) if is_read else "0"
            is_late = x.kind != "array" and self._rounds_late(dtype, variant)
            type_ = "double" if is_late else dtype.computed
            before.append(f"{const}{type_} {x.name} = {value};")
            if x.kind != "array":
                result = narrowed(x.name) if is_late else x.name
                after.append(f"{at} = {result if is_same else store(dtype, result)};")
        parameters += [f"const int64_t {x}" for x in self.counters]
        parameters += ["const int usual"] * self.has_usual
        lines = [unpacked(self.names, variant), *before, self.body(variant), *after]
        listed = ", ".join(parameters)
        return "\n".join([f"__device__ inline void cuplug_element({listed}) {{", *lines, "}"])

    def _rounds_late(self, dtype: Dtype, variant: Variant) -> bool:
        """Return whether assigned values are not rounded to float, only when they are stored."""
        known = self.names.dtypes(variant).values()
        return dtype.is_narrow and not self.is_value and is_wide(self.text + self.preamble, known)

    def call(
        self, named: Sequence[object], place: str, number: str, count: str, usual: int = 0
    ) -> str:
        """Return the call for an element.

        Its stored values are `place`, formatted with each of `named`.
        """
        counted = [{"i": number, "n": count}[x] for x in self.counters]
        arrays = [
            f"data_{x.name}" if x.kind == "raw" else f"&{place.format(name)}"
            for x, name in zip(self.names.arrays, named, strict=True)
        ]
        counted += [str(usual)] * self.has_usual
        return f"cuplug_element({', '.join(['given', *arrays, *counted])});"

    def head(self, variant: Variant) -> str:
        """Return the code before the loops."""
        dtypes = self.names.dtypes(variant)
        narrow = [x for x in self.names.arrays if dtypes[x.variable].is_narrow]
        converts = self.converts(variant)
        has_bits = any(x.kind == "raw" or not dtypes[x.variable].is_half for x in narrow)
        host = ["cuplug/half.h"] if has_bits or converts else []
        host += ["host/code.h", *(["host/divisions.h"] if self.may_divide else []), "integers.h"]
        host += ["host/halves.h"] if converts else []
        code = f"""{preamble(self.preamble, self.names, variant)}
{numbers(self.names, variant)}
{self.element(variant)}"""
        return f"{prelude(variant, code, host)}\n{types(self.names, variant, code)}"


def _loaded(text: str, name: str, dtype: Dtype) -> str:
    """Return a text in which each element of an array, x[...], is a computed value."""
    found = re.search(rf"\b{name}\s*\[", text)
    if not found:
        return text
    end, depth = found.end(), 1
    while depth and end < len(text):
        depth += {"[": 1, "]": -1}.get(text[end], 0)
        end += 1
    index = _loaded(text[found.end() : end], name, dtype)
    value = load(dtype, f"{name}[{index}")
    return text[: found.start()] + value + _loaded(text[end:], name, dtype)
