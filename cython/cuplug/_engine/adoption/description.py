# SPDX-License-Identifier: Apache-2.0
"""Descriptions of adopted libraries: lib<name>.cuplug.toml, next to lib<name>.so."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

SUFFIX = ".cuplug.toml"
MAX_BYTES = 1 << 16  # of a description
MAX_DOTS = 100  # in one of its lines
MAX_NAME = 63  # characters of an operator's
NEEDED = {"signature", "arguments"}
OPTIONAL = (
    *("function", "place", "returns", "scratch", "outputs", "free", "destroy", "order", "lock"),
    *("callback", "gradient", "linear", "doc"),
)
CHOICES = {"place": ("host", "cuda"), "order": ("c", "fortran"), "lock": ("none", "library")}
# Values of `returns`, which may also be the name of an output.
RETURNS = ("zero", "one", "nonzero", "nonnegative", "cuda", "errno", "ignored")
Items = tuple[tuple[str, str], ...]  # keys and texts of one operator, in order


def description_path_of(library: str) -> str:
    """Return the path of the description next to a library."""
    return os.path.splitext(library)[0] + SUFFIX


def plugin_name(library: str) -> str:
    """Return the name of a library as a plugin."""
    stem = os.path.basename(library).removeprefix("lib").split(".")[0]
    plugin = re.sub(r"\W", "_", stem, flags=re.A)
    return plugin if plugin.isidentifier() else f"_{plugin}"


def read_sidecar(library: str) -> dict[str, Any]:
    """Read the description next to a library, from a file with any contents."""
    import tomllib

    path = description_path_of(library)
    try:
        return tomllib.loads(_read_text(path))
    except (OSError, RecursionError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"{path}: the description cannot be read: {reason}") from None


def _read_text(path: str) -> str:
    """Read a text within limits: the parser takes long for deep keys."""
    with open(path, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"got {len(data)} bytes or more, expected at most {MAX_BYTES}")
    text = data.decode()
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > MAX_DOTS:
            n_dots = line.count(".")
            raise ValueError(f"line {number}: got {n_dots} dots, expected at most {MAX_DOTS}")
    return text


class Declared(NamedTuple):
    """The description of all functions: C declarations, and source text with options."""

    prototypes: str
    source: str
    options: tuple[str, ...]


def check_description(
    path: str, description: Mapping[str, Any]
) -> tuple[Declared, dict[str, Items]]:
    """Check the form of a description; return the parts for all functions and for each."""
    if not isinstance(description, Mapping):
        raise TypeError(
            f"{path}: description: got {type(description).__name__}, expected a mapping"
        )
    own = dict(description)
    prototypes = own.pop("prototypes", None)
    if not isinstance(prototypes, str):
        raise ValueError(f"{path}: prototypes: got {prototypes!r}, expected C declarations")
    source, options = own.pop("source", ""), own.pop("options", [])
    if not isinstance(source, str):
        raise ValueError(f"{path}: source: got {source!r}, expected C or C++ as text")
    if not isinstance(options, list) or not all(isinstance(x, str) for x in options):
        raise ValueError(f"{path}: options: got {options!r}, expected a list of texts")
    if not own:
        raise ValueError(f"{path}: its description has no operator")
    for name in own:
        if not isinstance(name, str):
            raise TypeError(f"{path}: description: got the key {name!r}, expected names")
        if not (name.isascii() and name.isidentifier() and len(name) <= MAX_NAME):
            wanted = f"an identifier of at most {MAX_NAME} ASCII characters"
            got = name[:MAX_NAME]
            raise ValueError(f"{path}: description: got the key {got!r}, expected {wanted}")
    declared = Declared(prototypes, source, tuple(options))
    told = {name: _items(name, own[name]) for name in own}
    for name in told:
        gradients_of(name, told)
    return declared, told


def gradients_of(name: str, told: Mapping[str, Items]) -> dict[str, Items]:
    """Return the descriptions of an operator's gradient, of its gradient, and so on.

    Raises
    ------
    ValueError
        The description does not have one of them.
    """
    found: dict[str, Items] = {}
    gradient = dict(told[name]).get("gradient", "")
    while gradient and "." not in gradient and gradient not in found:
        if "callback" in dict(told.get(gradient, (("callback", ""),))):
            raise ValueError(
                f"{name}: gradient: got {gradient!r}, expected an operator of the description, or "
                "plugin.operator"
            )
        found[gradient] = told[gradient]
        gradient = dict(told[gradient]).get("gradient", "")
    return found


def _items(name: str, given: Any) -> Items:
    """Check the form of one operator's description."""
    if not isinstance(given, Mapping) or not (NEEDED <= set(given) <= {*NEEDED, *OPTIONAL}):
        seen = (
            ", ".join(repr(x)[1:-1] for x in given) if isinstance(given, Mapping) else repr(given)
        )
        wanted = f"signature, arguments, and perhaps {', '.join(OPTIONAL)}"
        raise ValueError(f"{name}: got {seen}, expected {wanted}")
    for key, text in given.items():
        if not isinstance(text, str) or text not in CHOICES.get(key, (text,)):
            wanted = " or ".join(map(repr, CHOICES.get(key, ()))) or "text"
            raise ValueError(f"{name}: {key}: got {text!r}, expected {wanted}")
        if key == "doc" and not text.isprintable():
            raise ValueError(f"{name}: doc: got {text!r}, expected one line")
    return tuple(sorted(given.items()))
