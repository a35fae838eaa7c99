# SPDX-License-Identifier: Apache-2.0
"""A kernel that doubles a 4 x 4 array, three ways: an array of its own on the GPU, a NumPy array
that goes there and back, and a launch that is kept."""

import cuplug
import numpy as np

SOURCE = """
extern "C" __global__ void double_array(float *x) {
  const int i = threadIdx.x + threadIdx.y * 4;
  x[i] *= 2;
}
"""


def main() -> np.ndarray:
    """Double an array three times and return it."""
    kernel = cuplug.compile(SOURCE, name="double_array.cu")["double_array"]
    x = np.arange(16, dtype=np.float32).reshape(4, 4)

    on_gpu = cuplug.asarray(x)  # explicit: copied once, stays there
    kernel[1, (4, 4)](on_gpu)
    y = on_gpu.numpy()
    assert np.array_equal(y, 2 * x)

    kernel[1, (4, 4)](cuplug.InOut(y))  # copied there and back
    assert np.array_equal(y, 4 * x)

    launch = kernel[1, (4, 4)]  # checked once, called often
    launch(on_gpu)
    launch(on_gpu)
    assert np.array_equal(on_gpu.numpy(), 8 * x)
    return on_gpu.numpy()


if __name__ == "__main__":
    print(main())
