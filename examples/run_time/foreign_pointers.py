# SPDX-License-Identifier: Apache-2.0
"""Device memory handed to and taken from other libraries, without a copy: arrays with the
`__cuda_array_interface__`, addresses as ints, objects that know their address, CuPy."""

import cuplug
import numpy as np

SOURCE = """
extern "C" __global__ void increase(float *x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}
"""


class ForeignArray:
    """An array as PyCUDA has it: `gpudata` is the memory, whose `int` is the address."""

    def __init__(self, x: cuplug.Array) -> None:
        self.owner = x
        self.gpudata = x.data_ptr


def main() -> np.ndarray:
    """Increase the same memory through each of them."""
    increase = cuplug.compile(SOURCE, name="increase.cu")["increase"][1, 32]
    x = cuplug.asarray(np.zeros(8, np.float32))
    increase(x, 8)
    increase(ForeignArray(x), 8)
    increase(x.data_ptr, 8)
    increase(x.data_ptr + 4 * 4, 4)  # from the fifth element on
    assert np.array_equal(x.numpy(), [3] * 4 + [4] * 4)
    theirs = ForeignArray(x)
    part = cuplug.from_pointer(theirs.gpudata + 4 * 4, 4, "float32", x.device, owner=theirs)
    increase(part, 4)
    part.set(2 * part.numpy())  # into the memory that is there
    assert np.array_equal(x.numpy(out=np.empty(8, np.float32)), [3] * 4 + [10] * 4)
    return x.numpy()


def with_cupy() -> np.ndarray:
    """The same with CuPy: its arrays, its memory, and our memory as its array."""
    import cupy

    increase = cuplug.compile(SOURCE, name="increase.cu")["increase"][1, 32]
    x = cupy.zeros(8, cupy.float32)
    increase(x, 8)
    increase(x.data, 8)
    increase(x.data.ptr, 8)
    ours = cuplug.asarray(np.zeros(8, np.float32))
    theirs = cupy.asarray(ours)
    assert theirs.data.ptr == ours.data_ptr
    increase(theirs, 8)
    assert np.array_equal(ours.numpy(), np.ones(8))
    assert np.array_equal(cupy.asnumpy(x), [3] * 8)
    return cupy.asnumpy(x)


if __name__ == "__main__":
    print(main())
