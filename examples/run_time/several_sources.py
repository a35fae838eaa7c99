# SPDX-License-Identifier: Apache-2.0
"""A module of several sources. Each is compiled separately, and uses a function that another
defines. They are optimized as a whole, so that the function is inlined."""

import cuplug
import numpy as np

CURVE = """
__constant__ float slope;
__device__ float curve(float x) { return x < 0 ? slope * x : x; }
"""

APPLY = """
extern __device__ float curve(float);
template <int N> __global__ void apply(float *x, int n) {
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
  for (int i = first; i < first + N && i < n; i++) x[i] = curve(x[i]);
}
"""


def main() -> np.ndarray:
    """Apply a function of one source with the kernel of another."""
    sources = {"curve.cu": CURVE, "apply.cu": APPLY}
    module = cuplug.compile(sources, names=["apply<4>"], name="curves")
    module.global_("slope", "float32").set(0.5)
    x = np.linspace(-1, 1, 1000, dtype=np.float32)
    y = x.copy()
    module["apply<4>"][2, 128](cuplug.InOut(y), y.size)
    assert np.array_equal(y, np.where(x < 0, x * np.float32(0.5), x))
    assert "call" not in module.ptx
    return y


if __name__ == "__main__":
    print(main())
