/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm(x, weight, bias, epsilon)[i, j] = (x[i, j] - m[i]) r[i] weight[j] + bias[j],
 * m[i] = mean_j x[i, j], r[i] = 1 / sqrt(mean_j (x[i, j] - m[i])^2 + epsilon)
 * x: T[*rows, n], weight, bias: T[n] -> T[*rows, n]. T: float16, bfloat16, float32, computed with
 * as float32. From memory x is read once, as a row stays in the cache; the output is written once.
 * Source: Ba, Kiros and Hinton, Layer Normalization, arXiv:1607.06450, equations 3 and 4. */
#include "block.cuh"

template <int WIDTH, typename T>
__global__ void __launch_bounds__(THREADS)
    layer_norm_kernel(const T *__restrict__ x, const T *__restrict__ weight,
                      const T *__restrict__ bias, T *__restrict__ out, int64_t n_rows, int64_t n,
                      float epsilon) {
  for (int64_t i = blockIdx.x; i < n_rows; i += gridDim.x) {
    const T *row = x + i * n;
    float sum = 0, squares = 0;
    each<WIDTH>(row, n, [&](int64_t, float value) { sum += value; });
    const float mean = reduce_block(sum, 0, sum_of()) / n;
    each<WIDTH>(row, n, [&](int64_t, float value) { squares += (value - mean) * (value - mean); });
    const float r = rsqrtf(reduce_block(squares, 0, sum_of()) / n + epsilon);
    map_row<WIDTH>(row, out + i * n, n, [=](int64_t j, float value) {
      return (value - mean) * r * (float)weight[j] + (float)bias[j];
    });
  }
}
/* ---- beyond the kernel ---- */
template <typename T> int on_cuda(const cuplug_call *call) {
  const T *x = cuplug_data<T>(call, 0), *weight = cuplug_data<T>(call, 1);
  const T *bias = cuplug_data<T>(call, 2);
  T *out = cuplug_data<T>(call, 3);
  const int64_t rows = cuplug_n_rows(&call->tensors[0]), n = cuplug_n_columns(&call->tensors[0]);
  const auto launch = [=](auto width) {
    return cuplug_launch<layer_norm_kernel<width, T>>(call, cuplug_n_blocks(rows, 1),
                                                      threads_for(n, width), 0, x, weight, bias,
                                                      out, rows, n, call->scalars[0].f);
  };
  return in_packs<T>(n, launch, x, out);
}

template <typename T> int on_host(const cuplug_call *call) {
  const T *weight = cuplug_data<T>(call, 1), *bias = cuplug_data<T>(call, 2);
  const int64_t rows = cuplug_n_rows(&call->tensors[0]), n = cuplug_n_columns(&call->tensors[0]);
  for (int64_t i = 0; i < rows; i++) {
    const T *x = cuplug_data<T>(call, 0) + i * n;
    T *out = cuplug_data<T>(call, 3) + i * n;
    double mean = 0, square = 0;
    for (int64_t j = 0; j < n; j++) mean += (float)x[j];
    mean /= n;
    for (int64_t j = 0; j < n; j++) square += ((float)x[j] - mean) * ((float)x[j] - mean);
    const double r = 1 / sqrt(square / n + call->scalars[0].f);
    for (int64_t j = 0; j < n; j++)
      out[j] = (T)(float)(((float)x[j] - mean) * r * (float)weight[j] + (float)bias[j]);
  }
  return CUPLUG_OK;
}

CUPLUG_TYPED_ENTRY(layer_norm_cuda, on_cuda, float, __half, __nv_bfloat16)
CUPLUG_TYPED_ENTRY(layer_norm_host, on_host, float, __half, __nv_bfloat16)

CUPLUG_OPERATOR(layer_norm_cuda, layer_norm_host,
                "layer_norm(x: T[*rows, n], weight: T[n], bias: T[n], "
                "epsilon: float = 1e-5) -> T[*rows, n] "
                "where T: float16 | bfloat16 | float32",
                "Layer normalisation of each row: along the last axis.");
CUPLUG_PLUGIN(layer_norm, "1.0.0");
