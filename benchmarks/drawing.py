# SPDX-License-Identifier: Apache-2.0
"""Themes, panels, bars, lines and dots, of which figures are made."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter


@dataclass(frozen=True)
class Theme:
    """Colors for one background; lines and bars of peers have the colors `peers` in turn."""

    background: str
    text: str
    grid: str
    ours: str
    peers: tuple[str, ...]

    def colour(self, name: str, k: int = 0) -> str:
        """Return the color of a contender: `ours`, or the k-th color of `peers`."""
        return self.ours if name.startswith("cuplug") else self.peers[k % len(self.peers)]


LIGHT = Theme("#ffffff", "#24292f", "#d8dee4", "#3f8f00", ("#7d8590", "#0969da", "#bc4c00"))
DARK = Theme("#0d1117", "#e6edf3", "#30363d", "#76b900", ("#8b949e", "#58a6ff", "#f0883e"))

STYLE = '<style type="text/css">'


def with_dark_scheme(svg: str) -> str:
    """Return a picture of light colors that has dark ones where the reader prefers them."""
    light, dark = ((x.background, x.text, x.grid, x.ours, *x.peers) for x in (LIGHT, DARK))
    rules = [
        f'  [style*="{name}: {old}"] {{{name}: {new} !important}}\n'
        for old, new in zip(light, dark, strict=True)
        for name in ("fill", "stroke")
        if f"{name}: {old}" in svg
    ]
    block = f"@media (prefers-color-scheme: dark) {{\n{''.join(rules)}}}\n"
    return svg.replace(STYLE, f"{STYLE}{block}", 1)


def new_figure(n_panels: int, height: float = 3.4) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels side by side."""
    figure = Figure(figsize=(10, height), facecolor=LIGHT.background, layout="constrained")
    axes = figure.subplots(1, n_panels, squeeze=False)[0]
    for panel in axes:
        panel.set_facecolor(LIGHT.background)
        panel.tick_params(colors=LIGHT.text, length=0)
        panel.spines[:].set_visible(False)
        panel.set_axisbelow(True)
    return figure, list(axes)


def title(panel: Axes, text: str, unit: str = "") -> None:
    """Write a panel's title, and the unit under its x axis."""
    panel.set_title(text, color=LIGHT.text, fontsize=10, loc="left")
    panel.set_xlabel(unit, color=LIGHT.text, fontsize=9)


def bars(panel: Axes, values: dict[str, float], digits: int = 2) -> None:
    """Draw horizontal bars, the first on top, each with its value."""
    names = list(values)
    colours = [LIGHT.colour(name) for name in names]
    drawn = panel.barh(names, list(values.values()), color=colours, height=0.7)
    labels = [f"{value:,.{digits}f}" for value in values.values()]
    # a patch of background, so that a target's line does not cross the figure
    patch = {"facecolor": LIGHT.background, "edgecolor": "none", "pad": 0.8}
    panel.bar_label(drawn, labels, padding=4, color=LIGHT.text, fontsize=8, bbox=patch)
    panel.invert_yaxis()
    panel.margins(x=0.15)
    panel.set_xticks([])
    panel.tick_params(axis="y", labelsize=8)


def line_of(panel: Axes, x: float, text: str) -> None:
    """Draw a target as a dashed vertical line with its text."""
    panel.axvline(x, color=LIGHT.text, linestyle="--", linewidth=1, zorder=0.5)
    panel.annotate(text, (x, 1), xycoords=("data", "axes fraction"), color=LIGHT.text, fontsize=8)


def lines(panel: Axes, curves: dict[str, dict[float, float]], ticks: dict[float, str]) -> None:
    """Draw curves over x with a logarithmic axis that has these ticks."""
    ours = [name for name in curves if name.startswith("cuplug")]
    peers = [name for name in curves if name not in ours]
    for name, points in curves.items():
        x, is_ours = sorted(points), name in ours
        colour = LIGHT.colour(name, 0 if is_ours else peers.index(name))
        style = "o--" if is_ours and name != ours[0] else "o-"
        width = 2.2 if is_ours else 1.4
        y = [points[v] for v in x]
        panel.plot(x, y, style, label=name, color=colour, linewidth=width, markersize=4)
    panel.set_xscale("log", base=2)
    panel.set_xticks(list(ticks), list(ticks.values()), fontsize=8)
    panel.minorticks_off()
    panel.tick_params(axis="y", labelsize=8)
    panel.grid(color=LIGHT.grid, linewidth=0.6)


def log_y(panel: Axes, base: int = 10) -> None:
    """Make the y axis logarithmic, with plain numbers."""
    panel.set_yscale("log", base=base)
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.tick_params(axis="y", which="minor", length=0)


def legend(panel: Axes) -> None:
    """Draw the names of the curves."""
    panel.legend(frameon=False, labelcolor=LIGHT.text, fontsize=8)


def legend_below(panel: Axes) -> None:
    """Draw the names of a panel's dots below the figure."""
    drawn, names = panel.get_legend_handles_labels()
    place = {"loc": "outside lower center", "ncols": len(names), "frameon": False}
    panel.figure.legend(drawn, names, labelcolor=LIGHT.text, fontsize=8, **place)


def dots(panel: Axes, rows: dict[str, dict[str, list[float]]], least: float, most: float) -> None:
    """Draw, in rows, what each name has as dots over a logarithmic axis around 1.

    What lies beyond `least` or `most` is drawn there, as an arrow.
    """
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    peers = [name for name in names if not name.startswith("cuplug")]
    for name in sorted(names, key=lambda name: name not in peers):
        is_ours = name not in peers
        colour = LIGHT.colour(name, 0 if is_ours else peers.index(name))
        found = [(v, y) for y, row in enumerate(rows.values()) for v in row.get(name, [])]
        for marker, shown in (
            ("o", [(v, y) for v, y in found if least <= v <= most]),
            ("<", [(least, y) for v, y in found if v < least]),
            (">", [(most, y) for v, y in found if v > most]),
        ):
            label = name if marker == "o" else None
            x, y = zip(*shown, strict=True) if shown else ((), ())
            size = 34 if is_ours else 20
            panel.scatter(x, y, size, colour, marker=marker, label=label, linewidths=0, alpha=0.85)
    panel.set_yticks(range(len(rows)), list(rows), fontsize=7)
    panel.set_ylim(len(rows) - 0.5, -0.5)
    panel.set_xscale("log", base=2)
    panel.set_xlim(least / 1.1, most * 1.1)
    panel.xaxis.set_major_formatter(lambda x, _: f"{x:g}" if x >= 1 else f"1/{1 / x:g}")
    panel.minorticks_off()
    panel.tick_params(axis="x", labelsize=8)
    panel.grid(color=LIGHT.grid, linewidth=0.6)
    panel.axvline(1, color=LIGHT.text, linestyle="--", linewidth=1, zorder=0.5)
