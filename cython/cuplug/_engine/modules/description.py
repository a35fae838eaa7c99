# SPDX-License-Identifier: Apache-2.0
"""Descriptions of functions of modules: a signature, and the arguments of the function."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from cuplug._engine.adoption.description import MAX_NAME
from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.signature import formula
from cuplug._engine.signature import signature as signatures
from cuplug._engine.signature.signature import Parameter

KEYS = {"signature", "arguments", "function", "place", "doc"}
PLACES = ("host", "cuda", "both")
MAX_SOURCES = 64
Source = tuple[str, int, formula.Term | None]


class Described(NamedTuple):
    """The description of one function."""

    name: str
    signature: str
    function: str
    place: str
    doc: str
    sources: list[Source]

    @property
    def device_types(self) -> tuple[str, ...]:
        """The device type of the operator."""
        return ("cpu",) * (self.place != "cuda") + ("cuda",) * (self.place != "host")


def read_description(
    path: str, description: Mapping[str, Any], functions: Collection[str]
) -> dict[str, Described]:
    """Check a description against the functions that a module has.

    Raises
    ------
    ValueError
        It is wrong; the message has the position.
    """
    if not description:
        raise ValueError(f"{path}: got a description without operators, expected a table of each")
    return {name: _read(name, items, functions) for name, items in description.items()}


def _read(name: str, items: Any, functions: Collection[str]) -> Described:
    if not (name.isascii() and name.isidentifier() and len(name) <= MAX_NAME):
        wanted = f"an identifier of at most {MAX_NAME} ASCII characters"
        raise ValueError(f"description: got the key {name[:MAX_NAME]!r}, expected {wanted}")
    texts = isinstance(items, Mapping) and all(isinstance(x, str) for x in items.values())
    if not texts or not {"signature"} <= set(items) <= KEYS:
        seen = ", ".join(map(str, items)) if isinstance(items, Mapping) else repr(items)
        wanted = "texts: signature, and perhaps arguments, function, place, doc"
        raise ValueError(f"{name}: got {seen}, expected {wanted}")
    function, place = items.get("function", name), items.get("place", "host")
    if function not in functions:
        known = ", ".join(sorted(functions))
        raise ValueError(f"{name}: function: got {function!r}, expected one of the file: {known}")
    if place not in PLACES:
        raise ValueError(f"{name}: place: got {place!r}, expected {' or '.join(map(repr, PLACES))}")
    if not items.get("doc", "").isprintable():
        raise ValueError(f"{name}: doc: got {items['doc']!r}, expected one line")
    scope = _scope(name, items["signature"])
    sources = _sources(name, scope, items.get("arguments"))
    return Described(name, items["signature"], function, place, items.get("doc", ""), sources)


def _scope(name: str, text: str) -> formula.Scope:
    signature = signatures.parse(text)
    if signature.name != name:
        raise ValueError(f"{name}: signature: got {signature.name}, expected {name}")
    if any(kind == "unknown" for x in signature.arrays for kind, _ in x.dims):
        raise ValueError(f"{name}: signature: got ?, expected sizes that are known before the call")
    if any(not x.name for x in signature.outputs):
        raise ValueError(f"{name}: signature: got an output without a name, expected one")
    return formula.read_scope(signature)


def _sources(name: str, scope: formula.Scope, arguments: str | None) -> list[Source]:
    """Return the source of each argument; by default all parameters, then the outputs."""
    own = (*scope.signature.parameters, *scope.signature.outputs)
    if arguments is None:
        found = [_named(name, scope, x) for x in own]
    else:
        what = f"{name}: arguments"
        by_name = {x.name: x for x in own}
        found = [
            _named(name, scope, by_name[term.text]) if term.text in by_name else ("number", 0, term)
            for term in scope.terms(arguments, what)
        ]
    if len(found) > MAX_SOURCES:
        raise ValueError(f"{name}: arguments: got {len(found)}, expected at most {MAX_SOURCES}")
    given = {at for kind, at, _ in found if kind == "array"}
    lacking = [x.name for x in scope.signature.outputs if scope.arrays[x.name] not in given]
    if lacking:
        raise ValueError(f"{name}: arguments: got no {lacking[0]}, expected every output")
    return found


def _named(name: str, scope: formula.Scope, x: Parameter) -> Source:
    if x.is_array:
        return "array", scope.arrays[x.name], None
    if x.kind == "string":
        return "text", scope.scalars[x.name], None
    members = {DTYPES[dtype].member for dtype in scope.signature.dtypes(x)}
    dtypes = set(scope.signature.dtypes(x))
    if x.kind == "scalar" and (dtypes == {"bool"} or members in ({"f"}, {"i"})):
        kind = "bool" if dtypes == {"bool"} else "float" if members == {"f"} else "int"
        return kind, scope.scalars[x.name], None
    raise ValueError(
        f"{name}: {x.name}: got {' | '.join(sorted(dtypes)) or x.kind}, expected an array, int, "
        "float, bool or str"
    )
