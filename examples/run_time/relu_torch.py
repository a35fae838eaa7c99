# SPDX-License-Identifier: Apache-2.0
"""relu with its gradient from a string, on PyTorch tensors, on PyTorch's current stream."""

from functools import cache

import cuplug
import torch

SOURCE = """
extern "C" __global__ void relu(const float *x, float *y, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
extern "C" __global__ void relu_backward(const float *x, const float *dy, float *dx, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) dx[i] = x[i] > 0 ? dy[i] : 0;
}
"""
N_THREADS = 256


class Relu(torch.autograd.Function):
    """The two kernels as a function that PyTorch differentiates."""

    @staticmethod
    def forward(context, x):
        """Compute y = max(x, 0)."""
        context.save_for_backward(x)
        y = torch.empty_like(x)
        launch("relu", x, y)
        return y

    @staticmethod
    def backward(context, dy):
        """Compute dx = dy where x > 0."""
        (x,) = context.saved_tensors
        dx = torch.empty_like(x)
        launch("relu_backward", x, dy.contiguous(), dx)
        return dx


@cache
def module() -> cuplug.Module:
    """Compile both kernels, once."""
    return cuplug.compile(SOURCE, name="relu.cu")


def launch(name: str, *tensors: torch.Tensor) -> None:
    """Run a kernel, one thread for each element."""
    n = tensors[0].numel()
    module()[name][-(-n // N_THREADS), N_THREADS](*[x.detach() for x in tensors], n)


def main() -> torch.Tensor:
    """Compare with PyTorch's own, on a stream that is not the default one."""
    with torch.cuda.stream(torch.cuda.Stream()):
        x = torch.randn(1000, 300, device="cuda", requires_grad=True)
        y = Relu.apply(x)
        y.square().sum().backward()
        assert torch.equal(y, torch.relu(x))
        assert torch.equal(x.grad, 2 * torch.relu(x))
        return y.detach()


if __name__ == "__main__":
    print(main())
