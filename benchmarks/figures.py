# SPDX-License-Identifier: Apache-2.0
"""The figures of the documents, each drawn by a function from one committed table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from drawing import (
    bars,
    dots,
    legend,
    legend_below,
    line_of,
    lines,
    log_y,
    new_figure,
    title,
)
from matplotlib.figure import Figure

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SIZE_TICKS = {KIB: "1 KiB", 32 * KIB: "32 KiB", MIB: "1 MiB", 32 * MIB: "32 MiB", GIB: "1 GiB"}


class Absent(LookupError):
    """The table lacks a measurement."""


@dataclass(frozen=True)
class Table:
    """The benchmarks of one run, as the JSON file has them."""

    report: dict[str, Any]

    def all(self, module: str, title: str) -> list[dict[str, Any]]:
        """Return the comparisons of a module whose title begins so and that have results."""
        comparisons = self.report["benchmarks"].get(module, {"comparisons": []})["comparisons"]
        found = [c for c in comparisons if c["title"].startswith(title) and c["results"]]
        if not found:
            raise Absent(f"the table has no {module}: {title}")
        return found

    def one(self, module: str, title: str) -> dict[str, Any]:
        """Return the first of them."""
        return self.all(module, title)[0]


def medians(comparison: dict[str, Any], names: Iterable[str] = ()) -> dict[str, float]:
    """Return the medians of a comparison, for the given names or for all, in their order."""
    results = comparison["results"]
    return {n: results[n]["median"] for n in names or comparison["order"] if n in results}


def calls(table: Table) -> Figure:
    """One call with three arrays: on the host, and a launch relative to that from C."""
    host = table.one("calls", "3 arrays of")
    launch = table.one("calls_cuda", "3 GPU arrays of")
    figure, (left, right) = new_figure(2, 3.6)
    shown = [name for name in host["order"] if name not in ("empty loop",)]
    bars(left, medians(host, shown), 3)
    title(left, "Call with 3 small host arrays, microseconds")
    floor = medians(launch)[launch["reference"]]
    bars(right, {name: value / floor for name, value in medians(launch).items()})
    title(right, "Launch on 3 GPU arrays; from C = 1\n")
    line_of(right, 1.10, "target 1.10")
    return figure


def by_size(comparisons: list[dict[str, Any]]) -> dict[str, dict[float, float]]:
    """Return GB/s by bytes of the input, for each contender."""
    curves: dict[str, dict[float, float]] = {}
    for comparison in comparisons:
        for name, result in comparison["results"].items():
            curves.setdefault(name, {})[comparison["settings"]["bytes"]] = result["gb_per_s"]
    return curves


def transfers(table: Table) -> Figure:
    """Rates of copies to and from the device and of relu through it, by size."""
    titles = {"to device": "NumPy to device, GB/s", "to host": "Device to NumPy, GB/s"}
    titles["relu"] = "relu, NumPy to NumPy, GB/s both ways"
    found = {name: table.all("transfer_sizes", f"{name},") for name in titles}
    figure, panels = new_figure(3)
    for panel, (name, text) in zip(panels, titles.items(), strict=True):
        lines(panel, by_size(found[name]), SIZE_TICKS)
        log_y(panel)
        title(panel, text, "bytes of the array")
    legend(panels[0])
    return figure


def by_threads(comparison: dict[str, Any]) -> dict[str, dict[float, float]]:
    """Return medians by number of threads, which ends the contenders' names."""
    curves: dict[str, dict[float, float]] = {}
    for name, median in medians(comparison).items():
        who, _, threads = name.rpartition(", ")
        curves.setdefault(who, {})[int(threads.split()[0])] = median
    return curves


