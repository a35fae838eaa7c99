/* SPDX-License-Identifier: Apache-2.0 */
/* gelu(x) = x (1 + tanh(u)) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3)           x: T[...] -> T[...]
 * gelu_backward(grad, x) = grad d gelu(x) / dx
 *                        = grad (1 + tanh u + x (1 - tanh^2 u) du/dx) / 2 grad, x: T[...] -> T[...]
 * T: float16, bfloat16, float32, computed with as float32. Each element is read and written once.
 * Source: Hendrycks and Gimpel, Gaussian Error Linear Units, arXiv:1606.08415, section 2. */
#include "block.cuh"

struct forward {
  __host__ __device__ float operator()(float x) const {
    return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
  }
};

struct backward {
  __host__ __device__ float operator()(float x) const {
    const float t = tanhf(0.79788456f * (x + 0.044715f * x * x * x));
    const float slope = 0.79788456f * (1 + 3 * 0.044715f * x * x);
    return 0.5f * (1 + t + (t * t < 1 ? x * (1 - t * t) * slope : 0));
  }
};

/* out = f(x), times grad where there is one. */
template <int WIDTH, typename T, typename F>
__global__ void __launch_bounds__(THREADS)
    gelu_kernel(const T *__restrict__ grad, const T *__restrict__ x, T *out, int64_t n) {
  using P = pack<T, WIDTH>;
  const int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n / WIDTH; at += step) {
    P value = reinterpret_cast<const P *>(x)[at], factor = value;
    if (grad) factor = reinterpret_cast<const P *>(grad)[at];
#pragma unroll
    for (int k = 0; k < WIDTH; k++)
      value.value[k] = (T)(F()((float)value.value[k]) * (grad ? (float)factor.value[k] : 1.0f));
    reinterpret_cast<P *>(out)[at] = value;
  }
}
/* ---- beyond the kernel ---- */
template <typename F> struct of {
  template <typename T> static int on_cuda(const cuplug_call *call) {
    const bool has_grad = call->n_tensors == 3;
    const T *grad = has_grad ? cuplug_data<T>(call, 0) : nullptr;
    const T *x = cuplug_data<T>(call, has_grad);
    T *out = cuplug_data<T>(call, 1 + has_grad);
    const int64_t n = cuplug_n_elements(&call->tensors[0]);
    const auto launch = [=](auto width) {
      const unsigned blocks = cuplug_n_blocks(n / width, THREADS);
      return cuplug_launch<gelu_kernel<width, T, F>>(call, blocks, THREADS, 0, grad, x, out, n);
    };
    return in_packs<T>(n, launch, grad, x, out);
  }

  template <typename T> static int on_host(const cuplug_call *call) {
    const bool has_grad = call->n_tensors == 3;
    const T *grad = cuplug_data<T>(call, 0), *x = cuplug_data<T>(call, has_grad);
    T *out = cuplug_data<T>(call, 1 + has_grad);
    for (int64_t i = 0; i < cuplug_n_elements(&call->tensors[0]); i++)
      out[i] = (T)(F()((float)x[i]) * (has_grad ? (float)grad[i] : 1.0f));
    return CUPLUG_OK;
  }
};

CUPLUG_TYPED_ENTRY(gelu_cuda, of<forward>::on_cuda, float, __half, __nv_bfloat16)
CUPLUG_TYPED_ENTRY(gelu_host, of<forward>::on_host, float, __half, __nv_bfloat16)
CUPLUG_TYPED_ENTRY(gelu_backward_cuda, of<backward>::on_cuda, float, __half, __nv_bfloat16)
CUPLUG_TYPED_ENTRY(gelu_backward_host, of<backward>::on_host, float, __half, __nv_bfloat16)

CUPLUG_OPERATOR(gelu_cuda, gelu_host,
                "gelu(x: T[...]) -> T[...] where T: float16 | bfloat16 | float32",
                "The Gaussian error linear unit, by its tanh approximation.");
CUPLUG_OPERATOR(gelu_backward_cuda, gelu_backward_host,
                "gelu_backward(grad: T[*n], x: T[*n]) -> T[*n] "
                "where T: float16 | bfloat16 | float32",
                "The gradient of gelu.");
CUPLUG_PLUGIN(gelu, "1.0.0");
