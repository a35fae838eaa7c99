# SPDX-License-Identifier: Apache-2.0
"""Pictures for docs/gallery.md, by matplotlib: `make gallery`."""

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"


def path_of(name):
    return PICTURES / f"gallery-{name}.png"


def save(name, x, colours, limits=(None, None)):
    """Write an array as a picture with one pixel for each element and 256 colors."""
    x = x.numpy().astype(float)
    low, high = (np.min(x) if limits[0] is None else limits[0]), limits[1] or np.max(x)
    pixels = plt.get_cmap(colours)((x - low) / (high - low), bytes=True)
    plt.imsave(path_of(name), pixels[..., :3].copy(), metadata={"Software": None})


def scatter(name, points, labels, centres):
    """Write points in the colors of their labels, and their centers."""
    figure = plt.figure(figsize=(3.2, 2.4), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.scatter(*points.numpy().T, c=labels.numpy(), s=1, cmap="tab10")
    axes.scatter(*centres.numpy().T, c="black", s=40, marker="x")
    figure.savefig(path_of(name), metadata={"Software": None})
