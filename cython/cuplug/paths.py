# SPDX-License-Identifier: Apache-2.0
"""Paths that callers give."""

from __future__ import annotations

import os


def absolute(function: str, path: object) -> str:
    """Return a path as an absolute one.

    Raises
    ------
    TypeError
        It is no path.
    ValueError
        It has a zero character.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"{function}: path: seen {type(path).__name__}, wanted a path")
    text = os.fsdecode(path)
    if "\0" in text:
        raise ValueError(f"{function}: path: seen {text!r}, wanted a path without zero characters")
    return os.path.abspath(text)