def host_threads(table: Table) -> Figure:
    """Host operators by number of threads."""
    found = {name: table.one("host_threads", name) for name in ("relu", "leaky_relu", "gather")}
    figure, panels = new_figure(3)
    for panel, (name, comparison) in zip(panels, found.items(), strict=True):
        curves = by_threads(comparison)
        ticks = {x: f"{x}" for x in sorted({x for points in curves.values() for x in points})}
        lines(panel, curves, ticks)
        panel.set_ylim(bottom=0)
        title(panel, f"{name}, milliseconds", "threads")
    legend(max(panels, key=lambda panel: len(panel.lines)))
    return figure


def small_inputs(table: Table) -> Figure:
    """relu on the host and calls from many threads: what small work costs."""
    sizes = table.all("host_sizes", "relu,")
    callers = by_threads(table.one("call_threads", "calls from"))
    figure, (left, right) = new_figure(2)
    curves: dict[str, dict[float, float]] = {}
    for comparison in sizes:
        for name, median in medians(comparison).items():
            curves.setdefault(name, {})[comparison["settings"]["elements"]] = median
    ticks = {16: "16", 256: "256", 4 * KIB: "4 Ki", 64 * KIB: "64 Ki", MIB: "1 Mi"}
    lines(left, curves, ticks)
    log_y(left)
    title(left, "relu on the host, microseconds", "elements")
    rates = {w: {x: 1 / us for x, us in points.items()} for w, points in callers.items()}
    lines(right, rates, {x: f"{x}" for x in (1, 2, 4, 8, 16)})
    log_y(right, 2)
    title(right, "Calls that do nothing, millions a second", "calling threads")
    legend(left), legend(right)
    return figure


def kernels(table: Table) -> Figure:
    """Kernels on device arrays, relative to a device copy of as many bytes."""
    found = [c for c in table.all("kernels", "") if c["reference"] == "device copy"]
    if not found:
        raise Absent("the table has no kernels beside a device copy")
    figure, panels = new_figure(len(found), 2.4)
    for panel, comparison in zip(panels, found, strict=True):
        values = medians(comparison)
        copy = values.pop("device copy")
        bars(panel, {name: copy / value for name, value in values.items()})
        text = f"{comparison['title']},\nspeed of a device copy = 1"
        title(panel, text)
        line_of(panel, 1, "")
    return figure


def first_use(table: Table) -> Figure:
    """Imports, and first calls compared with calls from C."""
    imports: dict[str, float] = {}
    for comparison in table.all("first_use", "import"):
        for name, ms in medians(comparison).items():
            imports.setdefault(name, ms)
    first = {c["title"]: c for c in table.all("first_use", "first call")}
    figure, (left, right) = new_figure(2, 2.6)
    bars(left, imports, 0)
    title(left, "Import in a fresh process, milliseconds")
    values = {}
    for text, comparison in first.items():
        side = text.rpartition(", ")[2]
        values |= {f"{n} ({side})": us / 1e3 for n, us in medians(comparison).items()}
    bars(right, values)
    title(right, "First call of an operator in a process, milliseconds")
    return figure


def beside(name: str, comparison: dict[str, Any]) -> dict[str, list[float]]:
    """Return how many times as fast as that contender each other one is."""
    values = medians(comparison)
    base = values.pop(name)
    return {who: [base / value] for who, value in values.items()}


