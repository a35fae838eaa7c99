# SPDX-License-Identifier: Apache-2.0
"""An expression broadcasts: (512, 128) and (32, 64, 128) with (128,), without copies."""

import cuplug
import numpy as np

add = cuplug.elementwise("add(a: T, b: T) -> T", "a + b")


def places() -> list[str]:
    """Return the CPU, and the GPU if there is one."""
    try:
        cuplug.devices()
    except cuplug.CudaError:
        return ["cpu"]
    return ["cpu", "cuda"]


def main() -> None:
    """Compare with NumPy on the CPU, and on the GPU if there is one."""
    random = np.random.default_rng(0)
    b = random.standard_normal(128, np.float32)
    for shape in ((512, 128), (32, 64, 128)):
        a = random.standard_normal(shape, np.float32)
        for device in places():
            y = add(a, b, device=device)
            np.testing.assert_array_equal(y, a + b)
            print(f"{a.shape} + {b.shape} on {device}: {y.shape}")


if __name__ == "__main__":
    main()
