# SPDX-License-Identifier: Apache-2.0
"""Arguments and sizes that a command is told: `--set k=3`, `--set k=0..8`, `--shape x=4,3`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from cuplug._engine.signature.evaluate import ARRAYS
from cuplug._engine.signature.signature import Parameter, Signature

NUMBERS = (bool, int, float, complex)
_MADE = (*ARRAYS, "handle")  # kinds of parameters that no text says
HOW = "wanted a number, or a range as in 0..8"


class Range(NamedTuple):
    """Numbers from `low` to `high`, both included."""

    low: Any
    high: Any


def split(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Return what the options `NAME=TEXT` of a command say, by name."""
    said = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ValueError(f"{option}: seen {text!r}, wanted a name and what it is to be: k=3")
        if name in said:
            raise ValueError(f"{option}: {name}: seen twice")
        said[name] = value
    return said


def settable(signature: Signature) -> list[str]:
    """Return the names that can be set: what is no array, dimensions, arrays to be left out."""
    parameters = [x.name for x in signature.parameters if x.kind not in _MADE or x.has_default]
    return list(dict.fromkeys([*parameters, *_sizes(signature)]))


def read_pins(signature: Signature, said: dict[str, str]) -> dict[str, Any]:
    """Return a value or a Range for each of the names that the signature has.

    Raises
    ------
    ValueError
        What is said of one of them is none of its values.
    """
    parameters = {x.name: x for x in signature.parameters}
    names = settable(signature)
    return {
        name: _read_pin(name, text, parameters.get(name))
        for name, text in said.items()
        if name in names
    }


def check_names(option: str, said: Iterable[str], known: Sequence[str]) -> None:
    """Raise ValueError for a name that no signature has."""
    for name in said:
        if name not in known:
            wanted = f"wanted one of {', '.join(known)}" if known else "there is nothing to set"
            raise ValueError(f"{option}: {name}: no such name, {wanted}")


def read_shapes(signature: Signature, said: dict[str, str]) -> dict[str, tuple[int, ...]]:
    """Return shapes by the names of array parameters: "4,3" is (4, 3), "" an array of no dimension.

    Raises
    ------
    ValueError
        There is no such array, or its shape is none.
    """
    check_names("--shape", said, [x.name for x in signature.parameters if x.kind in ARRAYS])
    return {name: _read_shape(name, text) for name, text in said.items()}


def _read_shape(name: str, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"--shape: {name}: seen {text!r}, wanted sizes, as in 1024,1024")
    return tuple(int(part) for part in parts)


def _sizes(signature: Signature) -> list[str]:
    named = {value for x in signature.arrays for kind, value in x.dims if kind == "named"}
    return [name for k, name in enumerate(signature.dim_names) if k in named]


def _read_pin(name: str, text: str, x: Parameter | None) -> Any:
    if x is None:
        return _read_range(name, text, _size)
    if x.has_default and x.default is None and text == "None":
        return None
    if x.kind in _MADE:
        raise ValueError(f"--set: {name}: got {text!r}, expected None, which leaves it out")
    if x.kind == "list":
        return _read_list(name, text)
    if x.kind == "string":
        return text
    if x.kind == "choice":
        if text not in x.choices:
            raise ValueError(f"--set: {name}: seen {text!r}, wanted {' or '.join(x.choices)}")
        return text
    return _read_range(name, text, _number)


def _read_range(name: str, text: str, read: Callable[[str], Any]) -> Any:
    first, dots, last = text.partition("..")
    try:
        low = read(first)
        if not dots:
            return low
        high = read(last)
        if low <= high:
            return Range(low, high)
    except (ValueError, TypeError, SyntaxError):
        pass
    raise ValueError(f"--set: {name}: seen {text!r}, {HOW}")


def _read_list(name: str, text: str) -> list[Any]:
    try:
        return [_number(part) for part in text.split(",") if part.strip()]
    except (ValueError, TypeError, SyntaxError):
        raise ValueError(f"--set: {name}: seen {text!r}, wanted numbers, as in 0,2") from None


def _number(text: str) -> Any:
    value = float(text) if text.strip("+-") in ("inf", "nan") else ast.literal_eval(text.strip())
    if not isinstance(value, NUMBERS):
        raise ValueError(text)
    return value


def _size(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)