def behind_best(comparisons: Iterable[dict[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """Return cuplug's times divided by the best peer's, in rows by title up to its sizes."""
    rows: dict[str, dict[str, list[float]]] = {}
    for comparison in comparisons:
        values = medians(comparison)
        peers = [v for n, v in values.items() if n not in ("cuplug", "device copy")]
        if "cuplug" in values and peers:
            ratios = rows.setdefault(row_of(comparison["title"]), {"cuplug": []})
            ratios["cuplug"].append(values["cuplug"] / min(peers))
    return rows


def row_of(title: str) -> str:
    """Return a title without the sizes of its arrays, and where it runs.

    >>> row_of("sum of (4, 1048576) int8, axis 1, CPU"), row_of("sort, 1 Ki, GPU")
    ('sum of int8', 'sort')
    """
    title = re.sub(r", (all|axis \d|\d+ [KMG]i)?(, )?[CG]PU$", "", title)
    return re.sub(r" \([\d, ]+\) (?=\w+\d|bool)", " ", title)


COPY = "device copy"
SPEED, TIME = "speed of a device copy = 1", "time of the best peer = 1"


def reductions(table: Table) -> Figure:
    """Reductions and scans on device arrays, relative to a device copy of as many bytes."""
    found = table.all("reductions_cuda", "")
    sums = [c for c in found if c["title"].startswith("sum")]
    groups = (sums, [c for c in found if c not in sums])
    figure, panels = new_figure(2, 6)
    for panel, group in zip(panels, groups, strict=True):
        dots(panel, {c["title"]: beside(COPY, c) for c in group}, 1 / 16, 2)
        title(panel, "Reductions on the GPU", SPEED)
    legend_below(panels[0])
    return figure


def rows(table: Table) -> Figure:
    """Stock operators of rows, each dot a length of rows, relative to a device copy."""
    figure, panels = new_figure(2, 3.2)
    for panel, dtype in zip(panels, ("bfloat16", "float32"), strict=True):
        found: dict[str, dict[str, list[float]]] = {}
        for c in (c for c in table.all("rows_cuda", "") if c["title"].endswith(dtype)):
            ratios = found.setdefault(c["title"].split(",")[0], {})
            for who, ratio in beside(COPY, c).items():
                ratios.setdefault(who, []).extend(ratio)
        dots(panel, found, 1 / 16, 2)
        title(panel, f"Rows of {dtype} on an H200, each dot a length", SPEED)
    legend_below(panels[0])
    return figure


def host_functions(table: Table) -> Figure:
    """Reductions and expressions on the CPU, compared with the fastest of the peers."""
    figure, panels = new_figure(2, 5)
    texts = {
        "reductions_host": "Reductions on the CPU, each dot a shape and axis",
        "expressions_host": "Expressions on the CPU",
    }
    for panel, (module, text) in zip(panels, texts.items(), strict=True):
        dots(panel, behind_best(table.all(module, "")), 1 / 64, 4)
        title(panel, text, TIME)
    return figure


def expressions(table: Table) -> Figure:
    """Element-wise operators on device arrays of any layout, relative to a device copy."""
    figure, panels = new_figure(2, 4)
    for panel, module in zip(panels, ("layouts_cuda", "expressions"), strict=True):
        found = table.all(module, "")
        dots(panel, {c["title"]: beside(COPY, c) for c in found}, 1 / 16, 2)
        title(panel, "Element-wise and moves on the GPU", SPEED)
    legend_below(panels[0])
    return figure


def arrays(table: Table) -> Figure:
    """Stock operators of arrays, compared with the fastest of the peers."""
    found = table.all("array_ops", "")
    figure, panels = new_figure(2, 4)
    for panel, side in zip(panels, ("CPU", "GPU"), strict=True):
        here = [c for c in found if c["title"].endswith(side)]
        dots(panel, behind_best(here), 1 / 64, 4)
        title(panel, f"Arrays on the {side}, each dot a size", TIME)
    return figure


FIGURES: dict[str, Callable[[Table], Figure]] = {
    "calls": calls,
    "transfers": transfers,
    "host-threads": host_threads,
    "small-inputs": small_inputs,
    "kernels": kernels,
    "first-use": first_use,
    "reductions": reductions,
    "rows": rows,
    "expressions": expressions,
    "host-functions": host_functions,
    "arrays": arrays,
}


def draw_all(table: Table) -> Iterator[tuple[str, Figure | Absent]]:
    """Yield each figure under its file name, or why it cannot be drawn."""
    for name, draw in FIGURES.items():
        try:
            yield name, draw(table)
        except Absent as reason:
            yield name, reason
