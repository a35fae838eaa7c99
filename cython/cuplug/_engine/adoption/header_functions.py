# SPDX-License-Identifier: Apache-2.0
"""The functions that a C header declares, each with the declarations that it needs."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cuplug._engine import provider
from cuplug._engine.adoption.prototypes import Prototypes
from cuplug._engine.adoption.suggestions import DESTROYS, suggest
from cuplug.errors import NotFoundError, PluginError

# Types of <stdint.h> and <stddef.h>, which descriptions may use without declaring them.
KNOWN = re.compile(r"u?int(_least|_fast)?(8|16|32|64|ptr|max)_t|s?size_t|ptrdiff_t|wchar_t|FILE")


class HeaderFunction(NamedTuple):
    """One function: its names, and C declarations for a description."""

    name: str
    parameters: tuple[str, ...]  # their names, "" for one without
    prototype: str
    is_own: bool  # of the header or its folder, not of an included header
    needed: tuple[str, ...]  # declarations of types, each after the types that it uses


def read_header(header: str, options: tuple[str, ...] = ()) -> dict[str, HeaderFunction]:
    """Return the functions that a header and its included headers declare.

    Parameters
    ----------
    header : str
        As in `#include <...>`.
    options : tuple of str
        For the preprocessor: "-I/opt/x/include".

    Raises
    ------
    CompileError
        No C compiler was found.
    PluginError
        The preprocessor does not find the header, or the parser rejects it; or the parser is not
        installed.
    """
    try:
        from pycparser import c_ast, c_parser
    except ImportError:
        raise PluginError("adopt: got no pycparser, expected: pip install cffi") from None
    compiler: Any = provider("host compiler")
    text = compiler.preprocess(header, options)
    named = re.search(rf'(?m)^# \d+ "((?:.*/)?{re.escape(header)})"', text)
    try:
        parsed = c_parser.CParser().parse(text, header)
    except Exception as error:  # its parser raises its own exceptions
        raise PluginError(f"{header}: the C parser failed: {error}") from None
    return _Header(named[1] if named else header, "/" in header, parsed.ext, c_ast).functions()


class Described(NamedTuple):
    """Possible descriptions of functions."""

    prototypes: str  # C declarations
    operators: dict[str, dict[str, str]]  # guesses
    refused: dict[str, str]  # why other functions have none


def describe(functions: Mapping[str, HeaderFunction], names: Iterable[str]) -> Described:
    """Return descriptions of some functions of a header.

    Raises
    ------
    NotFoundError
        The header declares no such function.
    """
    operators, refused, chosen = {}, {}, []
    for name in dict.fromkeys(names):
        if name not in functions:
            raise NotFoundError(f"{name}: the header declares no such function")
        own = [functions[name], *_destroying(functions, functions[name])]
        try:
            found = suggest(Prototypes(_join(own)), name, functions[name].parameters)
        except ValueError as error:
            refused[name] = str(error).splitlines()[0].removeprefix(f"{name}: ")
            continue
        operators[name] = found
        chosen += [x for x in own if x.name in (name, found.get("destroy"))]
    return Described(_join(chosen), operators, refused)


def _join(functions: Sequence[HeaderFunction]) -> str:
    types = dict.fromkeys(text for x in functions for text in x.needed)
    return "\n".join([*types, *dict.fromkeys(x.prototype for x in functions)])


def _destroying(
    functions: Mapping[str, HeaderFunction], function: HeaderFunction
) -> list[HeaderFunction]:
    """Return functions that may destroy another one's result, whose type they name."""
    types = {*re.findall(r"\w+", function.prototype)} - {"const", "void", "int", "char", "struct"}
    return [
        x
        for x in functions.values()
        if len(x.parameters) == 1
        and DESTROYS.search(x.name)
        and x.name != function.name
        and types & {*re.findall(r"\w+", x.prototype.partition("(")[2])}
    ]


class _Header:
    """The declarations of a header: of its file, or of all files of its folder."""

    def __init__(self, path: str, is_folder: bool, items: list[Any], tree: Any) -> None:
        from pycparser import c_generator

        self.tree, self.items, self.write = tree, items, c_generator.CGenerator().visit
        self.types: dict[
            str, tuple[int, Any]
        ] = {}  # of each name or tag: its position and declaration
        for at, item in enumerate(items):
            for name in self._defined(item):
                self.types[name] = at, item
        self.place = os.path.dirname(path) if is_folder else path
        self.is_folder = is_folder

    def _is_own(self, file: str) -> bool:
        return (os.path.dirname(file) if self.is_folder else file) == self.place

    def functions(self) -> dict[str, HeaderFunction]:
        found = {}
        for item in self.items:
            is_function = isinstance(item, self.tree.Decl) and isinstance(
                item.type, self.tree.FuncDecl
            )
            if is_function and "static" not in item.storage:
                found[item.name] = self._function(item)
        return found

    def _function(self, item: Any) -> HeaderFunction:
        plain = copy.copy(item)
        plain.storage, plain.funcspec, plain.align = [], [], []
        given = item.type.args.params if item.type.args else []
        needed: dict[str, int] = {}
        self._need(item, needed)
        places = sorted(set(needed.values()))
        return HeaderFunction(
            item.name,
            tuple(getattr(x, "name", None) or "" for x in given),
            f"{self.write(plain)};",
            self._is_own(item.coord.file),
            tuple(f"{self.write(self.items[at])};" for at in places),
        )

    def _need(self, item: Any, needed: dict[str, int]) -> None:
        """Add the positions of the declarations that an item uses, directly or through others."""
        for name in self._used(item):
            if name in self.types and name not in needed:
                at, declared = self.types[name]
                needed[name] = at
                self._need(declared, needed)

    def _used(self, item: Any) -> Iterator[str]:
        if isinstance(item, self.tree.IdentifierType):
            yield from (x for x in item.names if not KNOWN.fullmatch(x))
        if isinstance(item, self.tree.Struct | self.tree.Union | self.tree.Enum) and item.name:
            yield f"tag {item.name}"
        for _, child in item.children():
            yield from self._used(child)

    def _defined(self, item: Any) -> Iterator[str]:
        """Yield the names and tags that an item defines; a tag only with its members."""
        if isinstance(item, self.tree.Typedef):
            yield item.name
        if not isinstance(item, self.tree.Typedef | self.tree.Decl):
            return
        inner = item.type
        while isinstance(inner, self.tree.TypeDecl | self.tree.PtrDecl | self.tree.ArrayDecl):
            inner = inner.type
        if isinstance(inner, self.tree.Struct | self.tree.Union):
            if inner.name and inner.decls:
                yield f"tag {inner.name}"
        elif isinstance(inner, self.tree.Enum) and inner.name and inner.values:
            yield f"tag {inner.name}"
