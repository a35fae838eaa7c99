# SPDX-License-Identifier: Apache-2.0
"""Shared libraries as the linker sees them, read with pyelftools. No code runs."""

from __future__ import annotations

import glob
import os
import re
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from elftools.elf.elffile import ELFFile

from cuplug.errors import Error

NOTE_SECTION = ".note.cuplug"

DF_TEXTREL = 0x4
DF_STATIC_TLS = 0x10
PF_X = 0x1
VER_FLG_WEAK = 0x2
# Fields of symbols, by the bits of a file's addresses: name, type and binding, visibility, section.
SYMBOLS = {64: ("IBBHQQ", (0, 1, 2, 3)), 32: ("IIIBBH", (0, 3, 4, 5))}
STT_FUNC, STT_GNU_IFUNC = 2, 10
STB_LOCAL, STB_GLOBAL, STB_GNU_UNIQUE = 0, 1, 10
STV_DEFAULT, STV_PROTECTED = 0, 3


class ElfError(Error):
    """A file whose structure as a shared library cannot be read."""


@dataclass
class SharedLibrary:
    """The dynamic section and the headers of a shared library."""

    path: str
    # the folder that $ORIGIN represents: its own, or the one where it will be installed
    origin: str
    machine: str = ""
    needed: list[str] = field(default_factory=list)
    rpath: list[str] = field(default_factory=list)  # DT_RPATH and DT_RUNPATH, as written
    flags: int = 0  # DT_FLAGS
    has_text_relocations: bool = False
    has_executable_stack: bool = True  # the linker's default if no header sets it
    exports: dict[str, int] = field(default_factory=dict)  # name -> STT_FUNC or another type
    unique: list[str] = field(default_factory=list)  # with STB_GNU_UNIQUE binding
    undefined: list[str] = field(default_factory=list)  # symbols that are required to load it
    # Versions of symbols that it requires, by library; and versions that it defines.
    versions: dict[str, list[str]] = field(default_factory=dict)
    defined_versions: list[str] = field(default_factory=list)
    # a PT_NOTE covers the table's section; None if the section is missing
    note_is_covered: bool | None = None
    note: bytes = b""  # the table's section
    fatbins: list[bytes] | None = None  # None if section headers were removed
    relocatable_fatbins: list[bytes] = field(default_factory=list)  # inputs of the device linker


def open_regular(path: str) -> BinaryIO:
    """Open a file for reading. Rejects a FIFO or device instead of waiting for it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise ElfError("this is no regular file")
    return file


def read_library(path: str, whole: bool = True, origin: str = "") -> SharedLibrary:
    """Read a shared library; its symbols and sections, which take most of the time, if `whole`.

    `origin` is the folder where it will be installed. The default is its current folder.

    Raises
    ------
    OSError
        The file cannot be opened.
    ElfError
        It is not a shared library, or its structure is damaged.
    """
    place = os.path.realpath(path)
    with open_regular(path) as file:
        try:
            return _read(path, ELFFile(file), whole, origin or os.path.dirname(place))
        except ElfError:
            raise
        except Exception as error:  # pyelftools raises any exception for a damaged structure
            raise ElfError(f"the ELF structure cannot be read: {error}") from error


def _read(path: str, elf: ELFFile, whole: bool, origin: str) -> SharedLibrary:
    if elf["e_type"] == "ET_REL":
        raise ElfError(
            "got an object file, as compilers write with -c, expected a shared library; link it "
            "with -shared"
        )
    if elf["e_type"] != "ET_DYN":
        raise ElfError(f"got {elf['e_type']}, expected a shared library (ET_DYN)")
    library = SharedLibrary(path, origin, machine=elf["e_machine"])
    notes = []
    for segment in elf.iter_segments():
        if segment["p_type"] == "PT_DYNAMIC":
            _read_tags(library, segment)
            if whole:
                _read_symbols(library, elf, segment)
        elif segment["p_type"] == "PT_NOTE":
            notes.append((segment["p_offset"], segment["p_offset"] + segment["p_filesz"]))
        elif segment["p_type"] == "PT_GNU_STACK":
            library.has_executable_stack = bool(segment["p_flags"] & PF_X)
    if whole:
        _read_sections(library, elf, notes)
    return library


def _read_tags(library: SharedLibrary, segment: Any) -> None:
    for tag in segment.iter_tags():
        name = tag.entry.d_tag
        if name == "DT_NEEDED":
            library.needed.append(tag.needed)
        elif name in ("DT_RPATH", "DT_RUNPATH"):
            text = tag.rpath if name == "DT_RPATH" else tag.runpath
            library.rpath += text.split(":")
        elif name == "DT_TEXTREL":
            library.has_text_relocations = True
        elif name == "DT_FLAGS":
            library.flags = tag.entry.d_val
    library.has_text_relocations |= bool(library.flags & DF_TEXTREL)


def _read_symbols(library: SharedLibrary, elf: ELFFile, segment: Any) -> None:
    for name, info, other, section in _symbols(elf, segment):
        binding = info >> 4
        if not name or binding == STB_LOCAL:
            continue
        if section == 0:  # SHN_UNDEF
            if binding == STB_GLOBAL:
                library.undefined.append(name)
        elif other & 7 in (STV_DEFAULT, STV_PROTECTED):
            library.exports[name] = info & 15
            if binding == STB_GNU_UNIQUE:
                library.unique.append(name)


def _symbols(elf: ELFFile, segment: Any) -> Iterator[tuple[str, int, int, int]]:
    """Yield the name and the first fields of each symbol.

    pyelftools decodes symbols one at a time, which takes seconds for the C++ library.
    """
    fields, (name, info, other, section) = SYMBOLS[elf.elfclass]
    layout = struct.Struct(("<" if elf.little_endian else ">") + fields)
    n_names = next((tag.entry.d_val for tag in segment.iter_tags("DT_STRSZ")), -1)
    names = _table(elf, segment, "DT_STRTAB", n_names)
    table = _table(elf, segment, "DT_SYMTAB", layout.size * segment.num_symbols())
    for symbol in layout.iter_unpack(table):
        text = names[symbol[name] : max(0, names.find(b"\0", symbol[name]))]
        yield text.decode(errors="replace"), symbol[info], symbol[other], symbol[section]


def _table(elf: ELFFile, segment: Any, tag: str, n_bytes: int) -> bytes:
    """Return a table of the dynamic section; the bytes to the file's end if `n_bytes` is -1."""
    _, offset = segment.get_table_offset(tag)
    if offset is None:
        raise ElfError(f"the dynamic section has no {tag}")
    elf.stream.seek(offset)
    return bytes(elf.stream.read(n_bytes))


