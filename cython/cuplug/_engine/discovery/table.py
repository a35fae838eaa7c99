# SPDX-License-Identifier: Apache-2.0
"""The symbol table of one file, as the core reads it; no code of the file is run."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from cuplug._engine.discovery.fields import OWN_FIELDS, TAKES_STRIDES, inspect_fields

__all__ = ["Row", "Table", "read_build", "read_functions", "read_rows", "read_table"]

BUILD_NOTE = 0x62756332  # of cuplug-build.h; the core does not read it
OPERATOR_NOTE = 0x6F756332  # CUPLUG_NOTE_OPERATOR of <cuplug/plugin.h>

BUILD_KEYS = ("compiler", "flags", "commit")


@dataclass(frozen=True)
class Row:
    """One overload in a table."""

    cuda_entry: str  # symbol; "" without an entry for that device type
    host_entry: str
    signature: str
    doc: str
    flags: int
    properties: dict[str, str | None]  # docs/abi.md lists them; None for those without a value

    @property
    def operator(self) -> str:
        """The operator's name, even if the rest of the signature is ill-formed."""
        return self.signature.partition("(")[0].strip() or "?"

    @property
    def device_types(self) -> list[str]:
        """The device types of its entries: "cpu", "cuda"."""
        entries = (("cpu", self.host_entry), ("cuda", self.cuda_entry))
        return [name for name, entry in entries if entry]

    @property
    def cuda_takes_strides(self) -> bool:
        """True if its CUDA entry receives arrays of any strides unchanged."""
        return self.takes_strides or "cuda_takes_strides" in self.properties

    @property
    def takes_strides(self) -> bool:
        """True if its entries receive arrays of any strides unchanged."""
        return bool(self.flags & TAKES_STRIDES)


@dataclass(frozen=True)
class Table:
    """The readable part of a table."""

    path: str
    state: str  # "ok", "rejected" or "no plugin"
    reason: str  # "" for "ok"
    name: str
    version: str
    architectures: tuple[int | str, ...]  # 900 for compute capability 9.0, "900a" for 9.0a
    abi_version: int
    rows: tuple[Row, ...]


def read_table(path: str) -> Table:
    """Read the table of a file. Never raises: `state` and `reason` describe errors."""
    state, reason, name, version, architectures, abi_version, rows = inspect_fields(path)
    fields = tuple(Row(*row) for row in rows)
    return Table(path, state, reason, name, version, architectures, abi_version, fields)


def read_rows(section: bytes) -> tuple[Row, ...]:
    """Return the overloads of a table that the core rejects, as far as its notes contain them."""
    return tuple(_row(fields) for kind, fields in _notes(section) if kind == OPERATOR_NOTE)


def read_functions(section: bytes) -> dict[str, str]:
    """Return the functions other than entries that a section of notes names, and their roles."""
    does = dict.fromkeys(("state", "exclusive_state"), "makes a state") | {
        "close": "closes a handle"
    }
    notes = list(_notes(section))
    return {fields[key]: does[key] for _, fields in notes for key in does if key in fields}


def read_build(section: bytes) -> dict[str, str | bool]:
    """Return the facts about the build in a section of notes; {} if none."""
    fields = next((fields for kind, fields in _notes(section) if kind == BUILD_NOTE), {})
    found: dict[str, str | bool] = {key: fields[key] for key in BUILD_KEYS if key in fields}
    return found | ({"modified": "modified" in fields} if "commit" in fields else {})


def _notes(section: bytes) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield kind and fields of each note, up to the first that is not text."""
    at = 0
    while at + 20 <= len(section):
        owner_bytes, text_bytes, kind = struct.unpack_from("=III", section, at)
        text = section[at + 20 : at + 20 + text_bytes]
        if owner_bytes != 8 or len(text) < text_bytes:
            return
        strings = text.decode(errors="replace").split("\0")
        parts = (x.partition("=") for x in strings)
        yield kind, {key.lstrip("!"): value for key, _, value in parts}
        at += 20 + (text_bytes + 3) // 4 * 4


def _row(fields: dict[str, str]) -> Row:
    flags = TAKES_STRIDES if "takes_strides" in fields else 0
    cuda, host, signature, doc = (fields.get(x, "") for x in ("cuda", "host", "signature", "doc"))
    properties = {key: fields[key] or None for key in fields if key and key not in OWN_FIELDS}
    return Row(cuda, host, signature, doc, flags, properties)
