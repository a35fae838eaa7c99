# SPDX-License-Identifier: Apache-2.0
"""The output of `cuplug new`, `build`, `test` and `bench`, and rebuilds after changes."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import sys
import time
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.status import Status

from cuplug._engine.discovery.table import Table, read_table
from cuplug._integration.author.build import Built, build_library
from cuplug._integration.author.fatbin import dotted, runs_on
from cuplug._integration.author.sources import (
    HEADER_SUFFIXES,
    SUFFIXES,
    BuildError,
    Source,
    find_sources,
)
from cuplug._integration.commands.output import print_findings, print_lines, print_table
from cuplug._integration.commands.property_outcomes import LATE
from cuplug._source.compilers.toolkit import WHEELS

if TYPE_CHECKING:
    from cuplug._integration.commands.bandwidth import Measurement
    from cuplug._integration.commands.property_runner import Result

BAR = 40  # characters of a copy's bar
NEAR_COPY = 0.8  # fraction of its bandwidth
WATCHED = (*SUFFIXES, *HEADER_SUFFIXES)


def progress(text: str) -> Status:
    """Return a context that shows a line on a terminal while it lasts."""
    return Console(stderr=True).status(text)


def show_new(name: str, files: list[str], package: bool) -> None:
    """Report the written files and the next steps."""
    print_lines([f"written: {', '.join(files)}", "next:"])
    print_lines(f"  cuplug {command} {name}" for command in ("build", "test"))
    if package:
        print_lines([f"  pip install --no-build-isolation ./{name}"])


def build_and_show(
    path: str, output: str | None, arch: str, options: tuple[str, ...]
) -> list[Built]:
    """Build each plugin once; report the results."""
    sources = find_sources(path)
    if output and len(sources) > 1 and not os.path.isdir(output):
        raise BuildError(
            f"build: output: got {output} for {len(sources)} plugins, expected a folder"
        )
    return [_build_one(source, output, arch, options) for source in sources]


def _build_one(source: Source, output: str | None, arch: str, options: tuple[str, ...]) -> Built:
    begin = time.monotonic()
    with progress(f"compile {source.name}"):
        built = build_library(source, output, arch, options)
    if built.log:
        click.echo(built.log.rstrip(), err=True)
    if built.findings:
        print_findings((f.level, f.rule, f.text, f.advice) for f in built.findings)
    table = read_table(built.path)
    print_lines([f"{built.path}: {_sides(built, table)}, {time.monotonic() - begin:.1f} s"])
    limits = {dotted(x): runs_on(x) for x in built.architectures if runs_on(x)}
    print_lines(f"{which}: {gpus}" for which, gpus in limits.items())
    if source.has_cuda and not built.architectures:
        advice = f"install the CUDA toolkit (pip install '{WHEELS}'), or set CUDACXX"
        print_lines([f"only the host entries, because nvcc is missing: {advice}"])
    return built


def show_next(built: Built) -> None:
    """Report how the operators of a library are found and called."""
    table = read_table(built.path)
    names = list(dict.fromkeys(row.operator for row in table.rows))
    folder = os.path.dirname(built.path)
    lines = [row.signature for row in table.rows]
    lines += ["next:"]
    if folder not in os.environ.get("LD_LIBRARY_CUPLUG_PATH", "").split(os.pathsep):
        lines.append(f"  export LD_LIBRARY_CUPLUG_PATH={shlex.quote(folder)}")
    lines += ["  cuplug list", f'  python -c "from cuplug.ops import {names[0]}; help({names[0]})"']
    print_lines(lines)


def _sides(built: Built, table: Table) -> str:
    device_types = sorted({each for row in table.rows for each in row.device_types})
    architectures = built.architectures if "cuda" in device_types else ()
    return " ".join([", ".join(device_types), *map(dotted, architectures)])


def show_results(results: list[Result], budget: float = math.inf) -> None:
    """Show the results of property tests: a table, then each failure with its example."""
    signatures = list(dict.fromkeys((r.operator, r.signature) for r in results))
    for place in signatures:
        print_lines([place[1]])
        of_it = [r for r in results if (r.operator, r.signature) == place]
        causes = _causes(of_it)
        print_findings((_word(r), r.property, _said(r, causes), "") for r in of_it)
        for code, properties in _examples(of_it, causes).items():
            verb = "fail" if len(properties) > 1 else "fails"
            print_lines(["", f"{', '.join(properties)} {verb} for", *_indented(code)])
        print_lines([""])
    words = [_word(r) for r in results]
    n_untried = words.count("note")
    untried = f", {n_untried} not tried" if n_untried else ""
    print_lines([f"{words.count('ok')} passed, {words.count('error')} failed{untried}"])
    late = [r for r in results if r.text.startswith(LATE)]
    if budget < math.inf:
        names = ", ".join(dict.fromkeys(r.operator for r in late))
        rest = f"; {len(late)} did not run or finish: those of {names}" if late else ""
        print_lines([f"budget of {budget:g} s: {len(results) - len(late)} checks ran{rest}"])


def _causes(results: list[Result]) -> dict[str, Result]:
    """Return the first failed result of each cause."""
    causes: dict[str, Result] = {}
    for r in results:
        if not r.ok:
            causes.setdefault(r.text, r)
    return causes


def _examples(results: list[Result], causes: dict[str, Result]) -> dict[str, list[str]]:
    """Return each failing example once, with the properties that fail with it."""
    examples: dict[str, list[str]] = {}
    for r in results:
        if r.code and not r.ok and causes[r.text] is r:
            examples.setdefault(r.code, []).append(r.property)
    return examples


def _said(result: Result, causes: dict[str, Result]) -> str:
    """Describe each cause once."""
    first = causes.get(result.text, result)
    return result.text if result.ok or first is result else f"as in: {first.property}"


def _word(result: Result) -> str:
    return "error" if not result.ok else "ok" if result.tried else "note"


def show_bandwidth(measured: list[Measurement]) -> None:
    """Show measurements as a table with bars: fractions of a copy's bandwidth."""
    heading = ("device type", "bytes", "us a call", "GB/s", "of a copy", "", "arguments")
    rows = [
        (
            *(x.device_type, f"{x.n_bytes:,}", f"{x.call_us:.2f}", f"{x.gb_per_s:.2f}"),
            *(f"{x.share:.2f}", "#" * round(min(x.share, 1.5) * BAR), x.arguments),
        )
        for x in measured
    ]
    print_table(heading, rows)
    for device_type in dict.fromkeys(x.device_type for x in measured):
        print_lines([verdict([x for x in measured if x.device_type == device_type])])


