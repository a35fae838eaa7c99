# SPDX-License-Identifier: Apache-2.0
"""Cooperative launches, clusters and programmatic launches of kernels from source: the driver calls
on the emulated driver, and the results on a GPU."""

import cuplug
import numpy as np
import pytest
from emulated_driver import need_nvrtc

GRID_SYNC = """
#include <cooperative_groups.h>
extern "C" __global__ void ring(int *x, int *y) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  int i = grid.thread_rank(), n = grid.size();
  x[i] = i;
  grid.sync();
  y[i] = x[(i + n / 2) % n];
}
"""

CLUSTER = """
#include <cooperative_groups.h>
extern "C" __global__ void swap(int *y) {
  __shared__ int mine;
  cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  if (!threadIdx.x) mine = blockIdx.x;
  cluster.sync();
  if (!threadIdx.x) y[blockIdx.x] = *cluster.map_shared_rank(&mine, cluster.block_rank() ^ 1);
  cluster.sync();
}
"""

PROGRAMMATIC = """
#include <cuda_device_runtime_api.h>
extern "C" __global__ void add(int *x) {
  cudaGridDependencySynchronize();
  x[threadIdx.x] += 1;
  cudaTriggerProgrammaticLaunchCompletion();
}
"""


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("cooperative=True", ["cooperative"]),
        ("cluster=2", ["cluster 2 1 1"]),
        ("cluster=(1, 2), programmatic=True", ["programmatic", "cluster 1 2 1"]),
        ("shared=1000, stream=1", []),
    ],
)
def test_what_the_driver_is_asked_for(run_kernels, tmp_path, given, wanted):
    body = f"""
    import os
    f = cuplug.compile("__global__ void f(int *x) {{ x[blockIdx.x] = gridDim.y; }}")["f"]
    x = cuplug.asarray(np.zeros(4, np.int32), device="cuda")
    launch = f.configure((4, 2), 32, {given})
    launch(x)
    np.testing.assert_array_equal(x.numpy(), [2] * 4)
    lines = open(os.environ["FAKE_CUDA_LOG"]).read().splitlines()
    asked = [line for line in lines if line.startswith(("cooperative", "cluster", "programmatic"))]
    assert asked == {wanted}, asked
    """
    run_kernels(body, FAKE_CUDA_LOG=str(tmp_path / "log"))


@pytest.mark.parametrize(
    ("configuration", "kind", "part"),
    [
        ("2113, 1024, cooperative=True", "ValueError",
         "f: grid: got 2113 blocks, expected at most 264: those of a cooperative launch"),
        ("(4, 3), 32, cluster=(2, 2)", "ValueError",
         "f: grid: got 3 blocks in dimension y, expected a multiple of the cluster's 2"),
        ("4, 32, cluster=(2, 0)", "ValueError", "expected a multiple of the cluster's 0"),
        ("4, 32, cluster='2'", "TypeError", "f: cluster: got str, expected an int"),
        ("4, 32, cluster=(1, 1, 1, 1)", "ValueError", "f: cluster: got 4 sizes, expected 1 to 3"),
    ],
)  # fmt: skip
def test_wrong_launches(run_kernels, configuration, kind, part):
    body = f"""
    f = cuplug.compile("__global__ void f() {{}}")["f"]
    raises({kind}, {part!r}, lambda: f.configure({configuration})())
    """
    run_kernels(body)


@pytest.mark.parametrize("given", ["cluster=2", "programmatic=True"])
def test_older_gpus(run_kernels, given):
    name = given.partition("=")[0]
    body = f"""
    f = cuplug.compile("__global__ void f() {{}}", architecture=80)["f"]
    raises(ValueError, "f: {name}: got a GPU of compute capability 8.0, expected 9.0 or newer",
           f.configure(2, 32, {given}))
    """
    run_kernels(body, FAKE_CUDA_CAPABILITY="80")


@pytest.mark.parametrize("source", [GRID_SYNC, CLUSTER, PROGRAMMATIC])
def test_they_compile(source):
    need_nvrtc()
    assert len(cuplug.compile(source, architecture="90")) == 1


@pytest.mark.gpu
@pytest.mark.sanitizer
def test_cooperative_on_a_gpu():
    need_nvrtc()
    n = 4 * 256
    x, y = np.zeros(n, np.int32), np.zeros(n, np.int32)
    ring = cuplug.compile(GRID_SYNC)["ring"]
    ring.configure(4, 256, cooperative=True)(cuplug.InOut(x), cuplug.Out(y))
    assert np.array_equal(y, np.roll(np.arange(n), -n // 2))
    with pytest.raises(ValueError, match="expected at most .*: those of a cooperative launch"):
        ring.configure(1 << 20, 256, cooperative=True)(None, None)


def need_hopper():
    need_nvrtc()
    if cuplug.devices()[0].compute_capability < 90:
        pytest.skip("needs compute capability 9.0")


@pytest.mark.gpu
def test_clusters_on_a_gpu():
    need_hopper()
    y = np.zeros(8, np.int32)
    cuplug.compile(CLUSTER)["swap"].configure(8, 32, cluster=2)(cuplug.Out(y))
    assert y.tolist() == [1, 0, 3, 2, 5, 4, 7, 6]


@pytest.mark.gpu
def test_programmatic_launches_on_a_gpu():
    need_hopper()
    x = cuplug.asarray(np.zeros(32, np.int32), device="cuda")
    launch = cuplug.compile(PROGRAMMATIC)["add"].configure(1, 32, programmatic=True)
    for _ in range(100):
        launch(x)
    assert np.array_equal(x.numpy(), np.full(32, 100))
