/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm(x, weight, bias, epsilon)[i, j] = (x[i, j] - m[i]) r[i] weight[j] + bias[j],
 * m[i] = mean_j x[i, j], r[i] = 1 / sqrt(mean_j (x[i, j] - m[i])^2 + epsilon)
 * x: T[*rows, n], weight, bias: T[n] -> T[*rows, n]. T: float16, bfloat16, float32, computed as
 * float32. x is read from memory once, since a row stays in the cache. The output is written once.
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
CUPLUG_TYPED_OPERATOR(layer_norm,
                      "layer_norm(x: T[*rows, n], weight: T[n], bias: T[n], "
                      "epsilon: float = 1e-5) -> T[*rows, n] "
                      "where T: float16 | bfloat16 | float32",
                      "Layer normalisation of each row: along the last axis." CUPLUG_GRADIENT(
                          layer_norm_backward.layer_norm_backward));

CUPLUG_CUDA_ENTRY(layer_norm, (T), x, weight, bias, epsilon, rows, n, out) {
  const auto launch = [=](auto width) {
    return call.launch<layer_norm_kernel<width, T>>(
        {cuplug::blocks(rows.product(), 1), threads_for(n, width)}, x, weight, bias, out,
        rows.product(), n, epsilon);
  };
  return in_packs<T>(n, launch, x.data(), out.data());
}

CUPLUG_HOST_ENTRY(layer_norm, (T), x, weight, bias, epsilon, n, out) {
  for (int64_t at = 0; at < x.size(); at += n) {
    const T *row = x + at;
    double mean = 0, square = 0;
    for (int64_t j = 0; j < n; j++) mean += (float)row[j];
    mean /= n;
    for (int64_t j = 0; j < n; j++) square += ((float)row[j] - mean) * ((float)row[j] - mean);
    const double r = 1 / sqrt(square / n + epsilon);
    for (int64_t j = 0; j < n; j++)
      out[at + j] = (T)(float)(((float)row[j] - mean) * r * (float)weight[j] + (float)bias[j]);
  }
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(layer_norm, "1.0.0");
