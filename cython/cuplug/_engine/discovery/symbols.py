# SPDX-License-Identifier: Apache-2.0
"""Dynamic symbols of shared objects that are not plugins, read from the file; no code is run."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

MAX_BYTES = 1 << 28  # of one table
PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_GNU_HASH = 1, 4, 5, 6, 10, 0x6FFFFEF5
SYMBOL_BYTES = 24


class Symbols(NamedTuple):
    """Names of a file's dynamic symbols that begin with a given prefix."""

    defined: tuple[str, ...]
    undefined: tuple[str, ...]
    needed: tuple[str, ...]  # all libraries that the file names


NONE = Symbols((), (), ())


class _Object:
    """A 64-bit shared object; a read beyond its end raises ValueError."""

    def __init__(self, file: int) -> None:
        self.file = file
        header = self.at(0, 64)
        if header[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", header, 16) != (3,):
            raise ValueError("not a shared object")
        (start,), (size, n) = (
            struct.unpack_from("<Q", header, 32),
            struct.unpack_from("<HH", header, 54),
        )
        if size != 56:
            raise ValueError("program headers of another size")
        table = self.at(start, n * size)
        self.segments = [struct.unpack_from("<IIQQQQ", table, k * size) for k in range(n)]
        self.tags = list(self._tags())
        self.by_tag = dict(self.tags)
        self.strings = self.mapped(self.by_tag.get(DT_STRTAB, 0), self.by_tag.get(DT_STRSZ, 0))

    def at(self, offset: int, n_bytes: int) -> bytes:
        """Return bytes of the file."""
        if n_bytes > MAX_BYTES or offset >= 1 << 62:
            raise ValueError("a table that is too large")
        data = os.pread(self.file, n_bytes, offset)
        if len(data) != n_bytes:
            raise ValueError("truncated")
        return data

    def mapped(self, address: int, n_bytes: int) -> bytes:
        """Return the bytes at an address of the loaded file."""
        for kind, _, offset, start, _, size in self.segments:
            if kind == PT_LOAD and start <= address < start + size:
                return self.at(offset + address - start, n_bytes)
        raise ValueError("an address outside of the file")

    def _tags(self) -> Iterator[tuple[int, int]]:
        for kind, _, offset, _, _, size in self.segments:
            if kind != PT_DYNAMIC:
                continue
            for tag, value in struct.iter_unpack("<qQ", self.at(offset, size - size % 16)):
                if tag == 0:
                    return
                yield tag, value

    def text(self, at: int) -> bytes:
        end = self.strings.find(b"\0", at)
        if end < 0:
            raise ValueError("a name without an end")
        return self.strings[at:end]

    def n_symbols(self) -> int:
        """Return the number of dynamic symbols, which only the hash tables contain."""
        if DT_HASH in self.by_tag:
            return int(struct.unpack("<II", self.mapped(self.by_tag[DT_HASH], 8))[1])
        table = self.by_tag[DT_GNU_HASH]
        n_buckets, first, n_blooms, _ = struct.unpack("<IIII", self.mapped(table, 16))
        buckets = table + 16 + 8 * n_blooms
        last = max(struct.unpack(f"<{n_buckets}I", self.mapped(buckets, 4 * n_buckets)), default=0)
        if last < first:
            return int(first)
        chains = buckets + 4 * n_buckets
        while not self.mapped(chains + 4 * (last - first), 1)[0] & 1:
            last += 1
        return int(last) + 1

    def read(self, prefixes: tuple[bytes, ...]) -> Symbols:
        """Read the names that begin with one of some prefixes."""
        needed = tuple(os.fsdecode(self.text(at)) for tag, at in self.tags if tag == DT_NEEDED)
        if not any(b"\0" + prefix in self.strings for prefix in prefixes):
            return Symbols((), (), needed)  # as of nearly all files
        names: tuple[list[str], list[str]] = ([], [])
        table = self.mapped(self.by_tag[DT_SYMTAB], self.n_symbols() * SYMBOL_BYTES)
        for name, _, _, section, _, _ in struct.iter_unpack("<IBBHQQ", table):
            if self.strings.startswith(prefixes, name):
                names[section == 0].append(os.fsdecode(self.text(name)))
        return Symbols(tuple(names[0]), tuple(names[1]), needed)


def _read(path: str, prefixes: tuple[bytes, ...]) -> Symbols:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return NONE
    try:
        return _Object(file).read(prefixes)
    except (KeyError, OSError, ValueError, struct.error):
        return NONE
    finally:
        os.close(file)


def symbol_reader(*prefixes: str) -> Callable[[str], Symbols]:
    """Return a function that reads a file's symbols with some prefixes, once for each content.

    Files other than 64-bit shared objects have none.
    """
    encoded = tuple(prefix.encode() for prefix in prefixes)
    known: dict[str, tuple[tuple[int, int, int, int], Symbols]] = {}

    def read(path: str) -> Symbols:
        try:
            status = os.stat(path)
        except OSError:
            return NONE
        identity = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
        found = known.get(path)
        if found is None or found[0] != identity:
            found = known[path] = identity, _read(path, encoded)
        return found[1]

    return read
