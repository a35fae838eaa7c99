# SPDX-License-Identifier: Apache-2.0
"""Flags as one line for `gcc $(cuplug --cflags)`, which a shell splits at every space."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence

from cuplug._source.compilers import cache


def command_line(options: Sequence[str]) -> str:
    """Join flags with spaces; a path with a space becomes a link in the cache that has none.

    If the cache cannot be written or has a space in its own path, the flag stays as it is.
    """
    return " ".join(_without_spaces(option) for option in options)


def _without_spaces(option: str) -> str:
    if not _has_space(option):
        return option
    flag, slash, rest = option.partition("/")
    path = slash + rest
    link = os.path.join(cache.directory(), "paths", hashlib.sha256(os.fsencode(path)).hexdigest())
    if _has_space(link) or not cache.make_directory():
        return option
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(link), mode=0o700, exist_ok=True)
        os.symlink(path, link)
    leads_there = os.path.islink(link) and os.readlink(link) == path
    return flag + link if leads_there else option


def _has_space(text: str) -> bool:
    return any(character.isspace() for character in text)
