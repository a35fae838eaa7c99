# SPDX-License-Identifier: Apache-2.0
"""A second stream of an entry: after the work before the call, and before the work after it."""

import cuplug
import numpy as np
import pytest
from test_captures import CAPTURE

ORDER = ["cuEventRecord", "cuStreamWaitEvent"]
ENTRY = ["cuLaunchKernelEx", "cuStreamIsCapturing", *ORDER, *ORDER, "fake_cuda_launch", *ORDER]


def test_both_streams_are_ordered_and_the_second_is_used_again(run_streams):
    """Work is done only when it is waited for, so each missing order is found."""
    run_streams(
        f"""
    gpu.aside(a, out=out)
    before = counts().streams
    stream = make_stream()
    for k in range(3):
        gpu.increase(a, 1, stream=stream)
        names = calls(gpu.aside, a, out=out, stream=stream)
        first, end = names.index("cuMemAllocFromPoolAsync"), names.index("cuMemFreeAsync")
        assert names[first + 1 : end] == {ENTRY}, names
        assert np.array_equal(out.numpy(stream=stream), 9 * (x + k + 1))
    assert np.array_equal(gpu.aside(x, device="cuda"), 9 * x)
    assert counts().streams == before + 2  # and that of staging
    assert counts().misuses == 0
    """,
        FAKE_CUDA_LAZY="1",
    )


def test_the_call_waits_for_the_second_stream_after_a_failure_too(run_streams):
    run_streams(
        f"""
    with Raises(ValueError, "aside: fails: got True"):
        gpu.aside(a, True, out=out)
    assert open(log).read().split()[-4:] == {[*ENTRY[-3:], "cuCtxSetCurrent"]}
    assert np.array_equal(out.numpy(), 9 * x)
    assert counts().misuses == 0
    """,
        FAKE_CUDA_LAZY="1",
    )


def test_a_capture_has_its_own_second_stream(run_streams):
    """Calls in the capture share one; other calls never receive a captured stream."""
    run_streams(
        CAPTURE
        + """
    assert np.array_equal(gpu.aside(a).numpy(), 9 * x)
    other, before = cuplug.empty(x.shape, x.dtype, "cuda"), counts().streams
    with Captured() as graph:
        gpu.aside(a, out=out, stream=graph.stream)
        gpu.increase(out, 1, stream=graph.stream)
        gpu.aside(out, out=other, stream=graph.stream)
        gpu.aside(a, out=out)
        assert np.array_equal(out.numpy(), 9 * x)
    assert counts().streams == before + 2  # the captured one, and one of the call beside it
    graph.replay()
    assert np.array_equal(out.numpy(stream=graph.stream), 9 * x + 1)
    assert np.array_equal(other.numpy(stream=graph.stream), 81 * x + 9)
    gpu.aside(a, out=out)
    assert counts().streams == before + 2 and counts().misuses == 0
    """
    )


@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_second_stream_that_cannot_be_ordered(run_streams, call):
    run_streams(
        """
    with Raises(cuplug.CudaError, "aside: ordering two streams: CUDA error 999"):
        gpu.aside(a, out=out)
    gpu.aside(a, out=out)
    assert np.array_equal(out.numpy(), 9 * x) and counts().misuses == 0
    """,
        FAKE_CUDA_FAIL=f"cuEventRecord:{call}:999",
    )


def test_a_second_stream_that_cannot_be_made(run_streams):
    run_streams(
        """
    with Raises(cuplug.CudaError, "aside: making a second stream: CUDA error 999"):
        gpu.aside(a, out=out)
    """,
        FAKE_CUDA_FAIL="cuStreamCreate:1:999",
    )


def test_a_call_on_the_host_has_no_second_stream(run_fake):
    run_fake(
        """
    with Raises(cuplug.CudaError, "second_stream: got a call without a stream, expected one"):
        gpu.aside(x, device="cpu")
    """
    )


CUDA = """
#include <cuplug/plugin.hpp>

__global__ void scale(const float *x, float *out, long long n) {
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const long long end = clock64() + 20000; // without order, the other kernel reads too early
    while (clock64() < end) {}
    out[i] = 3 * x[i];
  }
}

CUPLUG_TYPED_CUDA_OPERATOR(aside, "aside(x: float32[n]) -> (y: float32[n], z: float32[n])",
                           "Nine times x on a second stream, three times x beside it.");
CUPLUG_CUDA_ENTRY(aside, x, n, y, z) {
  float *scratch = call.workspace<float>(n);
  if (!scratch) return CUPLUG_ERROR_MEMORY;
  scale<<<4, 256, 0, call.stream()>>>(x.data(), scratch, n);
  const cudaStream_t second = call.second_stream();
  if (!second) return CUPLUG_ERROR_CUDA;
  scale<<<4, 256, 0, second>>>(scratch, y.data(), n);
  scale<<<4, 256, 0, call.stream()>>>(x.data(), z.data(), n);
  return cuplug_launched(call);
}
CUPLUG_PLUGIN(aside, "1");
"""


@pytest.mark.gpu
@pytest.mark.sanitizer
def test_a_second_stream_on_a_gpu(build_plugin):
    aside = cuplug.load(str(build_plugin(CUDA, "aside", cuda=True))).aside
    values = np.arange(1 << 14, dtype=np.float32)
    x = cuplug.asarray(values, device="cuda")
    for stream in (None, cuplug.Stream(), cuplug.Stream(non_blocking=True)):
        y, z = aside(x, stream=stream)
        assert np.array_equal(y.numpy(stream=stream), 9 * values)
        assert np.array_equal(z.numpy(stream=stream), 3 * values)
    graph = cuplug.Graph()
    with graph:
        y, _ = aside(x)
        _, z = aside(y)
    for k in range(1, 4):
        x.set(np.full(1 << 14, k, np.float32))
        graph.launch()
        assert np.array_equal(z.numpy(), np.full(1 << 14, 27 * k, np.float32))
