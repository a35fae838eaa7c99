/* SPDX-License-Identifier: Apache-2.0 */
/* gelu(x) = x (1 + tanh(u)) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3)           x: T[...] -> T[...]
 * gelu_backward(grad, x) = grad d gelu(x) / dx
 *                        = grad (1 + tanh u + x (1 - tanh^2 u) du/dx) / 2 grad, x: T[...] -> T[...]
 * T: float16, bfloat16, float32, computed as float32. Each element is read and written once.
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
CUPLUG_TYPED_OPERATOR(
    gelu, "gelu(x: T[...]) -> T[...] where T: float16 | bfloat16 | float32",
    "The Gaussian error linear unit, by its tanh approximation." CUPLUG_GRADIENT(gelu_backward));
CUPLUG_TYPED_OPERATOR(gelu_backward,
                      "gelu_backward(grad: T[*n], x: T[*n]) -> T[*n] "
                      "where T: float16 | bfloat16 | float32",
                      "The gradient of gelu." CUPLUG_LINEAR(grad));

template <typename F, typename T>
int launch(cuplug::call call, const T *grad, const T *x, T *out, int64_t n) {
  const auto launch = [=](auto width) {
    return call.launch<gelu_kernel<width, T, F>>({cuplug::blocks(n / width, THREADS), THREADS},
                                                 grad, x, out, n);
  };
  return in_packs<T>(n, launch, grad, x, out);
}

CUPLUG_CUDA_ENTRY(gelu, (T), x, out) { return launch<forward, T>(call, nullptr, x, out, x.size()); }
CUPLUG_CUDA_ENTRY(gelu_backward, (T), grad, x, out) {
  return launch<backward, T>(call, grad, x, out, x.size());
}

CUPLUG_HOST_ENTRY(gelu, (T), x, out) {
  for (int64_t i = 0; i < x.size(); i++) out[i] = (T)forward()((float)x[i]);
  return CUPLUG_OK;
}
CUPLUG_HOST_ENTRY(gelu_backward, (T), grad, x, out) {
  for (int64_t i = 0; i < x.size(); i++) out[i] = (T)(backward()((float)x[i]) * (float)grad[i]);
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(gelu, "1.0.0");
