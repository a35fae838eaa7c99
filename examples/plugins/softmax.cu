/* SPDX-License-Identifier: Apache-2.0 */
/* softmax(x)[i, j] = exp(x[i, j] - m[i]) / sum_k exp(x[i, k] - m[i]), m[i] = max_k x[i, k]
 * x: T[*rows, n] -> T[*rows, n]. T: float16, bfloat16, float32, computed as float32. A row with NaN
 * or +inf, or with only -inf, becomes NaN. Each element is read from memory once, because a row
 * stays in the cache, and written once.
 * Source: Goodfellow, Bengio and Courville, Deep Learning, sections 4.1 and 6.2.2.3. */
#include "block.cuh"

template <int WIDTH, typename T>
__global__ void __launch_bounds__(THREADS)
    softmax_kernel(const T *__restrict__ x, T *__restrict__ out, int64_t n_rows, int64_t n) {
  for (int64_t i = blockIdx.x; i < n_rows; i += gridDim.x) {
    const T *row = x + i * n;
    float most = -INFINITY, sum = 0;
    each<WIDTH>(row, n, [&](int64_t, float value) { most = fmaxf(most, value); });
    most = reduce_block(most, -INFINITY, greater_of());
    each<WIDTH>(row, n, [&](int64_t, float value) { sum += expf(value - most); });
    sum = reduce_block(sum, 0, sum_of());
    map_row<WIDTH>(row, out + i * n, n,
                   [=](int64_t, float value) { return expf(value - most) / sum; });
  }
}
/* ---- beyond the kernel ---- */
CUPLUG_TYPED_OPERATOR(softmax,
                      "softmax(x: T[*rows, n]) -> T[*rows, n] "
                      "where T: float16 | bfloat16 | float32",
                      "The softmax of each row: along the last axis.");

CUPLUG_CUDA_ENTRY(softmax, (T), x, rows, n, out) {
  const auto launch = [=](auto width) {
    return call.launch<softmax_kernel<width, T>>(
        {cuplug::blocks(rows.product(), 1), threads_for(n, width)}, x, out, rows.product(), n);
  };
  return in_packs<T>(n, launch, x.data(), out.data());
}

CUPLUG_HOST_ENTRY(softmax, (T), x, n, out) {
  for (int64_t at = 0; at < x.size(); at += n) {
    const T *row = x + at;
    float most = -INFINITY;
    double sum = 0;
    for (int64_t j = 0; j < n; j++) most = fmaxf(most, (float)row[j]);
    for (int64_t j = 0; j < n; j++) sum += expf((float)row[j] - most);
    for (int64_t j = 0; j < n; j++) out[at + j] = (T)(float)(expf((float)row[j] - most) / sum);
  }
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(softmax, "1.0.0");
