# SPDX-License-Identifier: Apache-2.0
"""The figures that the README and the site's first page quote, taken from a table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from table import number, rows

BLOCK = re.compile(r"(?<=<!-- measured -->\n).*?(?=<!-- end -->)", re.S)


@dataclass(frozen=True)
class Quote:
    """A line: the measurement, its location in the table, our name, and peers by name."""

    what: str
    module: str
    title: str
    ours: str
    peers: dict[str, str]

    def cells(self, report: dict[str, Any]) -> list[str] | None:
        """Return the line's cells, or None if the table lacks it."""
        data = report["benchmarks"].get(self.module, {"comparisons": []})["comparisons"]
        found = [c for c in data if c["title"].startswith(self.title) and self.ours in c["results"]]
        if not found:
            return None
        results, unit = found[0]["results"], found[0]["unit"]
        peers = {text: name for text, name in self.peers.items() if name in results}
        beside = [f"{text} {number(results[name]['median'])}" for text, name in peers.items()]
        end = f" {unit}" if beside else ""
        return [
            self.what,
            f"{number(results[self.ours]['median'])} {unit}",
            ", ".join(beside) + end,
        ]


LAUNCH_PEERS = {
    "launch from C": "launch from C",
    "cuda.core": "cuda.core launch",
    "CuPy RawKernel": "CuPy RawKernel",
    "`torch.add(out=)`": "torch.add(out=)",
}
QUOTES = [
    Quote(
        "call with 3 NumPy arrays, empty function",
        *("calls", "3 arrays of", "cuplug, 3 NumPy arrays"),
        {"`np.add(out=)`": "np.add(out=)", "tvm-ffi": "tvm-ffi, NumPy arrays"},
    ),
    Quote(
        "call with 3 PyTorch CUDA tensors, kernel launched",
        *("calls_cuda", "3 GPU arrays of", "cuplug, 3 torch tensors"),
        LAUNCH_PEERS,
    ),
    Quote(
        "gather 1 Mi of 128 Mi floats, NumPy to NumPy",
        *("gather_host", "gather, NumPy to NumPy", "cuplug, host"),
        {"`np.take`": "np.take", "PyTorch on the CPU": "torch CPU"},
    ),
]


def render_quotes(report: dict[str, Any]) -> str:
    """Return the documents' table."""
    lines = [cells for quote in QUOTES if (cells := quote.cells(report))]
    return "\n".join(rows(["Benchmark", "cuplug", "Other libraries"], lines)) + "\n"


def write_quotes(document: Path, report: dict[str, Any]) -> None:
    """Replace the text between the marks of a document."""
    document.write_text(BLOCK.sub(lambda _: "\n" + render_quotes(report), document.read_text()))
