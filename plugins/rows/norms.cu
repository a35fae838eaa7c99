/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of norms.c. Gradients of weight and bias are sums over rows: what
 * a row needs again is kept, threads side by side then add up columns, each group of rows for
 * itself, and a last kernel adds up the groups. */
#include "rows/rows.cuh"

namespace {

/* A row is (x - mean) inverse; RMS norms have the mean 0. */
struct moments {
  float mean, inverse;
};

template <bool IS_LAYER, typename Part, typename X>
__device__ moments moments_of(const Part &p, const X &x, float eps) {
  float sum = 0, squares = 0;
  if constexpr (IS_LAYER) {
    p.each([&](float v) { sum += v; }, x);
    sum = rows::sum_of(sum);
  }
  const float n = (float)p.length, mean = sum / n;
  p.each([&](float v) { squares += (v - mean) * (v - mean); }, x);
  return {mean, 1 / sqrtf(rows::sum_of(squares) / n + eps)};
}

/* IS_ADDED: x is added to `residual` before. */
template <typename T, bool IS_LAYER, bool IS_ADDED> struct forward {
  const T *x, *weight, *bias;
  T *residual, *y;
  float eps;
  template <typename Part> __device__ void run(const Part &p) const {
    if constexpr (IS_ADDED)
      norm(p, p.add(p.at(residual), p.at(x)));
    else
      norm(p, p.keep(p.at(x)));
  }
  template <typename Part, typename X> __device__ void norm(const Part &p, const X &own) const {
    const moments m = moments_of<IS_LAYER>(p, own, eps);
    if constexpr (IS_LAYER)
      p.map(
          p.at(y), [=](float v, float w, float b) { return (v - m.mean) * m.inverse * w + b; }, own,
          p.stream(weight), p.stream(bias));
    else
      p.map(
          p.at(y), [=](float v, float w) { return v * m.inverse * w; }, own, p.stream(weight));
  }
};

template <typename T, bool IS_LAYER> struct backward {
  const T *grad, *x, *weight;
  T *grad_x;
  moments *of_row;
  float eps;
  template <typename Part> __device__ void run(const Part &p) const {
    const auto own = p.keep(p.at(x)), own_grad = p.keep(p.at(grad));
    const auto w = p.stream(weight);
    const moments m = moments_of<IS_LAYER>(p, own, eps);
    float along = 0, sum = 0;
    p.each(
        [&](float v, float g, float f) {
          along += g * f * ((v - m.mean) * m.inverse);
          sum += g * f;
        },
        own, own_grad, w);
    const float n = (float)p.length, mean_along = rows::sum_of(along) / n;
    const float mean = IS_LAYER ? rows::sum_of(sum) / n : 0;
    p.map(
        p.at(grad_x),
        [=](float v, float g, float f) {
          return m.inverse * (g * f - mean - (v - m.mean) * m.inverse * mean_along);
        },
        own, own_grad, w);
    if (p.is_first()) of_row[p.row] = m;
  }
};

constexpr int COLUMNS = 32, TOGETHER = 8, MOST_GROUPS = 64; /* threads of a block, and blocks */

/* partial[group, 0 and 1, column] = the sums of grad (x - mean) inverse and of grad. */
template <typename T, bool IS_LAYER>
__global__ void __launch_bounds__(COLUMNS *TOGETHER)
    columns_kernel(const T *__restrict__ grad, const T *__restrict__ x, const moments *of_row,
                   float *partial, int64_t n_rows, int64_t n) {
  __shared__ float shared[2][TOGETHER][COLUMNS];
  const int64_t j = (int64_t)blockIdx.x * COLUMNS + threadIdx.x;
  float weight = 0, bias = 0;
  if (j < n)
    for (int64_t i = (int64_t)blockIdx.y * TOGETHER + threadIdx.y; i < n_rows;
         i += (int64_t)gridDim.y * TOGETHER) {
      const float g = (float)grad[i * n + j];
      const moments m = of_row[i];
      weight += g * (((float)x[i * n + j] - m.mean) * m.inverse);
      bias += g;
    }
  shared[0][threadIdx.y][threadIdx.x] = weight;
  shared[1][threadIdx.y][threadIdx.x] = bias;
  __syncthreads();
  if (threadIdx.y >= (IS_LAYER ? 2 : 1) || j >= n) return;
  float sum = 0;
#pragma unroll
  for (int k = 0; k < TOGETHER; k++) sum += shared[threadIdx.y][k][threadIdx.x];
  partial[((int64_t)blockIdx.y * 2 + threadIdx.y) * n + j] = sum;
}

template <typename T>
__global__ void __launch_bounds__(256)
    groups_kernel(const float *__restrict__ partial, int n_groups, T *grad_weight, T *grad_bias,
                  int64_t n) {
  const int64_t j = (int64_t)blockIdx.x * 256 + threadIdx.x;
  if (j >= n) return;
  float weight = 0, bias = 0;
  for (int k = 0; k < n_groups; k++) {
    weight += partial[2 * k * n + j];
    if (grad_bias) bias += partial[(2 * k + 1) * n + j];
  }
  grad_weight[j] = (T)weight;
  if (grad_bias) grad_bias[j] = (T)bias;
}

template <bool IS_LAYER, bool IS_ADDED> int run_forward(const cuplug_call *call) {
  const cuplug_tensor *t = call->tensors, *x = t + IS_ADDED, *weight = x + 1;
  return rows::by_dtype(x, [=](auto zero) {
    using T = decltype(zero);
    const forward<T, IS_LAYER, IS_ADDED> op = {(const T *)x->data,
                                               (const T *)weight->data,
                                               IS_LAYER ? (const T *)weight[1].data : nullptr,
                                               IS_ADDED ? (T *)t->data : nullptr,
                                               (T *)weight[1 + IS_LAYER].data,
                                               (float)call->scalars[0].f};
    return rows::launch<T>(call, rows::count(x), rows::length(x), op, op.x, op.weight, op.bias,
                           op.residual, op.y);
  });
}

template <typename T, bool IS_LAYER>
int run_backward_of(const cuplug::call &call, const cuplug_tensor *t, float eps) {
  const int64_t n_rows = rows::count(t), n = rows::length(t), groups = (n_rows + 63) / 64;
  const int n_groups = (int)(groups < 1 ? 1 : groups < MOST_GROUPS ? groups : MOST_GROUPS);
  moments *of_row = call.workspace<moments>(n_rows + 1);
  float *partial = call.workspace<float>(2 * n_groups * n + 1);
  if (!of_row || !partial) return CUPLUG_ERROR_MEMORY;
  const backward<T, IS_LAYER> op = {(const T *)t[0].data,
                                    (const T *)t[1].data,
                                    (const T *)t[2].data,
                                    (T *)t[3].data,
                                    of_row,
                                    eps};
  int status = rows::launch<T>(call, n_rows, n, op, op.grad, op.x, op.weight, op.grad_x);
  if (status || n == 0) return status;
  const cuplug::grid columns = {{(n + COLUMNS - 1) / COLUMNS, n_groups}, {COLUMNS, TOGETHER}};
  status =
      call.launch<columns_kernel<T, IS_LAYER>>(columns, op.grad, op.x, of_row, partial, n_rows, n);
  if (status) return status;
  return call.launch<groups_kernel<T>>({(n + 255) / 256, 256}, partial, n_groups, (T *)t[4].data,
                                       IS_LAYER ? (T *)t[5].data : nullptr, n);
}

template <bool IS_LAYER> int run_backward(const cuplug_call *call) {
  return rows::by_dtype(call->tensors, [=](auto zero) {
    return run_backward_of<decltype(zero), IS_LAYER>(call, call->tensors,
                                                     (float)call->scalars[0].f);
  });
}

} // namespace

CUPLUG_ENTRY int rms_norm_cuda(const cuplug_call *call) { return run_forward<false, false>(call); }
CUPLUG_ENTRY int add_rms_norm_cuda(const cuplug_call *call) {
  return run_forward<false, true>(call);
}
CUPLUG_ENTRY int layer_norm_cuda(const cuplug_call *call) { return run_forward<true, false>(call); }
CUPLUG_ENTRY int add_layer_norm_cuda(const cuplug_call *call) {
  return run_forward<true, true>(call);
}
CUPLUG_ENTRY int rms_norm_backward_cuda(const cuplug_call *call) {
  return run_backward<false>(call);
}
CUPLUG_ENTRY int layer_norm_backward_cuda(const cuplug_call *call) {
  return run_backward<true>(call);
}
