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
template <typename T> int on_cuda(const cuplug_call *call) {
  const T *x = cuplug_data<T>(call, 0), *y = cuplug_data<T>(call, 1);
  T *out = cuplug_data<T>(call, 2);
  const int64_t n = cuplug_n_elements(&call->tensors[0]);
  const auto launch = [=](auto width) {
    const unsigned blocks = cuplug_n_blocks(n / width, THREADS);
    return cuplug_launch<add_kernel<width, T>>(call, blocks, THREADS, 0, x, y, out, n);
  };
  return in_packs<T>(n, launch, x, y, out);
}

template <typename T> int on_host(const cuplug_call *call) {
  const T *x = cuplug_data<T>(call, 0), *y = cuplug_data<T>(call, 1);
  T *out = cuplug_data<T>(call, 2);
  for (int64_t i = 0; i < cuplug_n_elements(&call->tensors[0]); i++)
    out[i] = (T)((float)x[i] + (float)y[i]);
  return CUPLUG_OK;
}

CUPLUG_TYPED_ENTRY(residual_add_cuda, on_cuda, float, __half, __nv_bfloat16)
CUPLUG_TYPED_ENTRY(residual_add_host, on_host, float, __half, __nv_bfloat16)

CUPLUG_OPERATOR(residual_add_cuda, residual_add_host,
                "residual_add(x: T[*n], y: T[*n]) -> T[*n] "
                "where T: float16 | bfloat16 | float32",
                "The sum of two arrays of one shape.");
CUPLUG_PLUGIN(residual_add, "1.0.0");
