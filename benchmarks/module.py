# SPDX-License-Identifier: Apache-2.0
"""The frame of each benchmark module: its time, its comparisons and its output."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

import click
from measurement import Comparison, Skip, explain
from table import render_comparisons

GIB = 1 << 30
Made = TypeVar("Made")


class Seconds(click.FloatRange):
    """Seconds, at most an hour. click's ranges accept not-a-number."""

    def convert(self, value: Any, param: Any, context: Any) -> Any:
        """Return it as a float."""
        seconds = super().convert(value, param, context)
        return self.fail(f"{value} is no time.") if math.isnan(seconds) else seconds


TIME = Seconds(0, 3600)


def available_memory() -> int:
    """Return the available host memory in bytes, as reported by the system."""
    with open("/proc/meminfo") as lines:
        facts = dict(line.split(":", 1) for line in lines)
    return int(facts["MemAvailable"].split()[0]) * 1024


def at_once(calls: Iterable[Callable[[], object]], packages: Iterable[str] = ()) -> None:
    """Make calls on all cores, so that their code is compiled before it is measured.

    A call that fails reports this in its turn. Packages that several calls import are imported
    before: when several threads import PyTorch, also indirectly, parts of it may be missing.
    """
    for name in packages:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        wait([pool.submit(call) for call in calls])


def in_groups(makes: Iterable[Callable[[], Made]], bytes_each: int, memory: int) -> Iterator[Made]:
    """Yield the results of calls. As many run at once as cores and memory allow.

    None runs during a measurement.
    """
    n = max(1, min(os.cpu_count() or 1, memory // 4 // max(bytes_each, 1)))
    left = iter(makes)
    with ThreadPoolExecutor(n) as pool:
        while group := list(itertools.islice(left, n)):
            yield from list(pool.map(lambda make: make(), group))


class Run:
    """One running benchmark module.

    Results are written immediately, so a crash does not lose them.
    """

    def __init__(self, path: str | None, seconds: float, quick: bool, memory: int = 0) -> None:
        self.path = path
        self.memory = memory or available_memory()
        self.quick = quick
        self.min_rounds = 3 if quick else 5
        self.left = seconds
        self.data: dict[str, Any] = {"seconds": seconds, "quick": quick, "comparisons": []}

    def require_memory(self, n_bytes: int) -> None:
        """Raise Skip if less host memory is available."""
        if self.memory < n_bytes:
            seen, wanted = self.memory / GIB, n_bytes / GIB
            raise Skip(f"{seen:.1f} GiB of memory are available, {wanted:.1f} GiB are needed")

    def measure_all(self, prepares: Iterable[Callable[[], Comparison]]) -> None:
        """Measure comparisons, each prepared in its turn, with equal shares of the time."""
        every = list(prepares)
        for n_left, prepare in zip(reversed(range(len(every))), every, strict=True):
            self.measure(prepare(), n_left)

    def measure(self, comparison: Comparison, n_left: int = 0) -> None:
        """Measure with an equal share of the remaining time; `n_left` comparisons remain.

        The time to prepare contenders does not count.
        """
        start = time.monotonic()
        comparison.measure(self.left / (n_left + 1), self.min_rounds)
        self.left = max(self.left - (time.monotonic() - start), 0)
        self.data["comparisons"].append(comparison.as_dict())
        self.write()

    def write(self) -> None:
        """Write the results so far."""
        if self.path:
            Path(self.path).write_text(json.dumps(self.data))


def run_module(measure: Callable[[Run], None]) -> None:
    """Run a benchmark module as a command."""

    @click.command(help=measure.__doc__)
    @click.option("--json", "path", type=click.Path(), help="Write the data here; else show it.")
    @click.option("--seconds", type=TIME, default=20.0, show_default=True, help="For measuring.")
    @click.option("--quick", is_flag=True, help="Few rounds, nothing that compiles for long.")
    @click.option("--memory", default=0, help="GiB to use; else what the system says.")
    def command(path: str | None, seconds: float, quick: bool, memory: int) -> None:
        run = Run(path, seconds, quick, memory * GIB)
        try:
            measure(run)
        except Skip as reason:
            run.data["skipped"] = explain(reason)
        run.write()
        if not path:
            click.echo(run.data.get("skipped") or render_comparisons(run.data["comparisons"]))

    command()
