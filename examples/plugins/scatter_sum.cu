/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_sum(source, index, rows): sums[index[i]] += source[i], such as sums of messages over the
 * edges of a graph.                     source: T[n, d], index: int64[n] -> sums: T[rows, d]
 * T: float32, float64. The sums are cleared before the call. On the GPU, one thread adds one
 * element by an atomic addition: the order of additions, and therefore their rounding, may differ
 * between calls. An index that is not in 0 ... rows - 1 raises IndexError. */
#include <cuplug/plugin.hpp>

template <typename T>
__global__ void scatter_sum_kernel(const T *__restrict__ source, const int64_t *__restrict__ index,
                                   T *sums, int64_t d, int64_t n_elements, int64_t rows,
                                   cuplug_fault *fault) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n_elements; i += step) {
    const int64_t row = index[i / d];
    if (row < 0 || row >= rows)
      cuplug_fault_index(fault, 1, i / d, row, 0, rows);
    else
      atomicAdd(sums + row * d + i % d, source[i]);
  }
}
/* ---- beyond the kernel ---- */
CUPLUG_TYPED_OPERATOR(scatter_sum,
                      "scatter_sum(source: T[n, d], index: int64[n], rows: int) -> "
                      "zero sums: T[rows, d] where T: float32 | float64, rows >= 0, "
                      "0 <= index < rows",
                      "The sums of the rows of source that have the same index.");

CUPLUG_CUDA_ENTRY(scatter_sum, (T), source, index, d, rows, sums) {
  const int64_t n = source.size();
  return call.launch<scatter_sum_kernel<T>>({cuplug::blocks(n, 256), 256}, source, index, sums, d,
                                            n, rows, call.fault());
}

CUPLUG_HOST_ENTRY(scatter_sum, (T), source, index, d, rows, sums) {
  for (int64_t i = 0; i < index.size(); i++) {
    if (index[i] < 0 || index[i] >= rows)
      return call.fail(CUPLUG_ERROR_INDEX, "index: got another number, expected 0 <= i < rows");
    for (int64_t k = 0; k < d; k++) sums[index[i] * d + k] += source[i * d + k];
  }
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(scatter_sum, "1.0.0");
