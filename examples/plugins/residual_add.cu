/* SPDX-License-Identifier: Apache-2.0 */
/* residual_add(x, y) = x + y                                           x, y: T[*n] -> T[*n]
 * T: float16, bfloat16, float32; the sum is rounded once. Each element is read and written once.
 * Source: He et al., Deep Residual Learning for Image Recognition, arXiv:1512.03385, equation 1. */
#include "block.cuh"

template <int WIDTH, typename T>
__global__ void __launch_bounds__(THREADS)
    add_kernel(const T *__restrict__ x, const T *__restrict__ y, T *out, int64_t n) {
  using P = pack<T, WIDTH>;
  const int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n / WIDTH; at += step) {
    P sum = reinterpret_cast<const P *>(x)[at];
    const P other = reinterpret_cast<const P *>(y)[at];
#pragma unroll
    for (int k = 0; k < WIDTH; k++) sum.value[k] = (T)((float)sum.value[k] + (float)other.value[k]);
    reinterpret_cast<P *>(out)[at] = sum;
  }
}
/* ---- beyond the kernel ---- */
CUPLUG_TYPED_OPERATOR(residual_add,
                      "residual_add(x: T[*n], y: T[*n]) -> T[*n] "
                      "where T: float16 | bfloat16 | float32",
                      "The sum of two arrays of one shape." CUPLUG_LINEAR(x, y));

CUPLUG_CUDA_ENTRY(residual_add, (T), x, y, out) {
  const auto launch = [=](auto width) {
    return call.launch<add_kernel<width, T>>({cuplug::blocks(x.size() / width, THREADS), THREADS},
                                             x, y, out, x.size());
  };
  return in_packs<T>(x.size(), launch, x.data(), y.data(), out.data());
}

CUPLUG_HOST_ENTRY(residual_add, (T), x, y, out) {
  for (int64_t i = 0; i < x.size(); i++) out[i] = (T)((float)x[i] + (float)y[i]);
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(residual_add, "1.0.0");
