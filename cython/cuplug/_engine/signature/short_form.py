# SPDX-License-Identifier: Apache-2.0
"""Signatures of element-wise operators without brackets -> signatures for the core.

In `leaky_relu(x: T, slope: T) -> T` each parameter is an array or a number, and arrays broadcast.
Type variables without a binding allow any dtype if they are a capital letter, optionally followed
by a number. Other names may be misspelled dtypes, and the core's parser rejects them.
"""

from __future__ import annotations

import itertools

from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.signature.fields import SPACES, parse_fields, parse_short
from cuplug.errors import SignatureError

MAX_EITHER = 6  # parameters that may be arrays or numbers: 63 overloads
NUMBERS = ("int", "float", "complex", "str")
_LOOP = "[...]"
Addition = tuple[int, str]  # a position in the bytes of a text, and the text to insert there


def expand(text: str) -> list[str]:
    """Return the overloads of a short signature: the one with the most arrays first.

    Raises
    ------
    SignatureError
        The text is ill-formed.
    """
    text = text.translate(SPACES)
    rows = []
    for additions in _overloads(text):
        row = _add(text, additions)
        try:
            parse_fields(row)
        except SignatureError as error:
            position = _as_written(error, additions)
            raise SignatureError(_message(error, position, text), position, text) from None
        rows.append(row)
    return rows


def add_parameters(text: str, more: str) -> str:
    """Return a signature with more parameters after its own."""
    return _add(text, [(parse_short(text)[2], f", {more}")])


def _overloads(text: str) -> list[list[Addition]]:
    """Return the texts to insert for each overload."""
    parameters, outputs, _, variables, has_where = parse_short(text)
    free = [] if has_where else [f"{name}: any" for name in variables if _is_variable(name)]
    bounds = [(len(text.encode()), f" where {', '.join(free)}")] if free else []
    if "[" in text:
        return [bounds]
    forms = [_forms(*x[:3]) for x in parameters]
    either = [x for x, form in zip(parameters, forms, strict=True) if len(form) > 1]
    if len(either) > MAX_EITHER:
        raise SignatureError(
            f"signature: got {len(either)} parameters that may be arrays or numbers, expected at "
            f"most {MAX_EITHER}; write T[...] for arrays",
            either[MAX_EITHER][3],
            text,
        )
    results = [(x[3], _LOOP) for x in outputs]
    rows = []
    for chosen in itertools.product(*forms):
        pairs = list(zip(parameters, chosen, strict=True))
        arrays = [x for x, is_array in pairs if is_array]
        known = {*DTYPES, *NUMBERS, "", *(x[1] for x in arrays)}
        if arrays and known.issuperset(x[1] for x in parameters):
            rows.append([*((x[3], _LOOP) for x in arrays), *results, *bounds])
    return rows or [[]]


def _forms(kind: str, dtype: str, has_default: bool) -> tuple[bool, ...]:
    """Return whether a parameter is an array: True, False, or both in turn."""
    if kind == "inout":
        return (True,)
    return (False,) if has_default or kind != "scalar" or dtype in NUMBERS else (True, False)


def _is_variable(name: str) -> bool:
    digits = name[1:]
    return "A" <= name[0] <= "Z" and (not digits or (digits.isascii() and digits.isdigit()))


def _add(text: str, additions: list[Addition]) -> str:
    encoded = text.encode()
    for at, more in reversed(additions):
        encoded = encoded[:at] + more.encode() + encoded[at:]
    return encoded.decode()


def _message(error: SignatureError, position: int, text: str) -> str:
    """Return an error's message; at the end of the text it does not quote an addition."""
    try:
        if position == len(text.encode()):
            parse_fields(text)
    except SignatureError as own:
        if own.position == position:
            return own.message
    return error.message


def _as_written(error: SignatureError, additions: list[Addition]) -> int:
    """Return the position of an error in the text without the additions."""
    position = error.position
    for at, more in additions:
        if position > at:
            position = max(at, position - len(more.encode()))
    return position
