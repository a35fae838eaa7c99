# SPDX-License-Identifier: Apache-2.0
"""Draw the complete and the committed table as SVG files, and write the figures that docs quote."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import click
from quotes import write_quotes
from table import render

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TABLE = HERE / "results" / "nvidia-h100-80gb-hbm3-16-cores.json"
ROWS = HERE / "results" / "nvidia-h200-16-cores.json"  # only for the figure of rows
PICTURES = ROOT / "docs" / "pictures"
SETTINGS = {
    "svg.hashsalt": "cuplug",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
}


def report_of(table: Path) -> dict[str, Any]:
    """Return the data of the figures. The documents' figure of rows is from another table."""
    report = json.loads(table.read_text())
    if table == TABLE:
        report["benchmarks"]["rows_cuda"] = json.loads(ROWS.read_text())["benchmarks"]["rows_cuda"]
    return report


def stamp(table: Path) -> str:
    """Return the stamp of a current picture of that table: run, commit and a hash of its sources.

    The hash covers the data and the programs that draw.
    """
    report = report_of(table)
    machine = report["machine"]
    programs = (HERE / name for name in ("drawing.py", "figures.py", "scheme.py"))
    parts = [json.dumps(report).encode(), *(program.read_bytes() for program in programs)]
    digest = hashlib.sha256(b"".join(parts)).hexdigest()
    return f"{machine['name']}, {machine['date']}, commit {machine['commit']}, {digest[:16]}"


def draw(table: Path, directory: Path) -> list[Path]:
    """Draw the figures of the table. The same table gives the same bytes."""
    import matplotlib
    from drawing import with_dark_scheme
    from figures import Absent, Table, draw_all
    from scheme import whole

    directory.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None, "Creator": None, "Description": stamp(table)}
    written = []
    with matplotlib.rc_context(SETTINGS):
        figures = draw_all(Table(report_of(table)))
        for name, figure in (("whole", whole()), *figures):
            path = directory / f"{name}.svg"
            if isinstance(figure, Absent):
                path.unlink(missing_ok=True)
                click.echo(f"{path.name}: not drawn: {figure}", err=True)
                continue
            figure.savefig(path, metadata=metadata)
            text = "\n".join(line.rstrip() for line in path.read_text().splitlines())
            path.write_text(with_dark_scheme(text) + "\n")
            written.append(path)
    return written


@click.command(help=__doc__)
@click.option("--table", type=click.Path(path_type=Path, exists=True), default=TABLE)
@click.option("--output", type=click.Path(path_type=Path), help="Instead of docs/pictures.")
def main(table: Path, output: Path | None) -> None:
    """Draw; for the documents, also write the table and the figures in the README."""
    if importlib.util.find_spec("matplotlib") is None:
        raise click.ClickException("matplotlib is not installed: python -m pip install matplotlib")
    for path in draw(table, output or PICTURES):
        click.echo(path)
    if output is None:
        report = json.loads(table.read_text())
        table.with_suffix(".md").write_text(render(report))
        for document in ("README.md", "docs/index.md"):
            write_quotes(ROOT / document, report)


if __name__ == "__main__":
    main()
