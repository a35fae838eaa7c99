# SPDX-License-Identifier: Apache-2.0
"""A new plugin, ready to build and to edit: `cuplug new NAME`."""

from __future__ import annotations

import keyword
import os
import re
from string import Template

DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")
TEMPLATES = {"plugin.cu.in": "{name}.cu", "test.py.in": "test_{name}.py"}
# Symbols are up to 95 bytes, and a table has room for 63 bytes of a name.
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")


def check_name(name: str) -> None:
    """Raise ValueError for what cannot be the name of a plugin and of a Python function."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f"new: name: seen {name!r}, wanted a letter, then letters, digits and underscores, 63 "
            "characters at most"
        )
    if keyword.iskeyword(name):
        raise ValueError(f"new: name: {name!r} is a word of Python, wanted another")


def write_plugin(name: str, directory: str = ".") -> list[str]:
    """Write the folder `name` with a plugin of one operator, and a test.

    Returns
    -------
    list of str
        The files.

    Raises
    ------
    ValueError
        The name cannot be one.
    FileExistsError
        There is something of that name; nothing is written.
    """
    check_name(name)
    folder = os.path.normpath(os.path.join(directory, name))
    if os.path.lexists(folder):
        raise FileExistsError(f"new: {folder} is there already, wanted a name that is free")
    os.mkdir(folder)
    written = []
    for template, file in TEMPLATES.items():
        with open(os.path.join(DIRECTORY, template)) as stream:
            text = Template(stream.read()).substitute(name=name)
        written.append(os.path.join(folder, file.format(name=name)))
        with open(written[-1], "x") as stream:
            stream.write(text)
    return written
