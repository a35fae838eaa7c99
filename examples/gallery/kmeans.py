# SPDX-License-Identifier: Apache-2.0
"""k-means: points in the plane, and the centers of their clusters."""

import cuplug
from cuplug import array_api as xp

NEAREST = """
T least = 0;
for (int64_t j = 0; j < k; j++) {
  T dx = p[2 * i] - c[2 * j], dy = p[2 * i + 1] - c[2 * j + 1], distance = dx * dx + dy * dy;
  if (!j || distance < least) least = distance, label = j;
}
"""
nearest = cuplug.elementwise("nearest(p: T[m, 2], c: T[k, 2]) -> label: int64[m]", NEAREST)


@cuplug.fuse
def centres_of(points, is_in):
    return (points * is_in).sum(axis=0) / is_in.sum(axis=0)


def compute(device, n=4000, k=5, rounds=20):
    rng = cuplug.random.default_rng(3)
    middles = rng.uniform(-4, 4, (k, 2), device=device)
    points = xp.take(middles, rng.integers(k, size=n, device=device), axis=0)
    points = points + rng.normal(0, 0.6, (n, 2), device=device)
    centres = rng.choice(points, k, replace=False)
    for _ in range(rounds):
        labels = nearest(points, centres)
        is_in = xp.expand_dims(labels, axis=1) == xp.arange(k, device=device)
        centres = centres_of(xp.expand_dims(points, axis=1), xp.expand_dims(is_in, axis=2))
    return points, labels, centres


if __name__ == "__main__":
    from picture import scatter

    scatter("kmeans", *compute("cpu"))
