# SPDX-License-Identifier: Apache-2.0
"""The GPU architectures in the CUDA fat binaries of a shared library.

A section contains containers: magic, version, header bytes, payload bytes. A payload is a sequence
of entries: kind, version, header bytes, payload bytes, and at byte 28 the architecture, 90 for 9.0.
The linker adds a container without kernels, for an architecture of its own choice.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cuplug._engine.base.flags import number_of

if TYPE_CHECKING:
    from cuplug._engine.base.flags import Architecture
    from cuplug._integration.author.elf import SharedLibrary

MAGIC = 0xBA55ED50
CONTAINER = struct.Struct("<IHHQ")
ENTRY = struct.Struct("<HHIQ12xI8xI")
SUFFIXES = {0x100000: "a", 0x200000: "f"}  # flags of code for one architecture, or one family
KIND_PTX = 1
KIND_MACHINE_CODE = 2


def dotted(architecture: Architecture) -> str:
    """Return "9.0" for 90, "9.0a" for "90a"."""
    number = str(number_of(architecture))
    return f"{number[:-1] or 0}.{number[-1]}{str(architecture)[len(number) :]}"


def runs_on(architecture: Architecture) -> str:
    """Return the only GPUs that run code for "90a" or "100f"; "" for 90."""
    number = str(number_of(architecture))
    if str(architecture).endswith("a"):
        return f"compute capability {dotted(number)} only"
    if str(architecture).endswith("f"):
        return f"compute capability {number[:-1]}.x from {dotted(number)} on, and no other"
    return ""


@dataclass
class Code:
    """Architectures for which machine code and PTX exist: 90, "90a" or "100f"."""

    machine_code: set[Architecture] = field(default_factory=set)
    ptx: set[Architecture] = field(default_factory=set)

    def kind_for(self, capability: int) -> str:
        """Return the kind of code that a GPU of this compute capability (90) would use."""
        if any(_runs_machine_code(x, capability) for x in self.machine_code):
            return "machine code"
        return "only PTX" if any(_runs_ptx(x, capability) for x in self.ptx) else "no code"


def _runs_machine_code(architecture: Architecture, capability: int) -> bool:
    number = number_of(architecture)
    if str(architecture).endswith("a"):
        return number == capability
    return number // 10 == capability // 10 and number <= capability


def _runs_ptx(architecture: Architecture, capability: int) -> bool:
    if isinstance(architecture, int):
        return architecture <= capability
    return _runs_machine_code(architecture, capability)


def in_order(architectures: Iterable[Architecture]) -> list[Architecture]:
    """Return architectures from the oldest to the newest, "90a" after 90."""
    return sorted(architectures, key=lambda x: (number_of(x), str(x)))


def read_fatbins(sections: list[bytes]) -> Code:
    """Return the architectures for which the containers of some sections have code.

    Raises
    ------
    ValueError
        A container or entry exceeds its section.
    """
    code = Code()
    for section in sections:
        for kind, number, image, flags in _entries(section):
            suffix = "".join(x for flag, x in SUFFIXES.items() if flags & flag)
            architecture = f"{number}{suffix}" if suffix else number
            if kind == KIND_PTX:
                code.ptx.add(architecture)
            elif kind == KIND_MACHINE_CODE and not _lacks_kernels(image):
                code.machine_code.add(architecture)
    return code


def read_library(library: SharedLibrary) -> Code:
    """Return the architectures for which a library has code.

    With `-rdc=true` it also contains the inputs of the device linker. These include the device
    runtime, for more architectures than the library's own code. For later GPUs, the PTX of all
    inputs is linked again.

    Raises
    ------
    ValueError
        A container or entry exceeds its section.
    """
    code = read_fatbins(library.fatbins or [])
    if code == Code():
        return read_fatbins(library.relocatable_fatbins)
    inputs = [read_fatbins([each]) for each in containers(library.relocatable_fatbins)]
    inputs = [each for each in inputs if each != Code()]
    if inputs and all(each.ptx for each in inputs):
        code.ptx |= min((each.ptx for each in inputs), key=lambda ptx: number_of(in_order(ptx)[0]))
    return code


def _lacks_kernels(image: bytes) -> bool:
    """Return whether machine code is an ELF file without code; False if it is compressed."""
    return image.startswith(b"\x7fELF") and b".text." not in image


def containers(sections: list[bytes]) -> Iterator[bytes]:
    """Yield the containers, each as the driver loads it."""
    for section in sections:
        for start, _, end in _containers(section):
            yield section[start:end]


def _entries(section: bytes) -> Iterator[tuple[int, int, bytes, int]]:
    for _, begin, end in _containers(section):
        yield from _payload(section[begin:end])


def _containers(section: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the start, the payload and the end of each container."""
    at = 0
    while at + CONTAINER.size <= len(section):
        magic, _, header_bytes, payload_bytes = CONTAINER.unpack_from(section, at)
        if magic != MAGIC:
            at += 8  # containers start at multiples of 8
            continue
        start, begin = at, at + header_bytes
        at = begin + payload_bytes
        if header_bytes < CONTAINER.size or at > len(section):
            raise ValueError("a container of the fat binary reaches past its section")
        yield start, begin, at


def _payload(payload: bytes) -> Iterator[tuple[int, int, bytes, int]]:
    at = 0
    while at < len(payload):
        if at + ENTRY.size > len(payload):
            raise ValueError("an entry of the fat binary is cut off")
        kind, _, header_bytes, payload_bytes, architecture, flags = ENTRY.unpack_from(payload, at)
        if header_bytes < ENTRY.size:
            raise ValueError("an entry of the fat binary has a damaged header")
        begin = at + header_bytes
        at = begin + payload_bytes
        yield kind, architecture, payload[begin:at], flags
