# SPDX-License-Identifier: Apache-2.0
"""The game of life, on a torus."""

import cuplug

STEP = """
int64_t row = i / w, column = i % w, alive = 0;
for (int64_t r = -1; r <= 1; r++)
  for (int64_t c = -1; c <= 1; c++)
    if (r || c) alive += cells[(row + r + h) % h * w + (column + c + w) % w];
next = alive == 3 || (alive == 2 && cells[i]);
"""
step = cuplug.elementwise("life(cells: uint8[h, w]) -> next: uint8[h, w]", STEP)


def compute(device, height=240, width=320, steps=200):
    rng = cuplug.random.default_rng(1)
    cells = rng.integers(2, size=(height, width), dtype="uint8", device=device)
    for _ in range(steps):
        cells = step(cells)
    return cells


if __name__ == "__main__":
    from picture import save

    save("life", compute("cpu"), "binary")
