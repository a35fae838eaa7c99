# SPDX-License-Identifier: Apache-2.0
"""Rules of `cuplug check` about linking, and about the requirements for loading."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from typing import Any

from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile

from cuplug._integration.author import elf
from cuplug._integration.author.elf import ElfError, open_regular
from cuplug._integration.author.finding import Finding, Subject, error, some, warning

MISSING = "missing libraries"  # the start of a finding that `cuplug install` treats as an error
# Libraries of every machine with Python, or with a GPU.
USUAL_LIBRARIES = re.compile(
    r"(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libgomp|libcudart|ld-linux[\w-]*)"
    r"\.so(\.\d+)*"
)


# Mangled names of the C++ standard library: in std and __gnu_cxx, with the prefixes of guards,
# vtables, type information, local variables and const members. They have default visibility
# regardless of options. All plugins share the library's code and data anyway.
STANDARD_CXX = re.compile(r"_Z(GV|T[VTIS])?Z?N?[rVKRO]*(S[tabsiod]|9__gnu_cxx|10__cxxabiv1)")


def is_standard_cxx(name: str) -> bool:
    """Return whether a symbol belongs to the C++ standard library, whose headers define it."""
    return STANDARD_CXX.match(name) is not None


def check_unique(subject: Subject) -> Iterator[Finding]:
    """A static variable with such a symbol has the value that another plugin stored."""
    own = [name for name in subject.elf_file.unique if not is_standard_cxx(name)]
    if own:
        yield error(
            f"symbols of unique binding, one copy for all plugins: {some(own)}",
            "compile with -fno-gnu-unique, or with -fvisibility=hidden -fvisibility-inlines-hidden",
        )


def check_undefined(subject: Subject) -> Iterator[Finding]:
    libraries, symbols = elf.resolve(subject.elf_file)
    own = [part for part in subject.elf_file.rpath if elf.is_relative_to_origin(part)]
    if libraries and own:  # a wheel is built where other packages' libraries are not yet installed
        yield warning(
            f"{MISSING}: {some(libraries)}",
            f"put them into {':'.join(own)}, got from {subject.elf_file.origin}, or install them",
        )
    elif libraries:
        yield error(
            f"{MISSING}: {some(libraries)}",
            "install them, or link them statically",
        )
    if symbols and not libraries:
        yield error(
            f"undefined symbols that no needed library has: {some(symbols)}",
            "link the library or object that has them; -Wl,-z,defs makes the linker find this",
        )


def check_versions(subject: Subject) -> Iterator[Finding]:
    for version, path, user in elf.missing_versions(subject.elf_file):
        yield error(
            f"{path} has no {version}, which {os.path.basename(user)} needs",
            "build it on the oldest system that it is for, or install a newer library",
        )


def check_needed(subject: Subject) -> Iterator[Finding]:
    own = [part for part in subject.elf_file.rpath if elf.is_relative_to_origin(part)]
    beside = elf.expanded(own, subject.elf_file.origin)
    rare = [
        name
        for name in subject.elf_file.needed
        if not (USUAL_LIBRARIES.fullmatch(name) or elf.find_library(name, beside))
    ]
    if rare:
        yield warning(
            f"it needs {some(rare)}",
            "it will not load where these are missing: link them statically where you can",
        )


def check_rpath(subject: Subject) -> Iterator[Finding]:
    rpath = subject.elf_file.rpath
    others = [part for part in rpath if not elf.is_relative_to_origin(part)]
    if others:
        yield error(
            f"it searches for libraries in {':'.join(others) or 'the current directory'} "
            "(RPATH or RUNPATH)",
            "link without -rpath, or with one that begins with $ORIGIN, the folder of the file",
        )


def check_tls(subject: Subject) -> Iterator[Finding]:
    if subject.elf_file.flags & elf.DF_STATIC_TLS:
        yield error(
            "thread-local variables use the static TLS model, whose room is small",
            "compile without -ftls-model=initial-exec and link with -fPIC objects only",
        )


def check_text_relocations(subject: Subject) -> Iterator[Finding]:
    if subject.elf_file.has_text_relocations:
        yield error("its code has text relocations", "compile every object with -fPIC")


def check_stack(subject: Subject) -> Iterator[Finding]:
    if subject.elf_file.has_executable_stack:
        yield error(
            "it asks for an executable stack",
            "link with -z noexecstack, and avoid nested functions whose address is taken",
        )


def check_rounding(subject: Subject) -> Iterator[Finding]:
    own = [library.path for library in elf.linked(subject.elf_file, whole=False)[0]]
    rare = [path for path in own if not USUAL_LIBRARIES.fullmatch(os.path.basename(path))]
    changing = [path for path in (subject.path, *rare) if change_rounding(path)]
    if changing:
        yield warning(
            "constructors change how the thread that loads it rounds or flushes subnormal numbers: "
            f"{some(changing)}",
            "link without -ffast-math, -Ofast and -funsafe-math-optimizations, which add "
            "crtfastm.o: cuplug undoes it, others that load the library do not",
        )


# ---- Constructors, decoded from their code; no code runs -----------------------------------------

# The constructor of crtfastm.o, which -ffast-math links, has few instructions.
CODE_BYTES = 64
# By machine, an instruction that writes the register of rounding, flushing and traps: ldmxcsr with
# an address, msr fpcr.
WRITES_CONTROL = {
    "EM_X86_64": re.compile(rb"\x0f\xae[\x10-\x17\x50-\x57\x90-\x97]"),
    "EM_AARCH64": re.compile(rb"[\x00-\x1f]\x44\x1b\xd5"),
}
ADDRESS = struct.Struct("<Q")


def change_rounding(path: str) -> bool:
    """Return whether constructors of a library change the rounding or traps of the loading thread.

    Raises
    ------
    OSError
        The file cannot be opened.
    ElfError
        The file's structure is damaged.
    """
    with open_regular(path) as file:
        try:
            elf = ELFFile(file)
            pattern = WRITES_CONTROL.get(elf["e_machine"])
            if pattern is None:
                return False
            return any(
                found and not _is_past(elf, begin, begin + found.start())
                for begin, code in _constructors(elf)
                for found in [pattern.search(code)]
            )
        except ElfError:
            raise
        except Exception as error:  # pyelftools raises any exception for a damaged structure
            raise ElfError(f"the ELF structure cannot be read: {error}") from error


def _is_past(elf: ELFFile, begin: int, address: int) -> bool:
    """Return whether a function begins after `begin` and no later than `address`."""
    dwarf: Any = elf.get_dwarf_info(relocate_dwarf_sections=False)
    entries = dwarf.EH_CFI_entries() if dwarf.has_EH_CFI() else []
    starts = [entry.header["initial_location"] for entry in entries if isinstance(entry, FDE)]
    return any(begin < start <= address for start in starts)


def _constructors(elf: ELFFile) -> Iterator[tuple[int, bytes]]:
    """Yield the address of each constructor, and the start of its code."""
    dynamic: Any
    for dynamic in elf.iter_segments("PT_DYNAMIC"):
        tags = {tag.entry.d_tag: tag.entry.d_val for tag in dynamic.iter_tags()}
        begin, size = tags.get("DT_INIT_ARRAY", 0), tags.get("DT_INIT_ARRAYSZ", 0)
        tables = dynamic.get_relocation_tables().values()
        moved = {
            relocation["r_offset"]: relocation["r_addend"]
            for table in tables
            for relocation in table.iter_relocations()
            if relocation.is_RELA() and begin <= relocation["r_offset"] < begin + size
        }
        for slot in range(begin, begin + size, ADDRESS.size):
            held = _read(elf, slot, ADDRESS.size)
            address = moved.get(slot) or (ADDRESS.unpack(held)[0] if held else 0)
            yield address, _read(elf, address, CODE_BYTES)


def _read(elf: ELFFile, address: int, n_bytes: int) -> bytes:
    """Return the bytes of a file at an address, up to the end of its segment."""
    for segment in elf.iter_segments("PT_LOAD"):
        at: int = address - segment["p_vaddr"]
        if 0 <= at < segment["p_filesz"]:
            stream: Any = elf.stream
            stream.seek(segment["p_offset"] + at)
            return bytes(stream.read(min(n_bytes, segment["p_filesz"] - at)))
    return b""