def _read_sections(library: SharedLibrary, elf: ELFFile, notes: list[tuple[int, int]]) -> None:
    if not elf.num_sections():
        return
    library.fatbins = []
    for section in elf.iter_sections():
        if section["sh_type"] == "SHT_NOBITS":  # has a size, but occupies no bytes in the file
            continue
        _read_versions(library, section)
        begin, end = section["sh_offset"], section["sh_offset"] + section["sh_size"]
        if section.name == NOTE_SECTION:
            library.note_is_covered = any(low <= begin and end <= high for low, high in notes)
            library.note = section.data()
        elif section.name == ".nv_fatbin":
            library.fatbins.append(section.data())
        elif section.name == "__nv_relfatbin":
            library.relocatable_fatbins.append(section.data())


def _read_versions(library: SharedLibrary, section: Any) -> None:
    """Read a section of versions. Sections that may be missing are skipped."""
    if section["sh_type"] == "SHT_GNU_verneed":
        for file, versions in section.iter_versions():
            needed = [x.name for x in versions if not x["vna_flags"] & VER_FLG_WEAK]
            library.versions[file.name] = needed
    elif section["sh_type"] == "SHT_GNU_verdef":
        library.defined_versions = [next(names).name for _, names in section.iter_versions()]


def is_relative_to_origin(part: str) -> bool:
    """Return whether a directory in RPATH or RUNPATH is relative to the library's folder."""
    return re.match(r"\$(ORIGIN|\{ORIGIN\})(/|$)", part) is not None


def expanded(parts: list[str], origin: str) -> list[str]:
    """Return absolute directories of RPATH or RUNPATH, with a folder for $ORIGIN."""
    own = [part.replace("$ORIGIN", origin).replace("${ORIGIN}", origin) for part in parts]
    return [part for part in own if os.path.isabs(part)]


def search_directories(library: SharedLibrary) -> list[str]:
    """Return the directories in which the dynamic linker searches a library's needs, in order."""
    own = expanded(library.rpath, library.origin)
    given = [part for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    triplet = f"{os.uname().machine}-linux-gnu"
    standard = [
        f"/lib/{triplet}",
        f"/usr/lib/{triplet}",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    ]
    return [*given, *own, *_configured("/etc/ld.so.conf"), *standard]


def _configured(path: str, depth: int = 0) -> Iterator[str]:
    """Yield the directories of ld.so.conf and of the files that it includes."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.split("#")[0].strip() for line in file]
    except OSError:
        return
    for line in lines:
        if line.startswith("include") and depth < 4:
            pattern = os.path.join(os.path.dirname(path), line[len("include") :].strip())
            for included in sorted(glob.glob(pattern)):
                yield from _configured(included, depth + 1)
        elif line.startswith("/"):
            yield line


def find_library(name: str, directories: list[str]) -> str | None:
    """Return the path of a needed library, or None."""
    if "/" in name:
        return name if os.path.isfile(name) else None
    candidates = (os.path.join(directory, name) for directory in directories)
    return next((path for path in candidates if os.path.isfile(path)), None)


def linked(library: SharedLibrary, whole: bool = True) -> tuple[list[SharedLibrary], list[str]]:
    """Return the libraries that a library needs, with theirs, and the names of missing ones."""
    found, missing = [], []
    seen = set(library.needed)
    queue = [(name, library) for name in library.needed]
    while queue:
        name, wanted_by = queue.pop(0)
        path = find_library(name, search_directories(wanted_by))
        if path is None:
            missing.append(name)
            continue
        try:
            found.append(read_library(path, whole))
        except (OSError, ElfError):
            continue
        more = [name for name in found[-1].needed if name not in seen]
        queue += [(name, found[-1]) for name in more]
        seen.update(more)
    return found, missing


def missing_versions(library: SharedLibrary) -> list[tuple[str, str, str]]:
    """Return the versions of symbols that the found libraries lack.

    Each is the version, the path of the library that lacks it, and the path of the library that
    requires it. A library without versions satisfies every requirement.
    """
    others = linked(library)[0]
    named = {os.path.basename(other.path): other for other in others}
    return [
        (version, found.path, user.path)
        for user in (library, *others)
        for name, versions in user.versions.items()
        if (found := named.get(name)) and found.defined_versions
        for version in versions
        if version not in found.defined_versions
    ]


def resolve(library: SharedLibrary) -> tuple[list[str], list[str]]:
    """Search the libraries that a library names, and theirs, for its needs.

    Returns
    -------
    missing_libraries : list of str
        Needed libraries that are not on the linker's path.
    missing_symbols : list of str
        Undefined symbols that none of the other libraries exports.
    """
    others, missing = linked(library)
    exported = {name for other in others for name in other.exports}
    return missing, sorted(set(library.undefined) - exported)
