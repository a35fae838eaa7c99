# SPDX-License-Identifier: Apache-2.0
"""A kernel that gets structs: arrays of different lengths, each by a pointer and a length; two
structs in memory of the GPU, only the second of these, and one by value."""

import cuplug
import numpy as np

SOURCE = """
struct span {
  int length;
  float *data;
};
__global__ void double_spans(const span *spans) {
  const span s = spans[blockIdx.x];
  for (int i = threadIdx.x; i < s.length; i += blockDim.x) s.data[i] *= 2;
}
__global__ void double_span(span s) {
  for (int i = threadIdx.x; i < s.length; i += blockDim.x) s.data[i] *= 2;
}
"""
# align=True lays the fields out as C does: `data` at byte 8.
SPAN = np.dtype([("length", np.int32), ("data", np.uint64)], align=True)


def span(x: cuplug.Array, first: int = 0) -> tuple[int, int]:
    """Return the fields of a struct for x[first:]."""
    return x.size - first, x.data_ptr + first * x.dtype.itemsize


def main() -> list[np.ndarray]:
    """Double two arrays, the second again, and the first from its fourth element on."""
    module = cuplug.compile(SOURCE, name="double_structs.cu")
    a = cuplug.asarray(np.arange(8, dtype=np.float32))
    b = cuplug.asarray(np.ones(3, np.float32))

    spans = cuplug.asarray(np.array([span(a), span(b)], SPAN), device="cuda")
    module["double_spans"][2, 32](spans)
    assert np.array_equal(a.numpy(), 2 * np.arange(8))
    assert np.array_equal(b.numpy(), [2, 2, 2])

    module["double_spans"][1, 32](spans[1:])
    assert np.array_equal(b.numpy(), [4, 4, 4])

    module["double_span"][1, 32](np.array(span(a, first=4), SPAN))  # one struct, by value
    assert np.array_equal(a.numpy(), [0, 2, 4, 6, 16, 20, 24, 28])
    return [a.numpy(), b.numpy()]


if __name__ == "__main__":
    print(*main(), sep="\n")
