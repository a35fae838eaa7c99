# SPDX-License-Identifier: Apache-2.0
"""Signatures in PyTorch's schema language, and the overloads that they form there.

Signatures that differ only in arguments that may be omitted at the end are one PyTorch overload.
Others, such as `index: I[*n]` and `index: int`, are one each. None always represents an omitted
argument. If a signature allows None, it is the default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from keyword import iskeyword
from typing import Any

import torch

from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.base.numpy_dtypes import dtype_name
from cuplug._engine.call.operator import Operator
from cuplug._engine.signature.signature import Parameter, Signature

__all__ = ["Argument", "Entry", "Overload", "Registered", "overloads_of"]

_TYPES = {"array": "Tensor", "inout": "Tensor", "arrays": "Tensor[]"}
_NUMBERS = {"bool": "bool", "int": "SymInt", "uint": "SymInt", "float": "float"}
# for the schema parser, in addition to Python's keywords
_RESERVED = {"inf", "nan", "global", "self"}
_OF_CHANGES = {"mode"}  # for torch.compile, which calls operators that modify tensors by name


@dataclass(frozen=True)
class Argument:
    """One argument of a schema."""

    name: str  # the parameter's name
    spelled: str  # PyTorch's name
    type: str  # "Tensor", "SymInt[]" ...: without "?"
    is_mutated: bool
    has_default: bool
    default: Any  # the default in all signatures; None represents an omitted argument

    @property
    def is_optional(self) -> bool:
        """True if None may be passed."""
        return self.has_default and self.default is None

    def text(self, number: int) -> str:
        """Return the argument in a schema."""
        letter = chr(97 + number) if number < 26 else f"a{number}"
        alias = f"({letter}!)" if self.is_mutated else ""
        default = f"={_literal(self.default)}" if self.has_default else ""
        kind = self.type.replace("Tensor", f"Tensor{alias}", 1)
        return f"{kind}{'?' if self.is_optional else ''} {self.spelled}{default}"


@dataclass(frozen=True)
class Overload:
    """Signatures of an operator that form one schema."""

    name: str  # "" for the first one, "row2" for one that begins at signature 2
    rows: tuple[int, ...]
    arguments: tuple[Argument, ...]  # of the signature with the most arguments
    n_outputs: int

    @property
    def text(self) -> str:
        """Its schema, without the operator's name."""
        arguments = ", ".join(x.text(k) for k, x in enumerate(self.arguments))
        outputs = ", ".join(["Tensor"] * self.n_outputs)
        return f"({arguments}) -> {outputs if self.n_outputs == 1 else f'({outputs})'}"

    @property
    def mutated(self) -> list[int]:
        """The numbers of the arguments that are modified in place."""
        return [k for k, x in enumerate(self.arguments) if x.is_mutated]

    @property
    def mutated_lists(self) -> list[str]:
        """The names of the lists whose tensors are modified in place."""
        return [x.name for x in self.arguments if x.is_mutated and x.type == "Tensor[]"]

    @property
    def has_tensor(self) -> bool:
        """True if each call has a tensor, which determines its device."""
        return any(x.type.startswith("Tensor") and not x.is_optional for x in self.arguments)

    @property
    def has_lists(self) -> bool:
        """True if lists of tensors exist."""
        return any(x.type == "Tensor[]" for x in self.arguments)


@dataclass(frozen=True)
class Registered:
    """An operator in PyTorch."""

    operator: Operator
    rows: tuple[Signature, ...]
    packet: Any  # torch.ops.cuplug.<name>
    spelled: dict[str, str]  # names of arguments -> PyTorch's names, if they differ
    # If signatures have names at different positions: returns the overload that accepts arguments,
    # and these by name.
    choose: Callable[..., tuple[Any, dict[str, Any]] | None] | None = None

    @cached_property
    def dtypes(self) -> set[int | str]:
        """The positions and names of parameters that are dtypes."""
        pairs = [pair for row in self.rows for pair in enumerate(row.parameters)]
        return {key for k, x in pairs if x.kind == "dtype" for key in (k, x.name)}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call PyTorch's operator, with the names of the signature."""
        packet, chosen = self.packet, self.choose and self.choose(self, args, keywords)
        if chosen:
            (packet, keywords), args = chosen, ()
        if self.dtypes:
            args = tuple(_as_dtype(x) if k in self.dtypes else x for k, x in enumerate(args))
            keywords = {
                name: _as_dtype(x) if name in self.dtypes else x for name, x in keywords.items()
            }
        if self.spelled and keywords:
            keywords = {self.spelled.get(name, name): x for name, x in keywords.items()}
        return packet(*args, **keywords)


