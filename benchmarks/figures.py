# SPDX-License-Identifier: Apache-2.0
"""The figures of the documents, each drawn by a function from one committed table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SIZE_TICKS = {KIB: "1 KiB", 32 * KIB: "32 KiB", MIB: "1 MiB", 32 * MIB: "32 MiB", GIB: "1 GiB"}


class Absent(LookupError):
    """What the table lacks."""


@dataclass(frozen=True)
class Theme:
    """Colours that are read on one background; `peers` are those of lines and bars in turn."""

    background: str
    text: str
    grid: str
    ours: str
    peers: tuple[str, ...]

    def colour(self, name: str, k: int = 0) -> str:
        """Return the colour of a contender: ours, or that of the k-th peer."""
        return self.ours if name.startswith("cuplug") else self.peers[k % len(self.peers)]


LIGHT = Theme("#ffffff", "#24292f", "#d8dee4", "#3f8f00", ("#7d8590", "#0969da", "#bc4c00"))
DARK = Theme("#0d1117", "#e6edf3", "#30363d", "#76b900", ("#8b949e", "#58a6ff", "#f0883e"))


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
    """Return the medians of what was measured, of those names or of all, in their order."""
    results = comparison["results"]
    return {n: results[n]["median"] for n in names or comparison["order"] if n in results}


def new_figure(theme: Theme, n_panels: int, height: float = 3.4) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels side by side."""
    figure = Figure(figsize=(10, height), facecolor=theme.background, layout="constrained")
    axes = figure.subplots(1, n_panels, squeeze=False)[0]
    for panel in axes:
        panel.set_facecolor(theme.background)
        panel.tick_params(colors=theme.text, length=0)
        panel.spines[:].set_visible(False)
        panel.set_axisbelow(True)
    return figure, list(axes)


def title(panel: Axes, text: str, theme: Theme, unit: str = "") -> None:
    """Write a panel's title, and the unit under its x axis."""
    panel.set_title(text, color=theme.text, fontsize=10, loc="left")
    panel.set_xlabel(unit, color=theme.text, fontsize=9)


def bars(panel: Axes, values: dict[str, float], theme: Theme, digits: int = 2) -> None:
    """Draw horizontal bars, the first on top, each with its value."""
    names = list(values)
    colours = [theme.colour(name) for name in names]
    drawn = panel.barh(names, list(values.values()), color=colours, height=0.7)
    labels = [f"{value:,.{digits}f}" for value in values.values()]
    # a patch of background, so that a target's line does not cross the figure
    patch = {"facecolor": theme.background, "edgecolor": "none", "pad": 0.8}
    panel.bar_label(drawn, labels, padding=4, color=theme.text, fontsize=8, bbox=patch)
    panel.invert_yaxis()
    panel.margins(x=0.15)
    panel.set_xticks([])
    panel.tick_params(axis="y", labelsize=8)


def line_of(panel: Axes, x: float, text: str, theme: Theme) -> None:
    """Draw a target as a dashed vertical line with its text."""
    panel.axvline(x, color=theme.text, linestyle="--", linewidth=1, zorder=0.5)
    panel.annotate(text, (x, 1), xycoords=("data", "axes fraction"), color=theme.text, fontsize=8)


def lines(
    panel: Axes, curves: dict[str, dict[float, float]], theme: Theme, ticks: dict[float, str]
) -> None:
    """Draw curves over x with a logarithmic axis that has these ticks."""
    ours = [name for name in curves if name.startswith("cuplug")]
    peers = [name for name in curves if name not in ours]
    for name, points in curves.items():
        x, is_ours = sorted(points), name in ours
        colour = theme.colour(name, 0 if is_ours else peers.index(name))
        style = "o--" if is_ours and name != ours[0] else "o-"
        width = 2.2 if is_ours else 1.4
        y = [points[v] for v in x]
        panel.plot(x, y, style, label=name, color=colour, linewidth=width, markersize=4)
    panel.set_xscale("log", base=2)
    panel.set_xticks(list(ticks), list(ticks.values()), fontsize=8)
    panel.minorticks_off()
    panel.tick_params(axis="y", labelsize=8)
    panel.grid(color=theme.grid, linewidth=0.6)


def log_y(panel: Axes, base: int = 10) -> None:
    """Make the y axis logarithmic, with plain numbers."""
    panel.set_yscale("log", base=base)
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.tick_params(axis="y", which="minor", length=0)


def legend(panel: Axes, theme: Theme) -> None:
    """Draw the names of the curves."""
    panel.legend(frameon=False, labelcolor=theme.text, fontsize=8)


def calls(table: Table, theme: Theme) -> Figure:
    """One call with three arrays: on the host, and a launch relative to that from C."""
    host = table.one("calls", "3 arrays of")
    launch = table.one("calls_cuda", "3 GPU arrays of")
    figure, (left, right) = new_figure(theme, 2, 3.6)
    shown = [name for name in host["order"] if name not in ("empty loop",)]
    bars(left, medians(host, shown), theme, 3)
    title(left, "Call with 3 small host arrays, microseconds", theme)
    floor = medians(launch)[launch["reference"]]
    bars(right, {name: value / floor for name, value in medians(launch).items()}, theme)
    title(right, "Launch on 3 GPU arrays; from C = 1\n", theme)
    line_of(right, 1.10, "target 1.10", theme)
    return figure


