# SPDX-License-Identifier: Apache-2.0
"""Operators' signatures in the form of the module `inspect`."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import Parameter, Signature

from cuplug.signature import signature as signatures

_OWN = [
    Parameter("out", Parameter.KEYWORD_ONLY, default=None),
    Parameter("device", Parameter.KEYWORD_ONLY, default=None),
    Parameter("stream", Parameter.KEYWORD_ONLY, default=None),
]
_ANY = [Parameter("args", Parameter.VAR_POSITIONAL), *_OWN]


def to_inspect(texts: Sequence[str]) -> Signature:
    """Return the call signature of overloads; `(*args, ...)` where they differ."""
    if not texts:
        return Signature()
    overloads = [_parameters(signatures.parse(text)) for text in texts]
    same = all(overload == overloads[0] for overload in overloads)
    try:
        return Signature([*overloads[0], *_OWN] if same else _ANY)
    except ValueError:  # what Python does not have: a default before a parameter without one
        return Signature(_ANY)


def _parameters(signature: signatures.Signature) -> list[Parameter]:
    kind = Parameter.POSITIONAL_OR_KEYWORD
    return [
        Parameter(x.name, kind, default=x.default if x.has_default else Parameter.empty)
        for x in signature.parameters
    ]
