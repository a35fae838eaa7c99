# SPDX-License-Identifier: Apache-2.0
"""A picture is read between its pixels through a texture, and a new one written to a surface."""

import cuplug
import numpy as np

SOURCE = """
__global__ void enlarge(cudaTextureObject_t small, cudaSurfaceObject_t large, int width, int height,
                        float factor) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const float value = tex2D<float>(small, (x + 0.5f) / factor, (y + 0.5f) / factor);
  surf2Dwrite(value, large, x * (int)sizeof(float), y);
}
"""


def main() -> np.ndarray:
    """Enlarge a ramp of 4 x 6 pixels four times, with linear interpolation."""
    enlarge = cuplug.compile(SOURCE, name="enlarge.cu")["enlarge"]
    ramp = np.add.outer(np.arange(4), np.arange(6)).astype(np.float32)
    small = cuplug.Texture(ramp, filter="linear")
    large = cuplug.Texture(np.zeros((16, 24), np.float32))
    enlarge[(2, 1), (16, 16)](small, large.surface, 24, 16, 4)
    result = large.numpy()
    x, y = ((np.arange(n) + 0.5) / 4 - 0.5 for n in (24, 16))
    wanted = np.add.outer(np.clip(y, 0, 3), np.clip(x, 0, 5))
    assert np.allclose(result, wanted, atol=1 / 64)  # the weights have 8 bits
    return result


if __name__ == "__main__":
    print(main())
