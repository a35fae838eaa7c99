/* SPDX-License-Identifier: Apache-2.0 */
/* batched_matmul(x, y)[b, i, j] = sum_k x[b, i, k] y[b, k, j], for many small matrices.
 * x: T[*batch, m, k], y: T[*batch, k, n] -> T[*batch, m, n]. T: float16, float32. On the GPU, sums
 * are computed in float32: up to 16 parts of k are summed into a workspace, and a second kernel
 * adds them up, always in the same order. On the host, they are computed in float64. */
#include <cuda_fp16.h>
#include <cuplug/plugin.hpp>

constexpr int THREADS = 256;

/* partial[part, b, i, j] = the sum over one part of k, a thread for each. */
template <typename T>
__global__ void parts_kernel(const T *__restrict__ x, const T *__restrict__ y, float *partial,
                             int64_t n_out, int64_t n_parts, int64_t m, int64_t k, int64_t n) {
  const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (at >= n_parts * n_out) return;
  const int64_t part = at / n_out, row = at % n_out / n, j = at % n, b = row / m;
  const int64_t end = (part + 1) * k / n_parts;
  float sum = 0;
  for (int64_t l = part * k / n_parts; l < end; l++)
    sum += (float)x[row * k + l] * (float)y[(b * k + l) * n + j];
  partial[at] = sum;
}

template <typename T>
__global__ void sum_kernel(const float *__restrict__ partial, T *out, int64_t n_out,
                           int64_t n_parts) {
  const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (at >= n_out) return;
  float sum = 0;
  for (int64_t part = 0; part < n_parts; part++) sum += partial[part * n_out + at];
  out[at] = (T)sum;
}
/* ---- beyond the kernel ---- */
CUPLUG_TYPED_OPERATOR(batched_matmul,
                      "batched_matmul(x: T[*batch, m, k], y: T[*batch, k, n]) -> T[*batch, m, n] "
                      "where T: float16 | float32",
                      "The products of many small matrices.");

CUPLUG_CUDA_ENTRY(batched_matmul, (T), x, y, m, k, n, out) {
  const int64_t parts = k < 64 ? 1 : k < 1024 ? k / 64 : 16, size = out.size();
  float *partial = call.workspace<float>(parts * size);
  if (!partial) return CUPLUG_ERROR_MEMORY;
  if (int status = call.launch<parts_kernel<T>>({cuplug::blocks(parts * size, THREADS), THREADS}, x,
                                                y, partial, size, parts, m, k, n))
    return status;
  return call.launch<sum_kernel<T>>({cuplug::blocks(size, THREADS), THREADS}, partial, out, size,
                                    parts);
}

CUPLUG_HOST_ENTRY(batched_matmul, (T), x, y, m, k, n, out) {
  double *sum = call.workspace<double>(n);
  if (!sum) return CUPLUG_ERROR_MEMORY;
  for (int64_t row = 0; row * n < out.size(); row++) {
    const T *matrix = y + row / m * k * n;
    for (int64_t j = 0; j < n; j++) sum[j] = 0;
    for (int64_t l = 0; l < k; l++)
      for (int64_t j = 0; j < n; j++)
        sum[j] += (double)(float)x[row * k + l] * (float)matrix[l * n + j];
    for (int64_t j = 0; j < n; j++) out[row * n + j] = (T)(float)sum[j];
  }
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(batched_matmul, "1.0.0");
