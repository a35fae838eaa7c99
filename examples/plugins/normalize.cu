/* SPDX-License-Identifier: Apache-2.0 */
/* normalize(x, weight, bias, epsilon) -> (y, mean, rstd): layer norm that returns its statistics.
 *   mean[i] = mean_j x[i, j]     rstd[i] = 1 / sqrt(mean_j (x[i, j] - mean[i])^2 + epsilon)
 *   h[i, j] = (x[i, j] - mean[i]) rstd[i]        y[i, j] = h[i, j] weight[j] + bias[j]
 * normalize_backward reads these, so that it does not sum x again: with g = grad_y weight,
 *   grad_x[i, j] = rstd[i] (g[i, j] - mean_k g[i, k] - h[i, j] mean_k g[i, k] h[i, k])
 *     + grad_mean[i] / n - grad_rstd[i] rstd[i]^2 h[i, j] / n
 *   grad_weight[j] = sum_i grad_y[i, j] h[i, j]        grad_bias[j] = sum_i grad_y[i, j]
 * x: float32[m, n]. Each column of the sums over rows belongs to one thread, so the order is fixed.
 * Source: the chain rule on Ba, Kiros and Hinton, Layer Normalization, arXiv:1607.06450. */
#include "block.cuh"

__global__ void __launch_bounds__(THREADS)
    normalize_kernel(const float *x, const float *weight, const float *bias, float *y, float *means,
                     float *rstds, int64_t n, float epsilon) {
  const int64_t i = blockIdx.x;
  float sum = 0, squares = 0;
  each<1>(x + i * n, n, [&](int64_t, float value) { sum += value; });
  const float mean = reduce_block(sum, 0, sum_of()) / n;
  each<1>(x + i * n, n, [&](int64_t, float v) { squares += (v - mean) * (v - mean); });
  const float rstd = rsqrtf(reduce_block(squares, 0, sum_of()) / n + epsilon);
  map_row<1>(x + i * n, y + i * n, n,
             [=](int64_t j, float v) { return (v - mean) * rstd * weight[j] + bias[j]; });
  if (threadIdx.x == 0) means[i] = mean, rstds[i] = rstd;
}

__global__ void __launch_bounds__(THREADS)
    rows_kernel(const float *grad, const float *x, const float *weight, const float *means,
                const float *rstds, const float *grad_mean, const float *grad_rstd, float *grad_x,
                int64_t n) {
  const int64_t i = blockIdx.x;
  const float mean = means[i], rstd = rstds[i];
  float sum = 0, product = 0;
  each<1>(x + i * n, n, [&](int64_t j, float value) {
    const float g = grad[i * n + j] * weight[j];
    sum += g, product += g * (value - mean) * rstd;
  });
  sum = reduce_block(sum, 0, sum_of()), product = reduce_block(product, 0, sum_of());
  const float shift = (grad_mean ? grad_mean[i] : 0) - rstd * sum;
  const float tilt = (grad_rstd ? grad_rstd[i] * rstd * rstd : 0) + rstd * product;
  map_row<1>(x + i * n, grad_x + i * n, n, [=](int64_t j, float value) {
    return rstd * grad[i * n + j] * weight[j] + (shift - (value - mean) * rstd * tilt) / n;
  });
}

__global__ void __launch_bounds__(THREADS)
    columns_kernel(const float *grad, const float *x, const float *means, const float *rstds,
                   float *grad_weight, float *grad_bias, int64_t m, int64_t n) {
  const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (j >= n) return;
  float of_weight = 0, of_bias = 0;
  for (int64_t i = 0; i < m; i++) {
    of_weight += grad[i * n + j] * (x[i * n + j] - means[i]) * rstds[i];
    of_bias += grad[i * n + j];
  }
  grad_weight[j] = of_weight, grad_bias[j] = of_bias;
}
/* ---- beyond the kernel ---- */
CUPLUG_TYPED_OPERATOR(
    normalize,
    "normalize(x: float32[m, n], weight: float32[n], bias: float32[n], "
    "epsilon: float = 1e-5) -> (y: float32[m, n], mean: float32[m], "
    "rstd: float32[m]) where n > 0",
    "Layer norm, with the statistics of each row." CUPLUG_GRADIENT(normalize_backward));

CUPLUG_CUDA_ENTRY(normalize, x, weight, bias, epsilon, m, n, y, mean, rstd) {
  return call.launch<normalize_kernel>({m, threads_for(n, 1)}, x, weight, bias, y, mean, rstd, n,
                                       epsilon);
}

CUPLUG_HOST_ENTRY(normalize, x, weight, bias, epsilon, m, n, y, mean, rstd) {
  for (int64_t i = 0; i < m; i++) {
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < n; j++) sum += x[i * n + j];
    for (int64_t j = 0; j < n; j++) squares += (x[i * n + j] - sum / n) * (x[i * n + j] - sum / n);
    mean[i] = (float)(sum / n), rstd[i] = (float)(1 / sqrt(squares / n + epsilon));
    for (int64_t j = 0; j < n; j++)
      y[i * n + j] = (x[i * n + j] - mean[i]) * rstd[i] * weight[j] + bias[j];
  }
  return CUPLUG_OK;
}

CUPLUG_TYPED_OPERATOR(normalize_backward,
                      "normalize_backward(grad_y: float32[m, n], x: float32[m, n], "
                      "weight: float32[n], mean: float32[m], rstd: float32[m], "
                      "grad_mean: float32[m] = None, grad_rstd: float32[m] = None) -> "
                      "(grad_x: float32[m, n], grad_weight: float32[n], grad_bias: float32[n]) "
                      "where n > 0",
                      "The gradients of normalize, from the statistics that it returned.");

CUPLUG_CUDA_ENTRY(normalize_backward, grad_y, x, weight, mean, rstd, grad_mean, grad_rstd, m, n,
                  grad_x, grad_weight, grad_bias) {
  if (int status = call.launch<rows_kernel>({m, threads_for(n, 1)}, grad_y, x, weight, mean, rstd,
                                            grad_mean, grad_rstd, grad_x, n))
    return status;
  return call.launch<columns_kernel>({cuplug::blocks(n, THREADS), THREADS}, grad_y, x, mean, rstd,
                                     grad_weight, grad_bias, m, n);
}

CUPLUG_HOST_ENTRY(normalize_backward, grad_y, x, weight, mean, rstd, grad_mean, grad_rstd, m, n,
                  grad_x, grad_weight, grad_bias) {
  for (int64_t j = 0; j < n; j++) grad_weight[j] = grad_bias[j] = 0;
  for (int64_t i = 0; i < m; i++) {
    double sum = 0, product = 0;
    for (int64_t j = 0; j < n; j++) {
      const double g = grad_y[i * n + j], h = ((double)x[i * n + j] - mean[i]) * rstd[i];
      sum += g * weight[j], product += g * weight[j] * h;
      grad_weight[j] += (float)(g * h), grad_bias[j] += (float)g;
    }
    const double shift = (grad_mean ? grad_mean[i] : 0) - rstd[i] * sum;
    const double tilt = (grad_rstd ? grad_rstd[i] * rstd[i] * rstd[i] : 0) + rstd[i] * product;
    for (int64_t j = 0; j < n; j++) {
      const double h = ((double)x[i * n + j] - mean[i]) * rstd[i];
      grad_x[i * n + j] = (float)(rstd[i] * grad_y[i * n + j] * weight[j] + (shift - h * tilt) / n);
    }
  }
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(normalize, "1.0.0");
