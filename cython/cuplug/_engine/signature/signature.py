# SPDX-License-Identifier: Apache-2.0
"""Signatures as Python objects, for the tools: listings, stubs, typed-memoryview functions."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from cuplug._engine.signature.fields import parse_fields
from cuplug._engine.signature.steps import Condition, Extent
from cuplug.errors import SignatureError

__all__ = ["ARRAY_KINDS", "Parameter", "Signature", "SignatureError", "parse", "signatures_of"]

ARRAY_KINDS = ("array", "inout", "output")
GROUP_KINDS = ("variadic", "loop")


class Parameter(NamedTuple):
    """One parameter or output."""

    name: str  # "" for an output without a name
    # "array", "inout", "scalar", "string", "choice", "output", "list" (of numbers), "arrays",
    # "handle" or "dtype"
    kind: str
    type_variable: int  # its number among the signature's; -1 for strings, choices and handles
    # (kind, number or size) for "fixed", "named", "variadic", "loop" and "unknown"; (kind, Formula
    # or Slice) for "formula", "slice" and "listed"
    dims: tuple[tuple[str, Extent], ...]
    has_default: bool
    default: Any  # bool, int, float, str or None
    default_text: str  # as written
    choices: tuple[str, ...]
    tag: str  # of a handle
    is_inout: bool  # changed in place, as are the arrays of a list
    is_each: bool  # each array of the list has its own sizes
    words: tuple[str, ...] = ()  # before its name: "inout", "zero", "detached", "host"
    like: str = ""  # of an output: the parameter whose order of strides it has

    @property
    def is_array(self) -> bool:
        """True for array parameters and outputs."""
        return self.kind in ARRAY_KINDS

    @property
    def is_on_host(self) -> bool:
        """True for an array in the memory of the host, also in CUDA calls."""
        return "host" in self.words


class Signature(NamedTuple):
    """One parsed signature."""

    name: str
    text: str
    parameters: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    variables: tuple[tuple[str, tuple[str, ...]], ...]  # (name or "", dtypes)
    dim_names: tuple[str, ...]
    ranges: tuple[Condition, ...]
    reduces: bool = False  # outputs lack the loop dimensions that the arguments `axis` name
    scans: bool = False  # elements depend on others only along the dimension `axis`
    made: Parameter | None = None  # the handle that it creates; it then has no outputs
    each_names: tuple[int, ...] = ()  # of dim_names: sizes that each item of lists has for itself

    @property
    def arrays(self) -> list[Parameter]:
        """The array parameters, then the outputs."""
        return [x for x in (*self.parameters, *self.outputs) if x.is_array]

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions as written: "0 <= k <= n"."""
        return tuple(x.text for x in self.ranges)

    @property
    def has_handles(self) -> bool:
        """True if a call takes or creates a handle."""
        return self.made is not None or any(x.kind == "handle" for x in self.parameters)

    def dtypes(self, x: Parameter) -> tuple[str, ...]:
        """Return the dtypes that a parameter may have; () without a type variable."""
        return self.variables[x.type_variable][1] if x.type_variable >= 0 else ()

    def shape(self, x: Parameter) -> str:
        """Return an array's dimensions as written: "m, *row"."""
        return ", ".join(self._dim(kind, value) for kind, value in x.dims)

    def _dim(self, kind: str, value: Extent) -> str:
        if not isinstance(value, int):
            return value.text
        if kind == "fixed":
            return str(value)
        if kind in ("named", "variadic"):
            return ("*" if kind == "variadic" else "") + self.dim_names[value]
        return "..." if kind == "loop" else "?"


def signatures_of(operator: Any) -> tuple[Signature, ...]:
    """Return the parsed signatures of an operator, with the fields that its properties set."""
    pairs = zip(operator.signatures, operator.properties, strict=True)
    return tuple(
        parse(text)._replace(reduces="reduces" in own, scans="scans" in own) for text, own in pairs
    )


@cache
def _have_handles(texts: tuple[str, ...]) -> bool:
    return any(parse(text).has_handles for text in texts)


def refuse_handles(operator: Any, where: str, remedy: str) -> None:
    """Raise TypeError for an operator with handles, which `where` does not support."""
    if _have_handles(operator.signatures):
        raise TypeError(
            f"{operator.name}: got an operator with handles in {where}, expected one without; "
            f"{remedy}"
        )


def parse(text: str) -> Signature:
    """Parse signature text.

    Raises
    ------
    SignatureError
        The text is ill-formed.
    """
    name, parameters, outputs, variables, dim_names, ranges, made, each = parse_fields(text)
    return Signature(
        name,
        text,
        tuple(Parameter(*fields) for fields in parameters),
        tuple(Parameter(*fields) for fields in outputs),
        variables,
        dim_names,
        ranges,
        made=made and Parameter(*made),
        each_names=each,
    )
