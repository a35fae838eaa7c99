# SPDX-License-Identifier: Apache-2.0
"""Signatures of element-wise operators without brackets -> signatures for the core.

In `leaky_relu(x: T, slope: T) -> T` each parameter is an array or a number, and arrays broadcast.
Type variables that nothing binds stand for any dtype, if they are a capital letter, perhaps with a
number behind it: other names may be misspelled dtypes, and the core's parser refuses them.
"""

from __future__ import annotations

import itertools
import re

from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.signature.fields import parse_fields
from cuplug.errors import SignatureError

MAX_EITHER = 6  # parameters that may be arrays or numbers: 63 overloads
NUMBERS = ("int", "float", "complex", "str")

_WHOLE = re.compile(r"\s*(\w+)\s*\((.*?)\)\s*(?:->(.*?))?\s*(?:\bwhere\b(.*))?", re.S)
_PART = re.compile(r"""(?:[^,'"]|'[^']*'|"[^"]*")+""")
_SEEN = re.compile(r' at byte \d+, seen ".*"$', re.S)
_VARIABLE = re.compile(r"[A-Z][0-9]*")
_TYPE = re.compile(r":\s*([A-Za-z_]\w*)|->\s*\(?\s*([A-Za-z_]\w*)\s*\[")


def expand(text: str) -> list[str]:
    """Return the overloads that a signature stands for: all arrays first, then fewer.

    Raises
    ------
    SignatureError
        The text is ill-formed.
    """
    rows = _expanded(text)
    for row in rows:
        try:
            parse_fields(row)
        except SignatureError as error:
            raise _as_written(error, text) from None
    return rows


def _as_written(error: SignatureError, text: str) -> SignatureError:
    """Return the error of an overload, with its place in the shorter text that was written."""
    at = 0
    for c in error.text.encode()[: error.position].decode(errors="ignore"):
        while text[at : at + 1].isspace() and not c.isspace():
            at += 1
        at += text[at : at + 1] == c
    position = len(text[:at].encode())
    seen = f' at byte {position}, seen "{text[at : at + 12]}"'
    return SignatureError(_SEEN.sub(lambda _: seen, error.message), position, text)


def _expanded(text: str) -> list[str]:
    if "[" in text or not (whole := _WHOLE.fullmatch(text)):
        return [bind_types(text)]
    name, parameters, outputs, where = whole.groups()
    parts = [part.strip() for part in _PART.findall(parameters)]
    results = "" if outputs is None else f" -> {_arrays(outputs)}"
    bounds = f" where{where}" if where else ""
    choices = [_forms(part) for part in parts]
    n_either = sum(len(forms) > 1 for forms in choices)
    if n_either > MAX_EITHER:
        raise ValueError(
            f"{name}: {n_either} parameters may be arrays or numbers, wanted at most {MAX_EITHER}; "
            "write T[...] for arrays"
        )
    rows = []
    for forms in itertools.product(*choices):
        arrays = [form for form in forms if "[" in form]
        scalars = [form for form in forms if "[" not in form]
        known = {*DTYPES, *NUMBERS, "", *map(_type_of, arrays)}
        if arrays and known.issuperset(map(_type_of, scalars)):
            row = f"{name}({', '.join(forms)}){results}{bounds}"
            rows.append(bind_types(row))
    return rows or [bind_types(text)]


def add_parameters(text: str, more: str) -> str:
    """Return a signature with more parameters behind its own."""
    whole = _WHOLE.fullmatch(text)
    if not whole:
        return text
    end = whole.end(2)
    return f"{text[:end].rstrip()}, {more}{text[end:]}"


def bind_types(text: str) -> str:
    """Add `where T: any` for the type variables, if there is no `where`."""
    if re.search(r"\bwhere\b", text):
        return text
    found = [first or second for first, second in _TYPE.findall(text)]
    variables = [name for name in dict.fromkeys(found) if _VARIABLE.fullmatch(name)]
    return f"{text} where {', '.join(f'{name}: any' for name in variables)}" if variables else text


def _forms(part: str) -> list[str]:
    """Return what a parameter may be: an array, a number, or the one and then the other."""
    kind = part.partition(":")[2].strip()
    if part.startswith("inout "):
        return [f"{part}[...]"]
    is_number = "=" in part or not re.fullmatch(r"\w+", kind) or kind in NUMBERS
    return [part] if is_number else [f"{part}[...]", part]


def _type_of(form: str) -> str:
    found = re.match(r"\w+", form.partition(":")[2].strip())
    return found[0] if found else ""


def _arrays(outputs: str) -> str:
    inner = outputs.strip().removeprefix("(").removesuffix(")").split(",")
    arrays = ", ".join(f"{part.strip()}[...]" for part in inner)
    return f"({arrays})" if len(inner) > 1 else arrays
