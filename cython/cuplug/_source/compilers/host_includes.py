# SPDX-License-Identifier: Apache-2.0
"""The files that host code includes. They are a part of the code's key.

The compiler lists these files when it runs. The list is cached with their hashes. The key of the
code is computed from its text and the current contents of the files. A file is read again if its
status has changed.
"""

from __future__ import annotations

import os
import re
import sys
import time
from functools import lru_cache
from typing import NamedTuple

from cuplug._engine.base import flags
from cuplug._source.compilers import cache as disk
from cuplug._source.compilers.cache import sha256

LIST = "code.d"  # the compiler writes the list here, as a make rule
_KIND = "included"
_SYSTEM = ("/usr/", "/lib/", "/opt/", f"{sys.base_prefix}/")
_RECENT_NS = 1_000_000_000  # a recently changed file may change again with the same status


class _File(NamedTuple):
    path: str
    looks: str  # the file's status when it was read; "" if it must be read again
    digest: str


_known: dict[str, list[_File]] = {}  # by the text's key


def key_of(key: str) -> str:
    """Return the key of the code. Without a list, the text counts as including nothing."""
    if key not in _known and (stored := disk.get(key, _KIND)) is not None:
        fields = os.fsdecode(stored).split("\0")
        _known[key] = [_File(*fields[at : at + 3]) for at in range(0, len(fields) - 2, 3)]
    return _of_files(key, _known.get(key, []))


def keep(key: str, directory: str) -> str:
    """Store the list that a compiler wrote to a directory; return the key of the code."""
    with open(os.path.join(directory, LIST), encoding="utf-8", errors="surrogateescape") as file:
        rule = file.read().replace("\\\n", " ").partition(":")[2]
    found = {re.sub(r"\\(.)", r"\1", path) for path in re.findall(r"(?:\\.|\S)+", rule)}
    own = os.path.realpath(directory)
    paths = {os.path.realpath(os.path.join(directory, path)) for path in found}
    files = [_File(path, "", "") for path in sorted(paths) if os.path.dirname(path) != own]
    return _of_files(key, files, is_new=True)


def are_of_system(key: str) -> bool:
    """Return whether a text includes only headers of the system and of cuplug."""
    own = os.path.realpath(os.path.join(flags.get_include(), "cuplug", "plugin.h"))
    places = (*_SYSTEM, os.path.dirname(own) + os.sep)
    return all(file.path.startswith(places) for file in _known.get(key, []))


def _of_files(key: str, files: list[_File], is_new: bool = False) -> str:
    read = [_read(file) for file in files]
    if is_new or read != files:
        _known[key] = read
        disk.put(key, _KIND, os.fsencode("\0".join(field for file in read for field in file)))
    return disk.key(key, *(f"{file.path} {file.digest}" for file in read))


def _read(file: _File) -> _File:
    try:
        about = os.stat(file.path)
        seen = about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_dev
        if file.looks == (looks := " ".join(map(str, seen))):
            return file
        is_recent = time.time_ns() - max(seen[1:3]) < _RECENT_NS
        return _File(file.path, "" if is_recent else looks, _digest_of(file.path, looks))
    except OSError:
        return _File(file.path, "", "not there")


@lru_cache(maxsize=4096)
def _digest_of(path: str, looks: str) -> str:
    with open(path, "rb") as file:
        return sha256(file.read()).hexdigest()
