# SPDX-License-Identifier: Apache-2.0
"""Arguments of functions that are not operators: paths, texts, sequences of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping


def check_text(function: str, argument: str, text: object) -> str:
    """Return a text that can be passed to C code.

    Raises
    ------
    TypeError
        If it is not a str.
    ValueError
        If it has a zero character, which ends C strings, or UTF-8 cannot encode it.
    """
    where = f"{function}: {argument}"
    if not isinstance(text, str):
        raise TypeError(f"{where}: got {type(text).__name__}, expected a str")
    if "\0" in text:
        raise ValueError(f"{where}: got a zero character, expected text without")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{where}: got {text!r}, expected text for UTF-8: {error}") from None
    return text


def check_strings(
    function: str, wanted: Mapping[str, object], optional: Mapping[str, object] | None = None
) -> None:
    """Check texts by their arguments' names; optional ones may be None."""
    given = {name: text for name, text in (optional or {}).items() if text is not None}
    for argument, text in {**wanted, **given}.items():
        check_text(function, argument, text)


def as_str_tuple(function: str, argument: str, values: object) -> tuple[str, ...]:
    """Return a sequence of texts; a single str is rejected.

    Raises
    ------
    TypeError, ValueError
        If it is something else, or an item is not a text.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        seen = type(values).__name__
        raise TypeError(f"{function}: {argument}: got {seen}, expected a sequence of str")
    try:
        given = list(values)
    except TypeError:  # of an array without dimensions
        wanted = "a sequence of str"
        raise TypeError(f"{function}: {argument}: got {values!r:.60}, expected {wanted}") from None
    return tuple(check_text(function, f"{argument}[{k}]", x) for k, x in enumerate(given))


def absolute(function: str, path: object, argument: str = "path") -> str:
    """Return a path as an absolute one.

    Raises
    ------
    TypeError
        If it is not a path.
    ValueError
        If it has a zero character, or one that is invalid in file names.
    """
    where = f"{function}: {argument}"
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"{where}: got {type(path).__name__}, expected a path")
    text = os.fsdecode(path)
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError as error:
        raise ValueError(f"{where}: got {text!a}, expected a path: {error}") from None
    if b"\0" in encoded:
        raise ValueError(f"{where}: got {text!r}, expected a path without zero characters")
    return os.path.abspath(text)
