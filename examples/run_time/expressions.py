# SPDX-License-Identifier: Apache-2.0
"""Expressions as operators: leaky_relu on 10,000 values, and sums that broadcast without copies."""

import cuplug
import numpy as np

leaky_relu = cuplug.elementwise("leaky_relu(x: T, slope: T) -> T", "x > 0 ? x : slope * x")
add = cuplug.elementwise("add(a: T, b: T) -> T", "a + b")


def places() -> list[str]:
    """Return the CPU, and the GPU if there is one."""
    return ["cpu", "cuda"] if cuplug.is_available() else ["cpu"]


def main() -> None:
    """Compare with NumPy."""
    random = np.random.default_rng(0)
    x = np.linspace(-1, 1, 10_000, dtype=np.float32)
    row = random.standard_normal(128, np.float32)
    for device in places():
        y = leaky_relu(x, 0.1, device=device)
        np.testing.assert_array_equal(y, np.where(x > 0, x, np.float32(0.1) * x))
        for shape in ((512, 128), (32, 64, 128)):
            a = random.standard_normal(shape, np.float32)
            np.testing.assert_array_equal(add(a, row, device=device), a + row)
        print(f"leaky_relu and broadcast sums on {device}: as NumPy's")


if __name__ == "__main__":
    main()
