/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of layer_norm: with h[i, j] = (x[i, j] - m[i]) r[i], g[i, j] = grad[i, j] weight[j]
 *   grad_x[i, j]   = r[i] (g[i, j] - mean_k g[i, k] - h[i, j] mean_k g[i, k] h[i, k])
 *   grad_weight[j] = sum_i grad[i, j] h[i, j]        grad_bias[j] = sum_i grad[i, j]
 * grad, x: T[*rows, n], weight: T[n]. T: float32. The order of the sums over rows depends only on
 * the GPU: each block writes a sum to a workspace, and a second kernel adds these up.
 * Source: the chain rule on Ba, Kiros and Hinton, Layer Normalization, arXiv:1607.06450, eq. 4. */
#include "block.cuh"

/* Rows i, i + gridDim.x ...; partial[block] = sums over them: n of grad h, then n of grad. Column j
 * belongs to one thread throughout, so no thread waits. */
__global__ void __launch_bounds__(THREADS)
    rows_kernel(const float *__restrict__ grad, const float *__restrict__ x,
                const float *__restrict__ weight, float *__restrict__ grad_x, float *partial,
                int64_t n_rows, int64_t n, float epsilon) {
  partial += blockIdx.x * 2 * n;
  for (int64_t j = threadIdx.x; j < 2 * n; j += blockDim.x)
    if (j < n) partial[j] = partial[n + j] = 0;
  for (int64_t i = blockIdx.x; i < n_rows; i += gridDim.x) {
    const float *row = x + i * n, *grad_row = grad + i * n;
    float sum = 0, squares = 0, sum_g = 0, sum_gh = 0;
    each<1>(row, n, [&](int64_t, float value) { sum += value; });
    const float mean = reduce_block(sum, 0, sum_of()) / n;
    each<1>(row, n, [&](int64_t j, float value) {
      const float centred = value - mean, g = grad_row[j] * weight[j];
      squares += centred * centred, sum_g += g, sum_gh += g * centred;
    });
    const float r = rsqrtf(reduce_block(squares, 0, sum_of()) / n + epsilon);
    const float mean_g = reduce_block(sum_g, 0, sum_of()) / n;
    const float mean_gh = reduce_block(sum_gh, 0, sum_of()) * r / n;
    each<1>(row, n, [=](int64_t j, float value) {
      const float h = (value - mean) * r;
      grad_x[i * n + j] = r * (grad_row[j] * weight[j] - mean_g - h * mean_gh);
      partial[j] += grad_row[j] * h;
      partial[n + j] += grad_row[j];
    });
  }
}

__global__ void __launch_bounds__(THREADS)
    columns_kernel(const float *__restrict__ partial, int64_t n_partial, float *grad_weight,
                   float *grad_bias, int64_t n) {
  const int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x; j < 2 * n; j += step) {
    float sum = 0;
    for (int64_t p = 0; p < n_partial; p++) sum += partial[p * 2 * n + j];
    (j < n ? grad_weight[j] : grad_bias[j - n]) = sum;
  }
}
/* ---- beyond the kernel ---- */
CUPLUG_TYPED_OPERATOR(layer_norm_backward,
                      "layer_norm_backward(grad: float32[*rows, n], x: float32[*rows, n], "
                      "weight: float32[n], epsilon: float = 1e-5) -> (grad_x: float32[*rows, "
                      "n], grad_weight: float32[n], grad_bias: float32[n])",
                      "The gradients of layer_norm by x, weight and bias." CUPLUG_LINEAR(grad));

constexpr int64_t BLOCKS =
    528; /* a workspace of 4 KiB a column; 4 blocks on each of 132 processors */

CUPLUG_CUDA_ENTRY(layer_norm_backward, grad, x, weight, epsilon, rows, n, grad_x, grad_weight,
                  grad_bias) {
  const int64_t m = rows.product(), blocks = m < 1 ? 1 : m < BLOCKS ? m : BLOCKS;
  float *partial = call.workspace<float>(blocks * 2 * n);
  if (!partial) return CUPLUG_ERROR_MEMORY;
  if (int status = call.launch<rows_kernel>({n ? blocks : 0, threads_for(n, 1)}, grad, x, weight,
                                            grad_x, partial, m, n, epsilon))
    return status;
  return call.launch<columns_kernel>({cuplug::blocks(2 * n, THREADS), THREADS}, partial, blocks,
                                     grad_weight, grad_bias, n);
}

CUPLUG_HOST_ENTRY(layer_norm_backward, grad, x, weight, epsilon, n, grad_x, grad_weight,
                  grad_bias) {
  for (int64_t j = 0; j < n; j++) grad_weight[j] = grad_bias[j] = 0;
  for (int64_t at = 0; at < x.size(); at += n) {
    const float *grad_row = grad + at, *row = x + at;
    double mean = 0, square = 0, g = 0, gh = 0;
    for (int64_t j = 0; j < n; j++) mean += row[j] / (double)n;
    for (int64_t j = 0; j < n; j++) square += (row[j] - mean) * (row[j] - mean) / n;
    const double r = 1 / sqrt(square + epsilon);
    for (int64_t j = 0; j < n; j++) {
      g += (double)grad_row[j] * weight[j] / n;
      gh += (double)grad_row[j] * weight[j] * (row[j] - mean) * r / n;
    }
    for (int64_t j = 0; j < n; j++) {
      const double h = (row[j] - mean) * r;
      grad_x[at + j] = (float)(r * ((double)grad_row[j] * weight[j] - g - h * gh));
      grad_weight[j] += (float)(grad_row[j] * h);
      grad_bias[j] += grad_row[j];
    }
  }
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(layer_norm_backward, "1.0.0");
