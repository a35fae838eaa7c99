# SPDX-License-Identifier: Apache-2.0
"""A function's workspace and results other than arrays: `scratch` and `outputs`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.signature import formula

ITEM = re.compile(
    r"\s*([a-z]\w*)\s*:\s*([A-Za-z_][\w ]*?)\s*(?:\[(.*)\])?\s*(?:=\s*(.*?))?\s*", re.S
)
OUTPUT = re.compile(r"\s*(\w+)\s*:\s*(\w+)\s*\[(.*)\]\s*", re.S)


class Scratch(NamedTuple):
    """Memory for one call: the function's workspace, or values that it reads and writes."""

    name: str
    type: str  # a dtype, or a type that the prototypes declare
    term: formula.Term | None  # its number of elements; None: one, or the function reports it
    query: str  # the name of the argument that queries the number
    values: str  # its value before the call: "n + 13", or "{f, NULL}" of a structure
    is_made: bool  # the function allocates it, and stores its address

    @property
    def is_array(self) -> bool:
        """True for elements of a dtype; False for one value, a structure or an address."""
        return self.term is not None or bool(self.query)


class UnknownOutput(NamedTuple):
    """An output whose sizes are known after the call."""

    at: int  # its number among the arrays
    source: str  # the name of the scratch that has its elements
    sizes: tuple[str | formula.Term, ...]  # names of scratch, and numbers known before the call


def read_scratch(name: str, text: str, scope: formula.Scope) -> list[Scratch]:
    """Read `work: float64[3 * n]; used: uint64 = n; point: struct p = {x, y}; made: uint8[*]`."""
    found = []
    for part in text.split(";") if text.strip() else ():
        match = ITEM.fullmatch(part)
        own, type, size, values = match.groups() if match else ("", "", None, None)
        if not own or (size is not None and (type not in DTYPES or values is not None)):
            raise ValueError(
                f"{name}: scratch: got {part.strip()!r}, expected name: dtype[size], or name: type "
                "= value"
            )
        known = {*scope.signature.dim_names, *scope.scalars}
        size = (size or "").strip()
        query = size if size.isidentifier() and size not in known else ""
        is_number = bool(size) and not query and size != "*"
        term = scope.number(size, f"{name}: scratch: {own}") if is_number else None
        found.append(Scratch(own, type, term, query, values or "", size == "*"))
    return found


def read_outputs(
    name: str, text: str, scope: formula.Scope, scratch: list[Scratch]
) -> list[UnknownOutput]:
    """Read `image: made[height, width, 3]`; these are exactly the outputs with `?`."""
    known = {x.name: x for x in scratch}
    found = []
    for part in text.split(";") if text.strip() else ():
        match = OUTPUT.fullmatch(part)
        fits = match and match[1] in scope.arrays and match[2] in known
        x = scope.parameter(match[1]) if match and fits else None
        sizes = match[3].split(",") if match and fits else []
        if not match or not x or len(sizes) != len(x.dims):
            raise ValueError(
                f"{name}: outputs: got {part.strip()!r}, expected output: scratch[sizes] with a "
                "size for each dimension"
            )
        if scope.signature.dtypes(x) != (known[match[2]].type,):
            raise ValueError(
                f"{name}: outputs: {x.name}: got {match[2]} of {known[match[2]].type}, expected "
                f"{' or '.join(scope.signature.dtypes(x))}"
            )
        read = [_size(name, x.strip(), scope, known) for x in sizes]
        found.append(UnknownOutput(scope.arrays[match[1]], match[2], tuple(read)))
    unknown = [
        at
        for at, x in enumerate(scope.signature.arrays)
        if any(kind == "unknown" for kind, _ in x.dims)
    ]
    if unknown != sorted(x.at for x in found):
        raise ValueError(
            f"{name}: signature: got ?, expected sizes that are known, or `outputs`, which says "
            "where the function leaves each output with ?, and no other"
        )
    return found


def _size(
    name: str, text: str, scope: formula.Scope, known: dict[str, Scratch]
) -> str | formula.Term:
    if text.split(".")[0] in known:
        return text
    return scope.number(text, f"{name}: outputs")


def stored_type(name: str) -> str:
    """Return the C type of an element, for a dtype or a name that the prototypes declare."""
    if name.startswith("complex"):
        return "float _Complex" if name == "complex64" else "double _Complex"
    return DTYPES[name].stored if name in DTYPES else name


def make_scratch(ffi: Any, x: Scratch, count: int) -> Any:
    """Make the memory of one item, zeroed: `count` elements, a value or an address."""
    if x.is_made:
        return ffi.new("void *[1]")
    stored = stored_type(x.type)
    return ffi.new(f"{stored}[]", max(count, 1)) if x.is_array else ffi.new(f"{stored} *")


def size_of(text: str, memory: Mapping[str, Any]) -> int:
    """Return a size that the function stored: `used`, or `image.width`."""
    name, _, field = text.partition(".")
    value = memory[name][0]
    return int(getattr(value, field) if field else value)
