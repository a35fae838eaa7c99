# SPDX-License-Identifier: Apache-2.0
"""The picture of the whole: plugin files, core, runtime, callers, the CPU and a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from drawing import LIGHT
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch


@dataclass(frozen=True)
class Box:
    """A box with a heading and lines under it; in units of the picture, 100 wide and 46 high."""

    x: float
    y: float
    width: float
    height: float
    heading: str
    lines: tuple[str, ...] = ()
    is_ours: bool = False

    @property
    def left(self) -> tuple[float, float]:
        """The middle of its left side."""
        return self.x, self.y + self.height / 2

    @property
    def below(self) -> tuple[float, float]:
        """The middle of its lower side."""
        return self.x + self.width / 2, self.y

    @property
    def right(self) -> tuple[float, float]:
        """The middle of its right side."""
        return self.x + self.width, self.y + self.height / 2

    def above(self) -> tuple[float, float]:
        """The middle of its upper side."""
        return self.x + self.width / 2, self.y + self.height


FILES = Box(0, 27, 23, 17, "plugin files", ("libgather.so", "librelu.so", "libyours.so"))
SOURCE = Box(0, 15, 23, 9, "source as text", ("an expression, a CUDA kernel",))
RUNTIME = Box(
    0, 0.5, 23, 11, "runtime", ("libcuplug_runtime", "runs it, a plugin itself"), is_ours=True
)
CORE = Box(
    39,
    14,
    24,
    30,
    "core",
    (
        "libcuplug.so.1",
        "reads tables, runs nothing",
        "checks every argument",
        "calls entries by dlsym",
    ),
    is_ours=True,
)
PYTHON = Box(79, 36, 21, 8, "Python", ("NumPy, PyTorch, CuPy",))
CYTHON = Box(79, 25, 21, 8, "Cython", ("typed memoryviews",))
PROGRAM = Box(79, 14, 21, 8, "C, C++", ("host.h",))
CPU = Box(39, 0.5, 10.5, 8, "CPU", ("host entry",))
GPU = Box(52.5, 0.5, 10.5, 8, "GPU", ("CUDA entry",))


def _draw(panel: Axes, box: Box) -> None:
    edge = LIGHT.ours if box.is_ours else LIGHT.grid
    shape = FancyBboxPatch(
        (box.x, box.y),
        box.width,
        box.height,
        boxstyle="round,pad=0,rounding_size=1.2",
        facecolor=LIGHT.background,
        edgecolor=edge,
        linewidth=2.2 if box.is_ours else 1.4,
    )
    panel.add_patch(shape)
    step = box.height / (len(box.lines) + 1)
    for k, text in enumerate((box.heading, *box.lines)):
        colour = LIGHT.text if k or not box.is_ours else LIGHT.ours
        weight, size = ("normal", 9) if k else ("bold", 11)
        place = box.x + box.width / 2, box.y + box.height - (k + 0.5) * step
        style = {"color": colour, "fontsize": size, "fontweight": weight}
        panel.text(*place, text, ha="center", va="center", **style)


def _arrow(
    panel: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    label: str = "",
) -> None:
    style = {"arrowstyle": "-|>", "mutation_scale": 12, "color": LIGHT.peers[0], "linewidth": 1.4}
    panel.add_patch(FancyArrowPatch(start, end, shrinkA=2, shrinkB=2, **style))
    middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    for k, line in enumerate(label.split("\n") if label else ()):
        place = middle[0], middle[1] + 1.2 + 2.6 * (label.count("\n") - k)
        panel.text(*place, line, ha="center", va="bottom", color=LIGHT.text, fontsize=8)


def whole() -> Figure:
    """Draw it."""
    figure = Figure(figsize=(10, 4.7), facecolor=LIGHT.background, layout="constrained")
    panel = figure.subplots()
    panel.set(xlim=(-1, 101), ylim=(0, 46))
    panel.axis("off")
    for box in (FILES, SOURCE, RUNTIME, CORE, PYTHON, CYTHON, PROGRAM, CPU, GPU):
        _draw(panel, box)
    _arrow(panel, FILES.right, (CORE.x, FILES.right[1]), "search path\nLD_LIBRARY_…")
    _arrow(panel, SOURCE.below, RUNTIME.above())
    _arrow(panel, RUNTIME.right, (CORE.x, CORE.y + 3))
    for box in (PYTHON, CYTHON, PROGRAM):
        _arrow(panel, box.left, (CORE.x + CORE.width, box.left[1]))
    for box in (CPU, GPU):
        _arrow(panel, (box.above()[0], CORE.y), box.above())
    return figure
