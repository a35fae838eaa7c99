# SPDX-License-Identifier: Apache-2.0
"""What the constructors of a shared library do, read from its code; nothing is run."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

from elftools.elf.elffile import ELFFile

from cuplug._integration.author.elf import ElfError, open_regular

# The constructor of crtfastm.o, which -ffast-math links, is a few instructions long.
CODE_BYTES = 64
# An instruction that writes the register of rounding, flushing and traps, by machine: ldmxcsr of an
# address, msr fpcr.
WRITES_CONTROL = {
    "EM_X86_64": re.compile(rb"\x0f\xae[\x10-\x17\x50-\x57\x90-\x97]"),
    "EM_AARCH64": re.compile(rb"[\x00-\x1f]\x44\x1b\xd5"),
}
ADDRESS = struct.Struct("<Q")


def change_rounding(path: str) -> bool:
    """Say whether constructors of a library change how the thread that loads it computes.

    Raises
    ------
    OSError
        The file cannot be opened.
    ElfError
        Its structure is damaged.
    """
    with open_regular(path) as file:
        try:
            elf = ELFFile(file)
            pattern = WRITES_CONTROL.get(elf["e_machine"])
            if pattern is None:
                return False
            return any(pattern.search(code) for code in _constructors(elf))
        except ElfError:
            raise
        except Exception as error:  # pyelftools raises whatever a damaged structure leads to
            raise ElfError(f"the ELF structure cannot be read: {error}") from error


def _constructors(elf: ELFFile) -> Iterator[bytes]:
    """Yield the beginning of the code of each constructor."""
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
            yield _read(elf, address, CODE_BYTES)


def _read(elf: ELFFile, address: int, n_bytes: int) -> bytes:
    """Return what a file has at an address, as much as its segment holds."""
    for segment in elf.iter_segments("PT_LOAD"):
        at: int = address - segment["p_vaddr"]
        if 0 <= at < segment["p_filesz"]:
            stream: Any = elf.stream
            stream.seek(segment["p_offset"] + at)
            return bytes(stream.read(min(n_bytes, segment["p_filesz"] - at)))
    return b""
