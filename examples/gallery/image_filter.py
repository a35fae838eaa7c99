# SPDX-License-Identifier: Apache-2.0
"""A filter: the edges in a noisy picture, after smoothing."""

import cuplug
from cuplug import array_api as xp

CONVOLVE = """
double sum = 0;
for (int64_t r = 0; r < a; r++)
  for (int64_t c = 0; c < b; c++) {
    int64_t y = min(max(i / w + r - a / 2, 0), h - 1), x = min(max(i % w + c - b / 2, 0), w - 1);
    sum += weights[r * b + c] * picture[y * w + x];
  }
smoothed = sum;
"""
row = "convolve(picture: T[h, w], weights: T[a, b]) -> smoothed: T[h, w]"
convolve = cuplug.elementwise(row, CONVOLVE)
SCENE = "hypot(i / w - 0.5 * h, i % w - 0.4 * w) < 0.3 * h || (i / w > 0.6 * h && i % w > 0.5 * w)"
scene = cuplug.elementwise("scene(h: int, w: int) -> float32[h, w]", SCENE)
strength = cuplug.fuse(lambda x, y: xp.sqrt(x * x + y * y))


def compute(device, height=240, width=320):
    picture = scene(height, width, out=cuplug.empty((height, width), "float32", device))
    noise = cuplug.random.default_rng(0).normal(0, 0.2, picture.shape, "float32", device=device)
    distance = xp.arange(-4, 5, dtype="float32", device=device)
    bell = xp.exp(-(distance**2) / 8)
    bell = bell / xp.sum(bell)
    smooth = convolve(convolve(picture + noise, bell[None, :]), bell[:, None])
    sobel = xp.asarray([[1, 0, -1], [2, 0, -2], [1, 0, -1]], dtype="float32", device=device)
    return strength(convolve(smooth, sobel), convolve(smooth, sobel.T))


if __name__ == "__main__":
    from picture import save

    save("image_filter", compute("cpu"), "gray")