def verdict(measured: list[Measurement]) -> str:
    """Return what limits an operator on one device type, and at which size."""
    smallest, largest = measured[0], measured[-1]
    text = f"{largest.device_type}: a call takes at least {smallest.call_us:.2f} us"
    if largest.call_us < 2 * smallest.call_us:
        return f"{text}, and the largest little more: measure larger arrays, with --shape or --set"
    size, share = f"with {largest.n_bytes:,} bytes", f"{largest.share:.2f} of a copy's bandwidth"
    if largest.share >= NEAR_COPY:
        return f"{text}; {size} it reaches {share}: memory is the limit, little can be gained"
    return (
        f"{text}; {size} it reaches {share}: computation or the order of accesses is the limit, "
        f"and {1 / largest.share:.1f} times the speed is possible at most if it only moves data"
    )


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]


def check_watching() -> None:
    """Raise ModuleNotFoundError if the package that watches files is missing."""
    import importlib.util

    if not importlib.util.find_spec("watchfiles"):
        message = "--watch needs the package watchfiles: pip install watchfiles"
        raise ModuleNotFoundError(message)


def watch(path: str, output: str | None, arch: str, options: tuple[str, ...]) -> None:
    """Rebuild after each change of a source, or of a header next to it, until interrupted."""
    import watchfiles

    folders = sorted({source.directory for source in find_sources(path)})
    changes = watchfiles.watch(
        *folders,
        watch_filter=lambda _, changed: changed.endswith(WATCHED),
        recursive=False,
        raise_interrupt=False,
        yield_on_timeout=True,
        rust_timeout=1000,
    )
    print_lines(
        [f"watching {', '.join(folders)}; cuplug.reload() in a running Python takes the new code"]
    )
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        for changed in changes:
            if changed:
                _build_again(path, output, arch, options)


def _build_again(path: str, output: str | None, arch: str, options: tuple[str, ...]) -> None:
    try:
        build_and_show(path, output, arch, options)
    except BuildError as error:
        click.echo(f"cuplug: {error}", err=True)
    sys.stdout.flush()
