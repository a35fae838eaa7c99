# SPDX-License-Identifier: Apache-2.0
"""Compiled code, cached on disk between processes.

An entry is one file, `<key>.<kind>`: the data, then a trailer with its length and SHA-256. ELF
readers ignore bytes after the end of the file's contents, so a cached shared library can be loaded
directly. An entry is written to a temporary folder in the same directory and renamed. Readers see a
complete entry or none, and a damaged file fails its checksum. This needs no lock. The locks of
key_lock.py only save work. When the directory exceeds its limit, the least recently used entries
are removed. On average, one `put` in many checks the size. Files that are not entries are never
removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator

from cuplug._engine.base import environment
from cuplug._engine.discovery.fields import check_owner
from cuplug._source.compilers import temporary
from cuplug.errors import NotFoundError, PluginError

try:  # as in Python's `random`: hashlib loads OpenSSL, which takes 3 ms
    from _sha2 import sha256  # type: ignore[import-not-found]
except ImportError:  # Python 3.11
    from hashlib import sha256

FORMAT = "cuplug cache 1"  # changes when the form or meaning of entries changes
MAGIC = b"cuplug01"
TRAILER_BYTES = 8 + 32 + len(MAGIC)  # length, little-endian; SHA-256; magic
DEFAULT_BYTES = 1 << 30
_NAME = re.compile(r"[0-9a-f]{64}\.[a-z]+")
TOUCH_S = 60.0  # an entry used again within this time keeps its time stamp


def key(*parts: str | bytes) -> str:
    """Return the key of a result of `parts`: a SHA-256 as 64 digits.

    The order of `parts` counts.
    """
    encoded = [
        part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        for part in (FORMAT, *parts)
    ]
    lengths = " ".join(str(len(part)) for part in encoded).encode()
    return sha256(b"".join([lengths, b"\n", *encoded])).hexdigest()


def directory() -> str:
    """Return the directory: $CUPLUG_CACHE_DIR, else `cuplug` in $XDG_CACHE_HOME or ~/.cache."""
    chosen = environment.variable("CUPLUG_CACHE_DIR")
    if chosen:
        with contextlib.suppress(OSError):  # the working directory was removed
            return os.path.abspath(chosen)
        return chosen
    base = environment.variable("XDG_CACHE_HOME")
    home = base if os.path.isabs(base) else os.path.join(environment.home(), ".cache")
    return os.path.join(home, "cuplug")


def limit() -> int:
    """Return the limit of the directory in bytes, $CUPLUG_CACHE_BYTES or 1 GiB; 0: no cache.

    Raises
    ------
    ValueError
        The variable is not a number of bytes.
    """
    text = environment.variable("CUPLUG_CACHE_BYTES")
    if not text:
        return DEFAULT_BYTES
    if not (text.isascii() and text.isdigit()):
        raise ValueError(
            f"CUPLUG_CACHE_BYTES: got {text!r}, expected a number of bytes, 0 for none"
        )
    return int(text)


def get(key: str, kind: str) -> bytes | None:
    """Return the stored entry; None if it is missing, damaged or another user's."""
    read = _read(key, kind)
    return None if read is None else read[1]


def get_path(key: str, kind: str) -> str | None:
    """Return the path of a stored file that has passed the checks of `get`, or None."""
    read = _read(key, kind)
    return None if read is None else read[0]


def put(key: str, kind: str, data: bytes) -> str | None:
    """Store data. Return its path, or None if no cache can be written.

    Older entries are removed if the directory exceeds its limit, which not every call checks.
    """
    if len(data) + TRAILER_BYTES > limit() or not make_directory():
        return None
    final = _path(key, kind)
    try:
        write_entry(final, directory(), data)
    except OSError:
        return None
    if _is_turn(len(data)):
        _evict(keep=final)
    return final


class Entry:
    """One file of the cache; `used` in seconds since the epoch."""

    def __init__(self, path: str, kind: str, n_bytes: int, used: float) -> None:
        self.path = path
        self.kind = kind
        self.n_bytes = n_bytes
        self.used = used


def entries() -> list[Entry]:
    """Return the entries, least recently used first."""
    found = [
        Entry(path, os.path.basename(path).partition(".")[2], status.st_size, status.st_mtime)
        for path, status in _files()
    ]
    return sorted(found, key=lambda entry: (entry.used, entry.path))


