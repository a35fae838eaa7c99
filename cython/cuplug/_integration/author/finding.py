# SPDX-License-Identifier: Apache-2.0
"""The inputs and findings of `cuplug check`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from cuplug._engine.discovery.table import Table
from cuplug._integration.author import elf

OK, WARNING, ERROR = "ok", "warning", "error"


@dataclass
class Finding:
    """One finding about a file, and the remedy."""

    level: str  # "ok", "warning" or "error"
    rule: str
    text: str
    advice: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return the finding for JSON."""
        return asdict(self)


@dataclass
class Subject:
    """One file under check: its table as the core reads it, and the library as ELF."""

    path: str
    table: Table
    elf_file: elf.SharedLibrary


Rule = Callable[[Subject], Iterator[Finding]]


def error(text: str, advice: str) -> Finding:
    return Finding(ERROR, "", text, advice)


def warning(text: str, advice: str) -> Finding:
    return Finding(WARNING, "", text, advice)


def some(names: list[str], limit: int = 5) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
