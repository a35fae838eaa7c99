# SPDX-License-Identifier: Apache-2.0
"""The output of the command line: aligned tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

STYLES = {
    "ok": "green",
    "note": "cyan",
    "warning": "yellow",
    "error": "bold red",
    "problem": "bold red",
}
# A pipe has no width: text is neither wrapped nor cut.
PIPE_WIDTH = 100_000
MAX_DRAWN = 500  # rows of a table on a screen


def console() -> Console:
    """Return a console on the standard output that writes all text literally."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(markup=False, highlight=False, emoji=False, width=width, soft_wrap=True)


def print_json(value: Any) -> None:
    """Write a JSON document to the standard output."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_lines(lines: Iterable[str]) -> None:
    """Write lines unchanged."""
    for line in lines:
        print(line)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write rows under headings, without a frame. A column is as wide as its longest cell.

    Output that is not read on a screen is not laid out, which would take 2 ms for each row.
    """
    rows = [tuple(row) for row in rows]
    if len(rows) > MAX_DRAWN or not sys.stdout.isatty():
        print_lines(_aligned([columns, *rows]))
        return
    if max(map(cell_len, _aligned([columns, *rows]))) > (width := Console().width):
        print_lines(_narrow([columns, *rows], width))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    _print(table)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield lines with aligned columns."""
    cells = [[" ".join(cell.split("\n")) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (x + " " * (n - cell_len(x)) for x, n in zip(row, widths, strict=True))
        yield "  ".join(padded).rstrip()


def _narrow(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield lines for a narrow screen: the longest column wraps between words.

    The last column, often a path or a reason, has its own line, so that it can be copied.
    """
    *columns, _ = zip(*rows, strict=True)
    widths = [max(map(cell_len, column)) for column in columns]
    longest = widths.index(max(widths))
    rest = width - sum(widths) + widths[longest] - 2 * len(columns)
    words = max(cell_len(word) for cell in columns[longest] for word in [*cell.split(), ""])
    widths[longest] = min(widths[longest], max(rest, words))
    for *cells, last in rows:
        parts = [wrap(x, max(n, 1)) or [""] for x, n in zip(cells, widths, strict=True)]
        for line in zip_longest(*parts, fillvalue=""):
            padded = (x + " " * (n - cell_len(x)) for x, n in zip(line, widths, strict=True))
            yield "  ".join(padded).rstrip()
        yield from [f"    {' '.join(last.split(chr(10)))}"] if last else []


def print_findings(findings: Iterable[tuple[str, str, str, str]]) -> None:
    """Write (level, topic, text, advice) lines. The advice is below the text."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for level, topic, text, advice in findings:
        message = Text(text)
        if advice and level != "ok":
            message.append(f"\n-> {advice}", style="italic")
        table.add_row(Text(level, style=STYLES.get(level, "")), Text(topic), message)
    _print(table)


def _print(table: Table) -> None:
    """Write a table. In a pipe, lines have no trailing blanks."""
    out = console()
    with out.capture() as capture:
        out.print(table)
    text = capture.get()
    if out.is_terminal:
        sys.stdout.write(text)
    else:
        print_lines(line.rstrip() for line in text.splitlines())