def clear() -> int:
    """Remove all entries and leftovers of killed processes; return the number of entries."""
    temporary.sweep(directory())
    return sum(_remove(path) for path, _ in _files())


def without_spaces(option: str) -> str:
    """Return a path for `cuplug --cflags`, whose output a shell splits at each space.

    A path with a space is replaced by a link in the cache. If the cache cannot be written, or its
    own path has a space, the path is unchanged.
    """
    if not _has_space(option):
        return option
    flag, slash, rest = option.partition("/")
    path = slash + rest
    link = os.path.join(directory(), "paths", sha256(os.fsencode(path)).hexdigest())
    if _has_space(link) or not make_directory():
        return option
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(link), mode=0o700, exist_ok=True)
        os.symlink(path, link)
    leads_there = os.path.islink(link) and os.readlink(link) == path
    return flag + link if leads_there else option


def _has_space(text: str) -> bool:
    return any(character.isspace() for character in text)


def _path(key: str, kind: str) -> str:
    return os.path.join(directory(), f"{key}.{kind}")


def _trailer(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + sha256(data).digest() + MAGIC


def _read(key: str, kind: str) -> tuple[str, bytes] | None:
    if not limit() or not _is_own_directory():
        return None
    path = _path(key, kind)
    try:
        status, data = read_entry(path)
    except OSError:
        return None
    if not _is_own(status):
        return None
    if data is None:
        _remove(path)
        return None
    if time.time() - status.st_mtime > TOUCH_S:
        with contextlib.suppress(OSError):
            os.utime(path)
    return path, data


def read_entry(path: str) -> tuple[os.stat_result, bytes | None]:
    """Return the status of a file and its data; None if the file is damaged.

    Raises
    ------
    OSError
        The file does not exist, is not a regular file, or cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path}: got no regular file, expected one")
        whole = file.read()
    data = whole[:-TRAILER_BYTES]
    return status, data if whole[len(data) :] == _trailer(data) else None


def write_entry(path: str, folder: str, data: bytes, mode: int = 0o600) -> None:
    """Write an entry to a temporary folder in the same directory, and rename it."""
    with temporary.folder(folder) as aside:
        fresh = os.path.join(aside, "entry")
        _write(fresh, [data, _trailer(data)], mode)
        os.rename(fresh, path)


def _is_own(status: os.stat_result) -> bool:
    """Return whether the file belongs to this user and nobody else may write it."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _is_own_directory() -> bool:
    """Return whether only this user may write the directory, and only it and root its parents."""
    try:
        about = os.stat(directory())
        if not (os.path.isabs(directory()) and stat.S_ISDIR(about.st_mode) and _is_own(about)):
            return False
        check_owner(directory())
    except (NotFoundError, OSError, PluginError):
        return False
    return True


def make_directory() -> bool:
    """Create the directory if it is missing; return whether it can be used."""
    if os.path.isabs(directory()):  # a user without a home: "~/.cache" is not expanded
        with contextlib.suppress(OSError, RecursionError):  # a path with a thousand folders
            os.makedirs(directory(), mode=0o700, exist_ok=True)
    return _is_own_directory()


def _write(path: str, parts: Iterable[bytes], mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(path, flags, mode), "wb") as file:
        file.writelines(parts)


def _files() -> Iterator[tuple[str, os.stat_result]]:
    """Yield the entries. Files whose name or end differs are skipped."""
    try:
        listed = list(os.scandir(directory()))
    except OSError:
        return
    for file in listed:
        if _NAME.fullmatch(file.name):
            with contextlib.suppress(OSError):
                status = file.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and _ends_as_entry(file.path, status.st_size):
                    yield file.path, status


def _ends_as_entry(path: str, n_bytes: int) -> bool:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        return os.pread(file.fileno(), len(MAGIC), max(0, n_bytes - len(MAGIC))) == MAGIC


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _is_turn(n_bytes: int) -> bool:
    """One `put` in many scans the directory: on average after 1/64 of the limit was written."""
    return int.from_bytes(os.urandom(4), "little") * limit() < 64 * n_bytes << 32


def _evict(keep: str) -> None:
    """Remove the least recently used entries above the limit, and leftovers of killed processes."""
    temporary.sweep(directory())
    files = sorted(_files(), key=lambda file: file[1].st_mtime)
    total = sum(status.st_size for _, status in files)
    for path, status in files:
        if total > limit() and path != keep:
            _remove(path)
            total -= status.st_size
