/* SPDX-License-Identifier: Apache-2.0 */
/* running_average(x, mean, count, mode, decay): the mean of each column over all calls so far.
 * x: T[m, n]; modified: mean: T[n], count: int64[], the number of rows so far. T: float32, float64.
 *   mode "all":     mean = (count mean + sum_i x[i]) / (count + m): all rows have the same weight
 *   mode "recent":  mean = decay mean + (1 - decay) x[i] for i = 0 ... m - 1; the first row of all
 *                   calls becomes the mean
 * Each element of x is read once. The sums are computed from the first row to the last. */
#include <cuplug/plugin.hpp>

/* The new mean of one column. */
template <typename T>
__host__ __device__ T average(const T *column, int64_t m, int64_t n, double mean, int64_t count,
                              bool all, double decay) {
  for (int64_t i = 0; i < m; i++) {
    const double keep = count + i == 0 ? 0 : all ? (double)(count + i) / (count + i + 1) : decay;
    mean = keep * mean + (1 - keep) * column[i * n];
  }
  return (T)mean;
}

template <typename T>
__global__ void average_kernel(const T *__restrict__ x, T *mean, const int64_t *count, int64_t m,
                               int64_t n, bool all, double decay) {
  const int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (j < n) mean[j] = average(x + j, m, n, mean[j], *count, all, decay);
}

__global__ void count_kernel(int64_t *count, int64_t m) { *count += m; }
/* ---- beyond the kernel ---- */
CUPLUG_TYPED_OPERATOR(running_average,
                      "running_average(x: T[m, n], inout mean: T[n], inout count: int64[], "
                      "mode: 'all' | 'recent' = 'all', decay: float = 0.9) "
                      "where T: float32 | float64",
                      "The mean of each column over all calls so far.");

CUPLUG_CUDA_ENTRY(running_average, (T), x, m, n, mean, count, mode, decay) {
  const bool all = mode == CUPLUG_CHOICE(mode, "all");
  if (int status = call.launch<average_kernel<T>>({cuplug::blocks(n, 256), 256}, x, mean, count, m,
                                                  n, all, decay))
    return status;
  return call.launch<count_kernel>({1, 1}, count, m);
}

CUPLUG_HOST_ENTRY(running_average, (T), x, m, n, mean, count, mode, decay) {
  const bool all = mode == CUPLUG_CHOICE(mode, "all");
  for (int64_t j = 0; j < n; j++) mean[j] = average(x + j, m, n, mean[j], *count, all, decay);
  *count += m;
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(running_average, "1.0.0");