def by_size(comparisons: list[dict[str, Any]]) -> dict[str, dict[float, float]]:
    """Return GB/s by bytes of the input, for each contender."""
    curves: dict[str, dict[float, float]] = {}
    for comparison in comparisons:
        for name, result in comparison["results"].items():
            curves.setdefault(name, {})[comparison["settings"]["bytes"]] = result["gb_per_s"]
    return curves


def transfers(table: Table, theme: Theme) -> Figure:
    """Rates of copies to and from the device and of relu through it, by size."""
    titles = {"to device": "NumPy to device, GB/s", "to host": "Device to NumPy, GB/s"}
    titles["relu"] = "relu, NumPy to NumPy, GB/s both ways"
    found = {name: table.all("transfer_sizes", f"{name},") for name in titles}
    figure, panels = new_figure(theme, 3)
    for panel, (name, text) in zip(panels, titles.items(), strict=True):
        lines(panel, by_size(found[name]), theme, SIZE_TICKS)
        log_y(panel)
        title(panel, text, theme, "bytes of the array")
    legend(panels[0], theme)
    return figure


def by_threads(comparison: dict[str, Any]) -> dict[str, dict[float, float]]:
    """Return medians by number of threads, which ends the contenders' names."""
    curves: dict[str, dict[float, float]] = {}
    for name, median in medians(comparison).items():
        who, _, threads = name.rpartition(", ")
        curves.setdefault(who, {})[int(threads.split()[0])] = median
    return curves


def host_threads(table: Table, theme: Theme) -> Figure:
    """Host operators by number of threads."""
    found = {name: table.one("host_threads", name) for name in ("relu", "leaky_relu", "gather")}
    figure, panels = new_figure(theme, 3)
    for panel, (name, comparison) in zip(panels, found.items(), strict=True):
        curves = by_threads(comparison)
        ticks = {x: f"{x}" for x in sorted({x for points in curves.values() for x in points})}
        lines(panel, curves, theme, ticks)
        panel.set_ylim(bottom=0)
        title(panel, f"{name}, milliseconds", theme, "threads")
    legend(max(panels, key=lambda panel: len(panel.lines)), theme)
    return figure


def small_inputs(table: Table, theme: Theme) -> Figure:
    """relu on the host and calls from many threads: what small work costs."""
    sizes = table.all("host_sizes", "relu,")
    callers = by_threads(table.one("call_threads", "calls from"))
    figure, (left, right) = new_figure(theme, 2)
    curves: dict[str, dict[float, float]] = {}
    for comparison in sizes:
        for name, median in medians(comparison).items():
            curves.setdefault(name, {})[comparison["settings"]["elements"]] = median
    ticks = {16: "16", 256: "256", 4 * KIB: "4 Ki", 64 * KIB: "64 Ki", MIB: "1 Mi"}
    lines(left, curves, theme, ticks)
    log_y(left)
    title(left, "relu on the host, microseconds", theme, "elements")
    rates = {w: {x: 1 / us for x, us in points.items()} for w, points in callers.items()}
    lines(right, rates, theme, {x: f"{x}" for x in (1, 2, 4, 8, 16)})
    log_y(right, 2)
    title(right, "Calls that do nothing, millions a second", theme, "calling threads")
    legend(left, theme), legend(right, theme)
    return figure


def kernels(table: Table, theme: Theme) -> Figure:
    """Kernels on device arrays, relative to a device copy of as many bytes."""
    found = [c for c in table.all("kernels", "") if c["reference"] == "device copy"]
    if not found:
        raise Absent("the table has no kernels beside a device copy")
    figure, panels = new_figure(theme, len(found), 2.4)
    for panel, comparison in zip(panels, found, strict=True):
        values = medians(comparison)
        copy = values.pop("device copy")
        bars(panel, {name: copy / value for name, value in values.items()}, theme)
        text = f"{comparison['title']},\nspeed of a device copy = 1"
        title(panel, text, theme)
        line_of(panel, 1, "", theme)
    return figure


def first_use(table: Table, theme: Theme) -> Figure:
    """Imports, and first calls beside those from C."""
    imports: dict[str, float] = {}
    for comparison in table.all("first_use", "import"):
        for name, ms in medians(comparison).items():
            imports.setdefault(name, ms)
    first = {c["title"]: c for c in table.all("first_use", "first call")}
    figure, (left, right) = new_figure(theme, 2, 2.6)
    bars(left, imports, theme, 0)
    title(left, "Import in a fresh process, milliseconds", theme)
    values = {}
    for text, comparison in first.items():
        side = text.rpartition(", ")[2]
        values |= {f"{n} ({side})": us / 1e3 for n, us in medians(comparison).items()}
    bars(right, values, theme)
    title(right, "First call of an operator in a process, milliseconds", theme)
    return figure


FIGURES: dict[str, Callable[[Table, Theme], Figure]] = {
    "calls": calls,
    "transfers": transfers,
    "host-threads": host_threads,
    "small-inputs": small_inputs,
    "kernels": kernels,
    "first-use": first_use,
}


def draw_all(table: Table) -> Iterator[tuple[str, Figure | Absent]]:
    """Yield each figure in both themes under its file name, or why it cannot be drawn."""
    for name, draw in FIGURES.items():
        for suffix, theme in (("", LIGHT), ("-dark", DARK)):
            try:
                yield f"{name}{suffix}", draw(table, theme)
            except Absent as reason:
                yield f"{name}{suffix}", reason
