# SPDX-License-Identifier: Apache-2.0
"""The files that host code includes, so that a change of one is a change of the code.

Which files they are the compiler says when it runs; the list is kept. Code is kept under a key of
its text and of what those files hold now.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

from cuplug.compilers import cache as disk
from cuplug.compilers.program import sha256

LIST = "code.d"  # where the compiler writes the list, as a rule of make
_KIND = "includes"
_known: dict[str, list[str]] = {}  # by the key of the text


def key_of(key: str) -> str:
    """Return the key of the code: without a list, that of a text which includes nothing."""
    if key not in _known and (stored := disk.get(key, _KIND)) is not None:
        _known[key] = os.fsdecode(stored).split("\0")
    return _of_files(key, _known.get(key, []))


def keep(key: str, directory: str) -> str:
    """Keep the list that a compiler has written to a directory; return the key of the code."""
    with open(os.path.join(directory, LIST), encoding="utf-8", errors="surrogateescape") as file:
        rule = file.read().replace("\\\n", " ").partition(":")[2]
    found = {re.sub(r"\\(.)", r"\1", path) for path in re.findall(r"(?:\\.|\S)+", rule)}
    own = os.path.realpath(directory)
    files = {os.path.realpath(os.path.join(directory, path)) for path in found}
    listed = _known[key] = sorted(path for path in files if os.path.dirname(path) != own)
    disk.put(key, _KIND, os.fsencode("\0".join(listed)))
    return _of_files(key, listed)


def _of_files(key: str, files: list[str]) -> str:
    return disk.key(key, *(f"{path} {_digest(path)}" for path in files if path))


def _digest(path: str) -> str:
    try:
        about = os.stat(path)
        return _digest_of(path, about.st_size, about.st_mtime_ns, about.st_ino)
    except OSError:
        return "not there"


@lru_cache(maxsize=4096)
def _digest_of(path: str, n_bytes: int, time_ns: int, inode: int) -> str:
    with open(path, "rb") as file:
        return sha256(file.read()).hex()
