# SPDX-License-Identifier: Apache-2.0
"""What callers give to functions that are no operators: paths, sequences of texts."""

from __future__ import annotations

import os
from collections.abc import Iterable


def absolute(function: str, path: object, argument: str = "path") -> str:
    """Return a path as an absolute one.

    Raises
    ------
    TypeError
        It is no path.
    ValueError
        It has a zero character.
    """
    where = f"{function}: {argument}"
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"{where}: seen {type(path).__name__}, wanted a path")
    text = os.fsdecode(path)
    if "\0" in text:
        raise ValueError(f"{where}: seen {text!r}, wanted a path without zero characters")
    return os.path.abspath(text)


def texts_of(function: str, argument: str, values: object) -> tuple[str, ...]:
    """Return a sequence of str, which one str alone is not meant to be.

    Raises
    ------
    TypeError
        It is something else.
    """
    where = f"{function}: {argument}"
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{where}: seen {type(values).__name__}, wanted a sequence of str")
    texts = tuple(values)
    for k, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{where}[{k}]: seen {type(text).__name__}, wanted a str")
    return texts
