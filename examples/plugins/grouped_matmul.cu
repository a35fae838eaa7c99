/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul(x, w, sizes): the first sizes[0] rows of x are multiplied by w[0], the next
 * sizes[1] rows by w[1], and so on: the products of a mixture of experts, whose rows are sorted by
 * expert.              x: T[m, k], w: T[g, k, n], sizes: int64[g] on the host -> y: T[m, n]
 * T: float32, float64. The entry reads the sizes on the host, and launches a kernel for each group
 * with rows. Sizes whose sum is not m raise ValueError. */
#include <cuplug/plugin.hpp>

template <typename T>
__global__ void grouped_matmul_kernel(const T *__restrict__ x, const T *__restrict__ w, T *y,
                                      int64_t rows, int64_t k, int64_t n) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < rows * n; i += step) {
    T sum = 0;
    for (int64_t j = 0; j < k; j++) sum += x[i / n * k + j] * w[j * n + i % n];
    y[i] = sum;
  }
}

/* Returns whether the groups contain all rows. */
static bool are_all(const cuplug::host_array<const int64_t> &sizes, int64_t m) {
  for (int64_t g = 0; g < sizes.size(); m -= sizes[g++])
    if (sizes[g] < 0 || sizes[g] > m) return false;
  return m == 0;
}
/* ---- beyond the kernel ---- */
CUPLUG_TYPED_OPERATOR(grouped_matmul,
                      "grouped_matmul(x: T[m, k], w: T[g, k, n], host sizes: int64[g]) -> "
                      "y: T[m, n] where T: float32 | float64, 0 <= sizes <= m",
                      "The products of consecutive groups of rows, each with its own matrix.");

CUPLUG_CUDA_ENTRY(grouped_matmul, (T), x, w, sizes, m, k, n, y) {
  if (!are_all(sizes, m))
    return call.fail(CUPLUG_ERROR_VALUE, "sizes: got another sum, expected m");
  for (int64_t g = 0, at = 0; g < sizes.size(); at += sizes[g++])
    if (int status = call.launch<grouped_matmul_kernel<T>>({cuplug::blocks(sizes[g] * n, 256), 256},
                                                           x + at * k, w + g * k * n, y + at * n,
                                                           sizes[g], k, n))
      return status;
  return CUPLUG_OK;
}

CUPLUG_HOST_ENTRY(grouped_matmul, (T), x, w, sizes, m, k, n, y) {
  if (!are_all(sizes, m))
    return call.fail(CUPLUG_ERROR_VALUE, "sizes: got another sum, expected m");
  for (int64_t g = 0, row = 0; g < sizes.size(); g++)
    for (const int64_t end = row + sizes[g]; row < end; row++)
      for (int64_t i = 0; i < n; i++) {
        T sum = 0;
        for (int64_t j = 0; j < k; j++) sum += x[row * k + j] * w[(g * k + j) * n + i];
        y[row * n + i] = sum;
      }
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(grouped_matmul, "1.0.0");
