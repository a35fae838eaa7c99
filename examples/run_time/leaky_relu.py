# SPDX-License-Identifier: Apache-2.0
"""leaky_relu from an expression on 10,000 values: on the CPU, and on the GPU if there is one."""

import cuplug
import numpy as np

leaky_relu = cuplug.elementwise("leaky_relu(x: T, slope: T) -> T", "x > 0 ? x : slope * x")


def places() -> list[str]:
    """Return the CPU, and the GPU if there is one."""
    try:
        cuplug.devices()
    except cuplug.CudaError:
        return ["cpu"]
    return ["cpu", "cuda"]


def main(n: int = 10_000) -> np.ndarray:
    """Apply it to n values; return the result."""
    x = np.linspace(-1, 1, n, dtype=np.float32)
    expected = np.where(x > 0, x, np.float32(0.1) * x)
    for device in places():
        np.testing.assert_array_equal(leaky_relu(x, 0.1, device=device), expected)
    return expected


if __name__ == "__main__":
    print(main())
