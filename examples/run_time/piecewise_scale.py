# SPDX-License-Identifier: Apache-2.0
"""A kernel with two scalars on 100,000 numbers: negative ones are scaled by another factor."""

import cuplug
import numpy as np

SOURCE = """
extern "C" __global__ void piecewise_scale(const float *x, float *y, float low, float high, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] < 0 ? low * x[i] : high * x[i];
}
"""


def main(n: int = 100_000) -> np.ndarray:
    """Scale n numbers; return the result."""
    kernel = cuplug.compile(SOURCE, name="piecewise_scale.cu")["piecewise_scale"]
    x = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    y = np.empty_like(x)
    n_threads = 256
    kernel[-(-n // n_threads), n_threads](cuplug.In(x), cuplug.Out(y), 0.1, 2.0, n)
    wanted = np.where(x < 0, np.float32(0.1) * x, np.float32(2) * x)
    np.testing.assert_array_equal(y, wanted)
    return y


if __name__ == "__main__":
    print(main())
