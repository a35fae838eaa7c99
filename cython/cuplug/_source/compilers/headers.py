# SPDX-License-Identifier: Apache-2.0
"""The files that a source includes. They are a part of its key."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from cuplug._source.compilers import nvrtc

_INCLUDE = r"^[ \t]*#[ \t]*include\b[ \t]*([<\"]?)([^>\"\n]*)"
_SEPARATE = ("-I", "--include-path", "-include", "--pre-include")


def included_texts(
    source: str, name: str, options: Sequence[str], given: Mapping[str, str]
) -> dict[str, str] | None:
    """Return the files that a source includes, directly or not, from the user's directories.

    Files in branches that the preprocessor omits are included. The compiler's own headers are not.

    Returns
    -------
    dict or None
        Path -> text; None if a macro computes an include.
    """
    directories, forced = _directories(options)
    texts: dict[str, str] = {}
    waiting = [(os.path.dirname(name) or ".", source)]
    waiting += [(".", f'#include "{file}"') for file in forced]
    waiting += [(".", text) for text in given.values()]
    while waiting:
        here, text = waiting.pop()
        if "include" not in text:  # compiling the pattern takes most of the start time
            continue
        for quote, target in re.findall(_INCLUDE, text, re.M):
            if not quote:
                return None
            path = next(_places(target, [here, *directories]), None)
            if target in given or path is None or path in texts:
                continue
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                texts[path] = file.read()
            waiting.append((os.path.dirname(path), texts[path]))
    return texts


def is_self_contained(source: str, given: Mapping[str, str]) -> bool:
    """Return whether a source and its `headers` include only small headers from this list."""
    texts = [text for text in (source, *given.values()) if "include" in text]
    known = {*given, *nvrtc.LIGHT}
    return all(target in known for text in texts for _, target in re.findall(_INCLUDE, text, re.M))


def _places(target: str, directories: Sequence[str]) -> Iterator[str]:
    for directory in directories:
        path = os.path.realpath(os.path.join(directory, target))
        if os.path.isfile(path):
            yield path


def _directories(options: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the directories of include options, and the files that options include."""
    directories, forced = [], []
    following = iter(options)
    for option in following:
        name, equals, value = option.partition("=")
        if option in _SEPARATE:
            name, equals, value = option, "=", next(following, "")
        if name.startswith("-I") and len(name) > 2:
            directories.append(option[2:])
        elif equals and name in ("-I", "--include-path"):
            directories.append(value)
        elif equals and name in ("-include", "--pre-include"):
            forced.append(value)
    return directories, forced
