/* SPDX-License-Identifier: Apache-2.0 */
/* softmax(x)[i, j] = exp(x[i, j] - m[i]) / sum_k exp(x[i, k] - m[i]), m[i] = max_k x[i, k]
 * x: T[*rows, n] -> T[*rows, n]. T: float16, bfloat16, float32, computed with as float32. A row
 * with NaN or +inf, or of -inf alone, becomes NaN. From memory each element is read once, as a row
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
template <typename T> int on_cuda(const cuplug_call *call) {
  const T *x = cuplug_data<T>(call, 0);
  T *out = cuplug_data<T>(call, 1);
  const int64_t rows = cuplug_n_rows(&call->tensors[0]), n = cuplug_n_columns(&call->tensors[0]);
  const auto launch = [=](auto width) {
    return cuplug_launch<softmax_kernel<width, T>>(call, cuplug_n_blocks(rows, 1),
                                                   threads_for(n, width), 0, x, out, rows, n);
  };
  return in_packs<T>(n, launch, x, out);
}

template <typename T> int on_host(const cuplug_call *call) {
  const int64_t rows = cuplug_n_rows(&call->tensors[0]), n = cuplug_n_columns(&call->tensors[0]);
  for (int64_t i = 0; i < rows; i++) {
    const T *x = cuplug_data<T>(call, 0) + i * n;
    T *out = cuplug_data<T>(call, 1) + i * n;
    float most = -INFINITY;
    double sum = 0;
    for (int64_t j = 0; j < n; j++) most = fmaxf(most, (float)x[j]);
    for (int64_t j = 0; j < n; j++) sum += expf((float)x[j] - most);
    for (int64_t j = 0; j < n; j++) out[j] = (T)(float)(expf((float)x[j] - most) / sum);
  }
  return CUPLUG_OK;
}

CUPLUG_TYPED_ENTRY(softmax_cuda, on_cuda, float, __half, __nv_bfloat16)
CUPLUG_TYPED_ENTRY(softmax_host, on_host, float, __half, __nv_bfloat16)

CUPLUG_OPERATOR(softmax_cuda, softmax_host,
                "softmax(x: T[*rows, n]) -> T[*rows, n] "
                "where T: float16 | bfloat16 | float32",
                "The softmax of each row: along the last axis.");
CUPLUG_PLUGIN(softmax, "1.0.0");
