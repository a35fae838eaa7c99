# SPDX-License-Identifier: Apache-2.0
"""Digests of plugins and their libraries: written by `cuplug lock`, compared later.

The file has the format of sha256sum, and can be used as CUPLUG_ALLOW_LIST.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from cuplug._engine.adoption.description import SUFFIX
from cuplug._engine.lookup.records import PluginFile
from cuplug._engine.modules.runtime import LIBRARY, find_runtime
from cuplug._integration.author.elf import ElfError, linked, open_regular, read_library
from cuplug.errors import NotFoundError, PluginError

__all__ = ["NAME", "Compared", "compare", "read_lock", "write_lock"]

NAME = "cuplug.lock"
MAX_BYTES = 16 << 20  # as for CUPLUG_ALLOW_LIST
LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")
SAME, CHANGED, MISSING = "same", "changed", "missing"


@dataclass
class Compared:
    """One file of a lock, and the file that is now found by its name."""

    file: str
    state: str  # "same", "changed" or "missing"
    path: str = ""  # of the found file

    def as_dict(self) -> dict[str, str]:
        """Return the file for JSON."""
        return asdict(self)


def write_lock(path: str, plugins: Iterable[PluginFile], version: str) -> list[str]:
    """Write the digests of plugins and of the libraries that they link; return the files.

    Raises
    ------
    PluginError
        A linked library is not found, or cannot be read.
    """
    lines = [f"# Written by cuplug lock {version}; CUPLUG_ALLOW_LIST takes this file."]
    listed: dict[str, list[str]] = {}  # library -> the plugins that need it
    files = []
    for plugin in plugins:
        lines.append(f"# {plugin.name} {plugin.version}: {', '.join(plugin.operators)}".rstrip())
        for file in _own_files(plugin):
            lines.append(f"{_digest(file)}  {file}")
            files.append(file)
        for file in _linked_files(plugin.path):
            listed.setdefault(file, []).append(plugin.name)
    for file, names in sorted(listed.items()):
        lines += [f"# linked by {', '.join(names)}", f"{_digest(file)}  {file}"]
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("\n".join(lines) + "\n")
    return [*files, *sorted(listed)]


def read_lock(path: str) -> dict[str, str]:
    """Return the digests in a lock, by file name.

    Raises
    ------
    NotFoundError, PluginError
        The file does not exist, or is not a lock.
    """
    try:
        with open_regular(path) as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise PluginError(f"{path}: got more than 16 MiB, expected a lock")
        lines = data.decode().split("\n")
    except FileNotFoundError:
        raise NotFoundError(f"{path}: no such file: `cuplug lock` writes it") from None
    except (OSError, ElfError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise PluginError(f"{path}: {reason}") from None
    except UnicodeDecodeError:
        raise PluginError(f"{path}: got bytes that are no text, expected a lock") from None
    digests = {}
    for number, line in enumerate(lines, 1):
        match = LINE.fullmatch(line)
        if match:
            digests[os.path.basename(match[2])] = match[1]
        elif line.strip() and not line.startswith("#"):
            raise PluginError(f"{path}: line {number}: got {line!r}, expected a digest and a file")
    return digests


def compare(digests: dict[str, str], plugins: Iterable[PluginFile]) -> list[Compared]:
    """Compare a lock with the plugins that are used now. Plugins that it lacks are skipped."""
    found: dict[str, str] = {}
    for plugin in plugins:
        if os.path.basename(plugin.path) in digests:
            for file in (*_own_files(plugin), *_linked_files(plugin.path)):
                found.setdefault(os.path.basename(file), file)
    compared = []
    for name, digest in digests.items():
        path = found.pop(name, "")
        state = MISSING if not path else SAME if _digest(path) == digest else CHANGED
        compared.append(Compared(name, state, path))
    # Libraries that are linked now and were not linked then.
    return [*compared, *(Compared(name, CHANGED, path) for name, path in found.items())]


def _own_files(plugin: PluginFile) -> list[str]:
    """Return a plugin's file, and the description next to a library that is not a plugin."""
    beside = plugin.path.removesuffix(".so") + SUFFIX
    has_one = plugin.kind == "adopted" or (plugin.kind == "module" and os.path.lexists(beside))
    return [plugin.path, *([beside] if has_one else [])]


def _linked_files(path: str) -> list[str]:
    try:
        found, missing = linked(read_library(path, whole=False), whole=False)
    except (OSError, ElfError) as error:
        raise PluginError(f"{path}: {error}") from None
    runtime = find_runtime() if LIBRARY in missing else ""  # in the package of tvm-ffi
    if lacking := [x for x in missing if x != LIBRARY or not os.path.isabs(runtime)]:
        raise PluginError(f"{path}: missing libraries: {', '.join(lacking)}; install them")
    return [library.path for library in found] + [runtime] * bool(runtime)


def _digest(path: str) -> str:
    with open_regular(path) as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
