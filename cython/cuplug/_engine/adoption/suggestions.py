# SPDX-License-Identifier: Apache-2.0
"""A possible description of a C function, guessed from its prototype."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cuplug._engine.adoption.adopted import Adopted
from cuplug._engine.adoption.prototypes import (
    Function,
    Prototypes,
    is_element,
    is_float,
    is_integer,
    members,
)
from cuplug._engine.base.dtypes import DTYPES

SIZE = re.compile(r"n|m|len|length|size|count|n_?\w+|\w*(len|size|count|num|nbytes)", re.I)
APART = re.compile(r"ld\w{1,3}|\w*stride\d*|tda\d*|inc\w?", re.I)  # of elements or rows
DESTROYS = re.compile(r"free|destroy|delete|close|release|_del|end|clear", re.I)
KINDS = [x for x in DTYPES if not x.startswith(("bfloat16", "float8", "bool"))]


def suggest(prototypes: Prototypes, name: str, parameters: Sequence[str]) -> dict[str, str]:
    """Return a description of a function, for its author to check.

    Parameters
    ----------
    prototypes : Prototypes
    name : str
        The function.
    parameters : sequence of str
        The names of its parameters; "" for one without.

    Returns
    -------
    dict of str to str
        `signature`, `arguments` and other keys.

    Raises
    ------
    ValueError
        If none can be guessed; the message has the reason.
    """
    found = _Guess(prototypes, name, parameters).description()
    Adopted(name, {"function": name, **found}, prototypes)  # the description fits
    return found


class _Guess:
    def __init__(self, prototypes: Prototypes, name: str, parameters: Sequence[str]) -> None:
        self.prototypes, self.name = prototypes, name
        self.function: Function = prototypes.function(name, name)
        self.ffi, self.kinds = self.function.ffi, self.function.type.args
        given = parameters if len(parameters) == len(self.kinds) else [""] * len(self.kinds)
        self.names: list[str] = []
        for k, x in enumerate(given):
            plain = re.sub(r"\W", "", x).strip("_").lower()
            is_new = plain.isidentifier() and plain not in {*self.names, *DTYPES, "out", "device"}
            self.names.append(plain if is_new else f"a{k}")
        self.sizes = [
            k
            for k, kind in enumerate(self.kinds)
            if kind.kind == "primitive" and is_integer(kind) and SIZE.fullmatch(self.names[k])
        ]
        self.inputs: dict[int, str] = {}
        self.outputs: list[str] = []
        self.known: set[int] = set()  # sizes that are dimensions of inputs
        self.more: dict[str, str] = {}

    def description(self) -> dict[str, str]:
        """Return the keys of the description; raise ValueError if none can be guessed."""
        apart = [x for x in self.names if APART.fullmatch(x)]
        if apart:
            raise ValueError(f"got {apart[0]}, expected arrays without gaps; write its description")
        for k, kind in enumerate(self.kinds):
            self._parameter(k, kind)
        self._result(self.function.type.result)
        for k, kind in enumerate(self.kinds):
            if kind.kind in ("primitive", "enum") and k not in self.known:
                self.inputs[k] = f"{self.names[k]}: {'float' if is_float(kind) else 'int'}"
        inputs = ", ".join(self.inputs[k] for k in sorted(self.inputs))
        outputs = f"({', '.join(self.outputs)})" if len(self.outputs) > 1 else "".join(self.outputs)
        return {
            "signature": f"{self.name}({inputs})" + (f" -> {outputs}" if outputs else ""),
            "arguments": ", ".join(self.names),
            **self.more,
        }

    def _parameter(self, k: int, kind: Any) -> None:
        name, const = self.names[k], self.function.const[k]
        if kind.kind in ("primitive", "enum"):
            return
        if kind.kind != "pointer":
            raise ValueError(f"{name}: got {kind.cname}, expected a number or a pointer")
        item = kind.item
        if item.kind == "struct" and not self._dtype(item):
            self.inputs[k] = f"{name}: handle[{_tag(item)}]"
        elif item.kind == "pointer" and item.item.kind == "struct":
            self._made(name, item)
        elif item.kind == "void" and not self._size_of(k):
            self.inputs[k] = f"{name}: handle[{name}]"
        elif item.cname == "char" and const and not self._size_of(k):
            self.inputs[k] = f"{name}: str"
        else:
            self._array(k, item, const)

    def _array(self, k: int, item: Any, const: bool) -> None:
        name, size = self.names[k], self._size_of(k)
        dtype = "uint8" if item.cname in ("void", "char") and size else self._dtype(item)
        if not dtype:
            raise ValueError(f"{name}: got {item.cname} *, expected a pointer to numbers")
        parts: list[int] = [len(members(item))] if item.kind == "struct" else []
        parts = [item.length] if item.kind == "array" else parts
        parts = [] if "complex" in dtype else parts
        if (const or item.kind == "array") and not size:
            raise ValueError(f"{name}: got no size among the parameters, expected one")
        dims = ", ".join([*([self.names[size - 1]] if size else []), *map(str, parts)])
        if const:
            self.inputs[k] = f"{name}: {dtype}[{dims}]"
            self.known.add(size - 1)
        else:
            self.outputs.append(f"{name}: {dtype}[{dims}]")

    def _size_of(self, k: int) -> int:
        """Return the number, from 1, of the parameter that is another's size; 0 without one."""
        after = [x for x in self.sizes if x > k]
        return (after or self.sizes[-1:] or [-1])[0] + 1

    def _dtype(self, item: Any) -> str:
        if item.kind == "void" or item.cname == "char":
            return ""
        return next((x for x in KINDS if is_element(self.ffi, item, x)), "")

    def _made(self, name: str, pointer: Any) -> None:
        """Handle a pointer that the function creates, with the function that destroys it."""
        functions = [x.split()[1] for x in self.prototypes._declared if x.startswith("function ")]
        fitting = [
            x
            for x in functions
            if DESTROYS.search(x)
            and x != self.name
            and [y.cname for y in self.prototypes.function(x, x).type.args] == [pointer.cname]
        ]
        if not fitting:
            raise ValueError(f"got no function that destroys {pointer.cname}, expected one")
        made = f"{name}: " if name else ""
        self.outputs.append(f"{made}handle[{_tag(pointer.item)}]")
        self.more["destroy"] = min(fitting, key=len)

    def _result(self, result: Any) -> None:
        if result.kind == "pointer" and result.item.kind == "struct":
            self._made("", result)
            self.more["returns"] = _tag(result.item)
        elif is_float(result) or (is_integer(result) and not self.outputs):
            dtype = "int8" if result.cname == "char" else self._dtype(result)
            if not dtype:
                raise ValueError(f"got the result {result.cname}, expected a number or a handle")
            self.outputs.append(f"result: {dtype}[]")
            self.more["returns"] = "result"
        elif not is_integer(result) and result.kind != "void":
            raise ValueError(f"got the result {result.cname}, expected a number or a handle")


def _tag(item: Any) -> str:
    return re.sub(r"\W", "_", item.cname.removeprefix("struct ")).strip("_").lower()