def _as_dtype(x: Any) -> Any:
    """Return PyTorch's dtype for a name, or for another library's dtype."""
    if x is None or isinstance(x, torch.dtype):
        return x
    found = getattr(torch, x if isinstance(x, str) else dtype_name(x), x)
    return found if isinstance(found, torch.dtype) else x


@dataclass(frozen=True)
class Entry:
    """One of its overloads."""

    whole: Registered
    overload: Overload
    call: Any  # torch.ops.cuplug.<name>.<overload>

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of its arguments."""
        return tuple(x.name for x in self.overload.arguments)

    def written(self, args: Sequence[Any]) -> list[tuple[int, Any]]:
        """Return the tensors that a call modifies, each with the number of its argument."""
        given = [(k, args[k]) for k in self.overload.mutated if k < len(args)]
        items = [(k, x if isinstance(x, (list, tuple)) else [x]) for k, x in given]
        return [(k, x) for k, some in items for x in some if x is not None]

    def named(self, args: Sequence[Any]) -> dict[str, Any]:
        """Return the passed arguments by name. None represents an omitted one."""
        return {name: x for name, x in zip(self.names, args, strict=False) if x is not None}


def overloads_of(rows: Sequence[Signature]) -> list[Overload]:
    """Return an operator's overloads in PyTorch."""
    groups: list[list[int]] = []
    for number, row in enumerate(rows):
        group = next((x for x in groups if all(_are_alike(rows[k], row) for k in x)), None)
        if group is None:
            groups.append([number])
        else:
            group.append(number)
    is_changing = any(x.is_inout for row in rows for x in row.parameters)
    reserved = _RESERVED | (_OF_CHANGES if is_changing else set())
    return [_overload(rows, group, reserved) for group in groups]


def _are_alike(a: Signature, b: Signature) -> bool:
    """Return whether a signature has all parameters of another, and possibly more after them."""
    return len(a.outputs) == len(b.outputs) and all(
        (x.name, x.is_inout, _type(a, x)) == (y.name, y.is_inout, _type(b, y))
        for x, y in zip(a.parameters, b.parameters, strict=False)
    )


def _overload(rows: Sequence[Signature], group: list[int], reserved: set[str]) -> Overload:
    longest = max((rows[k] for k in group), key=lambda row: len(row.parameters))
    arguments = []
    for at in range(len(longest.parameters)):
        having = [(rows[k], rows[k].parameters[at]) for k in group if at < len(rows[k].parameters)]
        arguments.append(_argument(having, len(having) == len(group), reserved))
    name = f"row{group[0]}" if group[0] else ""
    return Overload(name, tuple(group), tuple(arguments), len(longest.outputs))


def _argument(
    having: list[tuple[Signature, Parameter]], is_everywhere: bool, reserved: set[str]
) -> Argument:
    """Return the argument for a parameter of several signatures."""
    row, x = having[0]
    same = {(y.has_default, type(y.default), y.default) for _, y in having}
    has_default = not is_everywhere or any(y.has_default for _, y in having)
    is_spelled = x.kind != "dtype" and _is_literal(x.default)
    default = x.default if is_everywhere and len(same) == 1 and is_spelled else None
    spelled = f"{x.name}_" if iskeyword(x.name) or x.name in reserved else x.name
    return Argument(x.name, spelled, _type(row, x), x.is_inout, has_default, default)


def _type(row: Signature, x: Parameter) -> str:
    if x.kind in _TYPES:
        return _TYPES[x.kind]
    if x.kind in ("string", "choice"):
        return "str"
    if x.kind == "dtype":
        return "ScalarType"
    kinds = {_NUMBERS.get(DTYPES[name].kind, "Scalar") for name in row.dtypes(x)}
    number = kinds.pop() if len(kinds) == 1 else "Scalar"
    if x.kind == "list":
        # 1: also accepts a single number
        return "SymInt[1]" if number == "SymInt" else f"{number}[]"
    return number


def _is_literal(value: Any) -> bool:
    """Return whether the schema language can express a default.

    Otherwise, the schema has None, and the core's default applies.
    """
    if isinstance(value, str):
        return value.isprintable() and value.isascii() and not {*"\"'\\"} & {*value}
    return isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value))


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
