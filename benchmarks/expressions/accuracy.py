# SPDX-License-Identifier: Apache-2.0
"""Errors of sums on the CPU compared with NumPy's, as a table in Markdown. No time is measured."""

from __future__ import annotations

import cuplug
import numpy as np

SHAPES = [((1 << 20,), None), ((1000, 1000), 0), ((1000, 1000), 1), ((1 << 18, 4), 0)]
N_ARRAYS = 20


def error(found: np.ndarray, exact: np.ndarray) -> float:
    """Return the root of the mean square of errors, in units of the last place."""
    units = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    return float(np.sqrt(np.mean(((found.astype(np.float64) - exact) / units) ** 2)))


def errors(shape: tuple[int, ...], axis: int | None) -> list[float]:
    """Return the errors of cuplug and of NumPy."""
    total = cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0")
    random, found = np.random.default_rng(0), []
    for _ in range(N_ARRAYS):
        x = random.random(shape, np.float32)
        exact = np.asarray(x.sum(axis, dtype=np.float64))
        sums = (total(x, axis=axis), x.sum(axis))
        found.append([error(np.asarray(each), exact) for each in sums])
    return [float(mean) for mean in np.mean(found, axis=0)]


def main() -> None:
    """Print the table."""
    print("| sum of | cuplug | NumPy |\n|---|---|---|")
    for shape, axis in SHAPES:
        ours, theirs = errors(shape, axis)
        where = "all" if axis is None else f"axis {axis}"
        print(f"| {shape}, {where} | {ours:.2f} | {theirs:.2f} |")


if __name__ == "__main__":
    main()
