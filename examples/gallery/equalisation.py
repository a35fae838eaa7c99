# SPDX-License-Identifier: Apache-2.0
"""Histogram equalization: each gray value becomes the fraction of pixels up to it."""

import cuplug
from cuplug import array_api as xp
from cuplug.ops import sort

RANK = """
int64_t low = 0, high = m;
while (low < high) {
  int64_t middle = (low + high) / 2;
  if (sorted[middle] <= x) low = middle + 1;
  else high = middle;
}
share = low * 255 / m;
"""
rank = cuplug.elementwise("rank(x: T[...], sorted: T[m]) -> share: uint8[...]", RANK)

DARK = "40 + 30 * sin(i % w * 0.05 + 3 * sin(i / w * 0.03)) * sin(i / w * 0.04) + (i / w % 32 < 2)"
dark = cuplug.elementwise("dark(h: int, w: int) -> uint8[h, w]", DARK)


def compute(device, height=240, width=320):
    picture = dark(height, width, out=cuplug.empty((height, width), "uint8", device))
    return picture, rank(picture, sort(xp.reshape(picture, (-1,))))


if __name__ == "__main__":
    from picture import save

    save("equalisation", xp.concat(compute("cpu"), axis=1)[::2, ::2], "gray", (0, 255))
