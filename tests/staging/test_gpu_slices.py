# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays offloaded to a GPU: split along loop dimensions, strided, broadcast, unaligned."""

import io
import sys

import cuplug
import numpy as np
import pytest
from cuplug.ops import relu

pytestmark = pytest.mark.gpu

ADD_ROW = """
#include <cuplug/plugin.h>

__global__ void add_row_kernel(const float *x, const float *y, float *out, int64_t n, int64_t m) {
  int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
    out[i] = x[i] + y[i % m];
}

CUPLUG_ENTRY int add_row_cuda(const cuplug_call *call) {
  const cuplug_tensor *x = call->tensors;
  int64_t n = cuplug_n_elements(x);
  if (!n) return CUPLUG_OK;
  add_row_kernel<<<1024, 256, 0, (cudaStream_t)call->stream>>>(
      (const float *)x[0].data, (const float *)x[1].data, (float *)x[2].data, n, x[1].shape[0]);
  return cuplug_launched(call);
}

CUPLUG_CUDA_OPERATOR(add_row_cuda,
                                   "add_row(x: float32[..., n], y: float32[n]) -> float32[..., n]",
                                   "x + y for each row.");
CUPLUG_PLUGIN(rows, "1.0.0");
"""


@pytest.fixture(scope="module")
def add_row(build_plugin):
    """Return an operator with a shared array, only for the GPU."""
    return cuplug.load(build_plugin(ADD_ROW, "rows", cuda=True)).add_row


def numbers(*shape: int) -> np.ndarray:
    """Return float32 numbers of both signs."""
    return np.random.default_rng(0).standard_normal(shape, np.float32)


@pytest.mark.sanitizer
@pytest.mark.parametrize("shape", [(3, 5), (1 << 16, 100), (9, 7, 50021), (3, 4 << 20)])
def test_rows(add_row, shape):
    x, y = numbers(*shape), numbers(shape[-1])
    assert np.array_equal(add_row(x, y), x + y)
    assert np.array_equal(add_row(x[..., ::-1], y), x[..., ::-1] + y)
    assert np.array_equal(add_row(np.asfortranarray(x), y[::-1]), x + y[::-1])


@pytest.mark.sanitizer
def test_layouts():
    x = numbers(3000, 4001)
    unaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape)
    unaligned[...] = x
    x.flags.writeable = False
    for y in x, x.T, x[::-2, 1:-1], unaligned, np.broadcast_to(x[:, :1], x.shape):
        assert np.array_equal(relu(y, device="cuda"), np.maximum(y, 0))


@pytest.mark.sanitizer
@pytest.mark.parametrize("n", [(1 << 18) - 1, 1 << 18, (1 << 19) + 1, (1 << 20) - 1, 1 << 20])
def test_around_one_and_four_mib(add_row, n):
    """Copies in slices, and of shared arrays, by one thread and by several."""
    x, y = numbers(3, n), numbers(n)
    assert np.array_equal(relu(y[::-1], device="cuda"), np.maximum(y[::-1], 0))
    assert np.array_equal(relu(x[1], device="cuda"), np.maximum(x[1], 0))
    assert np.array_equal(add_row(x[:1], y), x[:1] + y)
    assert np.array_equal(add_row(x, x[2, ::-1]), x + x[2, ::-1])
    out = np.full(n + 2, 7, np.float32)
    relu(y, out=out[1:-1], device="cuda")
    assert np.array_equal(out, np.pad(np.maximum(y, 0), 1, constant_values=7))


def test_progress(monkeypatch):
    x = numbers(1 << 20)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with cuplug.progress():
        assert np.array_equal(cuplug.asarray(x).numpy(), x)
        assert np.array_equal(relu(x, device="cuda"), np.maximum(x, 0))


@pytest.mark.large
def test_larger_than_most_of_the_memory(add_row):
    """Rows of 1 GiB: none fits a slice, and the GPU has no room for all of them."""
    taken = []
    with pytest.raises(MemoryError):
        while True:
            taken.append(cuplug.empty((4 << 30,), np.uint8, "cuda"))
    del taken[-2:]
    cuplug.synchronize()
    x, y = np.ones((6, 1 << 28), np.float32), np.full(1 << 28, 2, np.float32)
    assert (add_row(x, y) == 3).all()
