# SPDX-License-Identifier: Apache-2.0
"""Launches with more than a grid: cooperative ones, clusters, programmatic launches."""

import cuplug
import numpy as np
import pytest

SOURCE = """
#include <cooperative_groups.h>
#include <cuplug/plugin.hpp>
namespace cg = cooperative_groups;

/* All blocks have written their part before any of them reads those of the others. */
__global__ void shares_kernel(const float *x, float *part, float *y, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&part[blockIdx.x], x[i]);
  cg::this_grid().sync();
  float sum = 0;
  for (unsigned b = 0; b < gridDim.x; b++) sum += part[b];
  if (i < n) y[i] = x[i] / sum;
}

__global__ void clear_kernel(float *part, unsigned n) {
  if (threadIdx.x < n) part[threadIdx.x] = 0;
}

CUPLUG_TYPED_CUDA_OPERATOR(shares, "shares(x: float32[n]) -> float32[n]", "x / sum(x).");
CUPLUG_CUDA_ENTRY(shares, x, n, out) {
  const unsigned n_blocks = (unsigned)cuplug::blocks(n, 256);
  float *part = call.workspace<float>(n_blocks);
  if (!part) return CUPLUG_ERROR_MEMORY;
  if (int status = call.launch<clear_kernel>({1, 256}, part, n_blocks)) return status;
  return call.launch<shares_kernel>(cuplug::grid(n_blocks, 256).cooperative(), x, part, out, n);
}

/* Each block takes what the other one of its cluster has in its shared memory. */
__global__ void swap_kernel(const int *x, int *y) {
  __shared__ int own[64];
  cg::cluster_group cluster = cg::this_cluster();
  own[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  cluster.sync();
  const int *other = cluster.map_shared_rank(own, cluster.block_rank() ^ 1);
  y[blockIdx.x * 64 + threadIdx.x] = other[threadIdx.x];
  cluster.sync();
}

CUPLUG_TYPED_CUDA_OPERATOR(swap_blocks, "swap_blocks(x: int32[n]) -> int32[n] where n % 128 == 0",
                      "Neighbouring blocks of 64, swapped.");
CUPLUG_CUDA_ENTRY(swap_blocks, x, n, out) {
  return call.launch<swap_kernel>(cuplug::grid((unsigned)(n / 64), 64).in_clusters(2), x, out);
}

__global__ void slow_kernel(const float *x, float *y, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < 100; k++) __nanosleep(1000);
  if (i < n) y[i] = x[i] + 1;
}

/* May begin while the kernel ahead runs; waits for what that has written. */
__global__ void next_kernel(const float *x, float *y, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  cudaGridDependencySynchronize();
  if (i < n) y[i] = 2 * x[i];
}

CUPLUG_TYPED_CUDA_OPERATOR(follow, "follow(x: float32[n]) -> float32[n]", "2 (x + 1).");
CUPLUG_CUDA_ENTRY(follow, x, n, out) {
  float *between = call.workspace<float>(n);
  if (!between) return CUPLUG_ERROR_MEMORY;
  if (int status = call.launch<slow_kernel>({cuplug::blocks(n, 256), 256}, x, between, n))
    return status;
  return call.launch<next_kernel>(cuplug::grid(cuplug::blocks(n, 256), 256).programmatic(), between,
                                  out, n);
}
CUPLUG_PLUGIN(launches, "1.0.0");
"""


@pytest.fixture(scope="module")
def launches(build_plugin):
    """Return the operators; they need compute capability 9.0."""
    path = build_plugin(SOURCE, "launches", cuda=True, extra=["-arch=sm_90"])
    return cuplug.load(path)


@pytest.mark.slow
def test_they_compile(launches):
    assert [operator.device_types for operator in launches.operators] == [("cuda",)] * 3


@pytest.mark.gpu
@pytest.mark.sanitizer
def test_cooperative(launches):
    x = np.random.default_rng(0).random(20_000, np.float32)
    np.testing.assert_allclose(launches.shares(x), x / x.sum(), rtol=1e-4)


@pytest.mark.gpu
def test_a_cooperative_launch_that_does_not_fit_is_refused(launches):
    """No GPU runs a million blocks at once, which would wait for each other without end."""
    with pytest.raises(cuplug.CudaError, match="shares: .*cooperative"):
        launches.shares(cuplug.empty(256 << 20, "float32"))


@pytest.mark.gpu
@pytest.mark.sanitizer
def test_clusters(launches):
    x = np.arange(128 * 300, dtype=np.int32)
    assert np.array_equal(launches.swap_blocks(x), x.reshape(300, 2, 64)[:, ::-1].ravel())


@pytest.mark.gpu
@pytest.mark.sanitizer
def test_programmatic_launches(launches):
    x = np.random.default_rng(0).random(100_000, np.float32)
    assert np.array_equal(launches.follow(x), 2 * (x + 1))
