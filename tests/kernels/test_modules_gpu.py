# SPDX-License-Identifier: Apache-2.0
"""`cuplug.compile` on a GPU: properties that the emulated driver does not have."""

import math
from collections import namedtuple

import cuplug
import numpy as np
import pytest
from emulated_driver import SCALE, need_nvrtc

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def nvrtc():
    """Skip the test if NVRTC is not installed."""
    need_nvrtc()


@pytest.mark.sanitizer
def test_on_a_gpu():
    module = cuplug.compile(SCALE, names=[f"scale<{n}>" for n in (1, 2, 4, 8)])
    for n in (1, 2, 4, 8):
        x = np.arange(1000, dtype=np.float32)
        device = cuplug.asarray(x)
        module[f"scale<{n}>"][-(-1000 // (n * 128)), 128](device, 0.5, x.size)
        np.testing.assert_array_equal(device.numpy(), x / 2)
        module[f"scale<{n}>"][-(-1000 // (n * 128)), 128](cuplug.InOut(x), 2, x.size)
        np.testing.assert_array_equal(x, 2 * np.arange(1000, dtype=np.float32))


def test_parameter_types_agree_with_the_driver():
    """Types with padding, of each size: the compiler reports them, and the driver loads them."""
    source = """
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    struct s { char c; double d; };
    extern "C" __global__ void f(bool a, char b, short c, int d, long long e, float g, double h,
                                 __half i, __nv_bfloat16 j, s k, void *l, double *out) {
      out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = (double)e; out[5] = g; out[6] = h;
      out[7] = (float)i; out[8] = (float)j; out[9] = k.c; out[10] = k.d; out[11] = l == nullptr;
    }
    """
    kernel = cuplug.compile(source)["f"]
    out = np.empty(12)
    s = np.array((3, 2.5), np.dtype([("c", np.int8), ("d", np.float64)], align=True))
    kernel[1, 1](True, -2, 3, -4, 5, 0.5, 0.25, 1.5, -1.5, s, None, cuplug.Out(out))
    np.testing.assert_array_equal(out, [1, -2, 3, -4, 5, 0.5, 0.25, 1.5, -1.5, 3, 2.5, 1])


def test_shared_memory_on_a_gpu():
    source = """
    extern "C" __global__ void f(int *out, int n) {
      extern __shared__ int buffer[];
      for (int i = threadIdx.x; i < n; i += blockDim.x) buffer[i] = i;
      __syncthreads();
      for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = buffer[n - 1 - i];
    }
    """
    kernel = cuplug.compile(source)["f"]
    for n in (100, 20000, 3000):  # 80,000 bytes: beyond what needs no opt-in
        out = np.empty(n, np.int32)
        kernel[1, 256, 4 * n](cuplug.Out(out), n)
        np.testing.assert_array_equal(out, np.arange(n)[::-1])
    most = kernel.attributes().max_dynamic_shared_bytes
    with pytest.raises(ValueError, match=f"expected at most {most}"):
        kernel[1, 256, most + 4](cuplug.Out(out), 1)
    assert kernel.max_active_blocks(256) >= 1
    threads, blocks = kernel.suggest_block()
    assert 32 <= threads <= 1024
    assert blocks >= 1


def test_globals_on_a_gpu():
    source = """
    __constant__ float coefficients[4];
    __device__ int total;
    extern "C" __global__ void f(float *x) {
      x[threadIdx.x] = coefficients[threadIdx.x];
      atomicAdd(&total, 1);
    }
    """
    module = cuplug.compile(source)
    module.global_("coefficients", "float32").set([1, 2, 3, 4])
    x = np.empty(4, np.float32)
    module["f"][1, 4](cuplug.Out(x))
    np.testing.assert_array_equal(x, [1, 2, 3, 4])
    assert module.global_("total", "int32").numpy() == 4


def test_torch_stream_and_graph():
    torch = pytest.importorskip("torch")
    scale = cuplug.compile(SCALE, names=["scale<1>"])["scale<1>"]
    x = torch.ones(1 << 20, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x.mul_(3)
        scale[4096, 256](x, 2, x.numel())
        x.add_(1)
    stream.synchronize()
    assert bool((x == 7).all())
    scale[4096, 256, 0, stream](x, 2, x.numel())
    torch.cuda.synchronize()
    assert bool((x == 14).all())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scale[4096, 256](x, 0.5, x.numel())
    x.fill_(8)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    assert bool((x == 1).all())


RELU = r"""
extern "C" __global__ void relu_forward(float *y, const float *x, int num) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < num) y[i] = x[i] > 0 ? x[i] : 0;
}
extern "C" __global__ void relu_backward(float *grad_x, const float *grad_y, const float *x,
                                         int num) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < num) grad_x[i] = x[i] > 0 ? grad_y[i] : 0;
}
"""


def test_ptx_launched_with_addresses_in_an_autograd_function():
    """A program for PTX text and launches with addresses; two of its lines use cuplug."""
    torch = pytest.importorskip("torch")
    Stream = namedtuple("Stream", ["ptr"])
    ptx = cuplug.compile(RELU, name="relu.cu").ptx
    m = cuplug.load_image(ptx.encode())

    def launch(name, *args):
        num = args[-1]
        block = min(num, 512)
        grid = (math.ceil(num / block), 1)
        stream = Stream(ptr=torch.cuda.current_stream().cuda_stream)
        m[name][grid, (block, 1), 0, stream](*args)

    class ReLU(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            y = torch.empty_like(x)
            launch("relu_forward", *[y.data_ptr(), x.data_ptr(), x.numel()])
            return y

        @staticmethod
        def backward(ctx, grad_y):
            (x,) = ctx.saved_tensors
            grad_x = torch.empty_like(x)
            launch("relu_backward", grad_x.data_ptr(), grad_y.data_ptr(), x.data_ptr(), x.numel())
            return grad_x

    for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            x = torch.randn(2000, 3, device="cuda", requires_grad=True)
            weights = torch.rand_like(x)
            y = ReLU.apply(x)
            (y * weights).sum().backward()
            assert torch.equal(y, torch.relu(x))
            assert torch.equal(x.grad, torch.where(x > 0, weights, 0))


def test_cupy_arrays():
    cupy = pytest.importorskip("cupy")
    scale = cuplug.compile(SCALE, names=["scale<1>"])["scale<1>"]
    x = cupy.ones(1000, cupy.float32)
    scale[4, 256](x, 2, x.size)
    scale[4, 256](x.data, 2, x.size)
    scale[4, 256](x.data.ptr + 4 * 500, 2, 500)
    np.testing.assert_array_equal(cupy.asnumpy(x), np.where(np.arange(1000) < 500, 4, 8))


@pytest.mark.sanitizer
def test_temporaries_live_until_the_kernel_is_done():
    """Their memory is released in the order of the kernel's stream."""
    torch = pytest.importorskip("torch")
    source = """
    extern "C" __global__ void add(const float *x, float *sum) {
      const long long start = clock64();
      while (clock64() - start < 20000) {}
      atomicAdd(sum, x[threadIdx.x]);
    }
    """
    kernel = cuplug.compile(source)["add"]
    total = cuplug.asarray(np.zeros(1, np.float32))
    for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
        for k in range(100):
            value = np.full(32, k, np.float32)
            kernel[1, 32, 0, stream](cuplug.asarray(value), total)
            kernel[1, 32, 0, stream](cuplug.In(value), total)
            kernel[1, 32](torch.from_numpy(value).cuda(), total)
    assert total.numpy()[0] == 2 * 3 * 32 * sum(range(100))


def test_numpy_scalars_on_a_gpu():
    scale = cuplug.compile(SCALE, names=["scale<1>"])["scale<1>"]
    x = cuplug.asarray(np.ones(100, np.float32))
    launch = scale[1, 128]
    for factor in (np.float32(2), np.float64(2), np.int8(2), 2, 2.0):
        launch(x, factor, np.int32(100))
    np.testing.assert_array_equal(x.numpy(), np.full(100, 32, np.float32))
