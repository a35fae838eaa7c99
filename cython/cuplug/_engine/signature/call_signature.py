# SPDX-License-Identifier: Apache-2.0
"""Operators' signatures in the form of the module `inspect`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from inspect import Parameter, Signature
from typing import Any

from cuplug._engine.signature import signature as signatures

_OWN = [
    Parameter("out", Parameter.KEYWORD_ONLY, default=None),
    Parameter("device", Parameter.KEYWORD_ONLY, default=None),
    Parameter("stream", Parameter.KEYWORD_ONLY, default=None),
]


def to_inspect(texts: Sequence[str], is_own: bool = True) -> Signature:
    """Return the call signature of overloads; `(*args, ...)` if no single one describes all.

    The longest overload also describes others that only lack arguments with defaults at the end.
    If `is_own`, a call also takes the arguments of all cuplug operators, such as `out=`.
    """
    if not texts:
        return Signature()
    overloads = [_parameters(signatures.parse(text)) for text in texts]
    own = [*_returns(texts), *_OWN] if is_own else []
    some = Signature([Parameter("args", Parameter.VAR_POSITIONAL), *own])
    longest = max(overloads, key=len)
    least = min(map(len, overloads))
    needed = [x for x in longest[least:] if x.default is Parameter.empty]
    if needed or any(overload != longest[: len(overload)] for overload in overloads):
        return some
    try:
        return Signature([*longest, *own])
    except ValueError:  # Python allows no default before a parameter without one
        return some


@cache
def are_alike(texts: tuple[str, ...]) -> bool:
    """Return whether overloads have the same parameter at each position."""
    names = [[x.name for x in signatures.parse(text).parameters] for text in texts]
    longest = max(names, key=len)
    return all(row == longest[: len(row)] for row in names)


def by_name(
    signature: signatures.Signature, args: Sequence[Any], keywords: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the arguments of a call by the names of one overload; None if they do not fit."""
    names = [x.name for x in signature.parameters]
    given = dict(zip(names, args, strict=False))
    if len(args) > len(names) or not keywords.keys() <= {*names} or keywords.keys() & given.keys():
        return None
    return given | dict(keywords)


def _returns(texts: Sequence[str]) -> list[Parameter]:
    outputs = [x for text in texts for x in signatures.parse(text).outputs if x.has_default]
    names = dict.fromkeys(f"return_{x.name}" for x in outputs)
    return [Parameter(name, Parameter.KEYWORD_ONLY, default=False) for name in names]


def _parameters(signature: signatures.Signature) -> list[Parameter]:
    kind = Parameter.POSITIONAL_OR_KEYWORD
    return [
        Parameter(x.name, kind, default=x.default if x.has_default else Parameter.empty)
        for x in signature.parameters
    ]
