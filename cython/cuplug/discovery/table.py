# SPDX-License-Identifier: Apache-2.0
"""The symbol table of one file, as the core reads it; no code of the file is run."""

from __future__ import annotations

from dataclasses import dataclass

from cuplug.discovery.tables import TAKES_STRIDES, inspect_fields, rows_of_note

__all__ = ["Row", "Table", "read_rows", "read_table"]


@dataclass(frozen=True)
class Row:
    """One row of a table."""

    cuda_entry: str  # symbol; "" without an entry on that side
    host_entry: str
    signature: str
    doc: str
    flags: int

    @property
    def operator(self) -> str:
        """The operator's name, also where the rest of the signature is ill-formed."""
        return self.signature.partition("(")[0].strip() or "?"

    @property
    def sides(self) -> list[str]:
        """Where it has entries: "cpu", "cuda"."""
        entries = (("cpu", self.host_entry), ("cuda", self.cuda_entry))
        return [side for side, entry in entries if entry]

    @property
    def takes_strides(self) -> bool:
        """Whether its entries are given arrays of any strides as they are."""
        return bool(self.flags & TAKES_STRIDES)


@dataclass(frozen=True)
class Table:
    """What could be read of a table."""

    path: str
    state: str  # "ok", "rejected" or "no plugin"
    reason: str  # "" for "ok"
    name: str
    version: str
    architectures: tuple[int, ...]  # 900 for compute capability 9.0
    abi_version: int
    rows: tuple[Row, ...]


def read_table(path: str) -> Table:
    """Read the table of a file. Never raises: `state` and `reason` say what is wrong."""
    state, reason, name, version, architectures, abi_version, rows = inspect_fields(path)
    numbers = tuple(int(part) for part in architectures.split(",") if part.strip().isdigit())
    fields = (Row(*row) for row in rows)
    return Table(path, state, reason, name, version, numbers, abi_version, tuple(fields))


def read_rows(note: bytes) -> tuple[Row, ...]:
    """Return what a note's bytes say of the rows of a table that the core rejects."""
    return tuple(Row(*row) for row in rows_of_note(note))
