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
  moments *of_row; /* of rows that registers do not hold */
  float eps;
  template <typename Part> __device__ void run(const Part &p) const {
    const moments m = run_on(p, p.keep(p.at(x)), p.keep(p.at(grad)));
    if (p.is_first()) of_row[p.row] = m;
  }
  template <typename Part, typename X>
  __device__ moments run_on(const Part &p, const X &own, const X &own_grad) const {
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
    return m;
  }
};

/* The sum of a value over the rows of a block, for threads of its first one. */
__device__ inline float sum_of_rows(float value) {
  __shared__ float shared[rows::MOST_THREADS];
  if (blockDim.y == 1) return value;
  shared[threadIdx.y * blockDim.x + threadIdx.x] = value;
  __syncthreads();
  float sum = 0;
  if (threadIdx.y == 0)
    for (unsigned y = 0; y < blockDim.y; y++) sum += shared[y * blockDim.x + threadIdx.x];
  __syncthreads();
  return sum;
}

/* Rows that registers hold, and their columns' sums: partial[block, 0 and 1, column], of
 * grad (x - mean) inverse and of grad. */
template <typename T, bool IS_LAYER, int W, int PACKS>
__global__ void __launch_bounds__(rows::MOST_THREADS)
    sums_kernel(const __grid_constant__ rows::extents e,
                const __grid_constant__ backward<T, IS_LAYER> op, float *partial) {
  float weight[PACKS][W] = {}, bias[PACKS][W] = {};
  rows::over_rows<W, PACKS>(e, [&](const rows::part<W, PACKS> &p) {
    const auto own = p.keep(p.at(op.x)), own_grad = p.keep(p.at(op.grad));
    const moments m = op.run_on(p, own, own_grad);
#pragma unroll
    for (int i = 0; i < PACKS; i++)
#pragma unroll
      for (int k = 0; k < W; k++) {
        const float g = (float)own_grad.of[i].value[k];
        weight[i][k] += g * (((float)own.of[i].value[k] - m.mean) * m.inverse);
        if constexpr (IS_LAYER) bias[i][k] += g;
      }
  });
  float *const to = partial + (int64_t)blockIdx.x * 2 * e.n;
#pragma unroll
  for (int i = 0; i < PACKS; i++)
#pragma unroll
    for (int k = 0; k < W; k++) {
      const int64_t j = (int64_t)(i * blockDim.x + threadIdx.x) * W + k;
      const float sum = sum_of_rows(weight[i][k]), plain = IS_LAYER ? sum_of_rows(bias[i][k]) : 0;
      if (threadIdx.y != 0 || j >= e.n) continue;
      to[j] = sum;
      if constexpr (IS_LAYER) to[e.n + j] = plain;
    }
}

constexpr int COLUMNS = 32, TOGETHER = 16; /* threads of a block */

/* The sum over threads of a column, in each of them. */
__device__ inline float sum_of_column(float value) {
  __shared__ float shared[TOGETHER][COLUMNS];
  shared[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int k = 0; k < TOGETHER; k++) sum += shared[k][threadIdx.x];
  __syncthreads();
  return sum;
}

/* The same sums of rows that are longer, for groups of rows. */
template <typename T, bool IS_LAYER>
__global__ void __launch_bounds__(COLUMNS *TOGETHER)
    columns_kernel(const T *__restrict__ grad, const T *__restrict__ x, const moments *of_row,
                   float *partial, int64_t n_rows, int64_t n) {
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
  weight = sum_of_column(weight);
  bias = IS_LAYER ? sum_of_column(bias) : 0;
  if (threadIdx.y != 0 || j >= n) return;
  partial[2 * (int64_t)blockIdx.y * n + j] = weight;
  if constexpr (IS_LAYER) partial[(2 * (int64_t)blockIdx.y + 1) * n + j] = bias;
}

template <typename T, bool IS_LAYER>
__global__ void __launch_bounds__(COLUMNS *TOGETHER)
    groups_kernel(const float *__restrict__ partial, int n_groups, T *grad_weight, T *grad_bias,
                  int64_t n) {
  const int64_t j = (int64_t)blockIdx.x * COLUMNS + threadIdx.x;
  float weight = 0, bias = 0;
  if (j < n)
#pragma unroll 4
    for (int k = threadIdx.y; k < n_groups; k += TOGETHER) {
      weight += partial[2 * k * n + j];
      if constexpr (IS_LAYER) bias += partial[(2 * k + 1) * n + j];
    }
  weight = sum_of_column(weight);
  bias = IS_LAYER ? sum_of_column(bias) : 0;
  if (threadIdx.y != 0 || j >= n) return;
  grad_weight[j] = (T)weight;
  if constexpr (IS_LAYER) grad_bias[j] = (T)bias;
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

/* Blocks, and so groups of rows: as many as keep GPUs busy, with few sums to be added up. */
inline int64_t groups_of(int64_t blocks, int packs, int64_t threads) {
  const int64_t most = packs == 1 ? 1056 : threads >= 256 ? 132 : 264;
  return blocks < most ? blocks : most;
}

template <typename T, bool IS_LAYER>
int run_backward_of(const cuplug::call &call, const cuplug_tensor *t, float eps) {
  const int64_t n_rows = rows::count(t), n = rows::length(t), columns = (n + COLUMNS - 1) / COLUMNS;
  if (n == 0) return CUPLUG_OK;
  backward<T, IS_LAYER> op = {(const T *)t[0].data,
                              (const T *)t[1].data,
                              (const T *)t[2].data,
                              (T *)t[3].data,
                              nullptr,
                              eps};
  const rows::extents e = {n_rows, n, rows::are_aligned(op.grad, op.x, op.weight, op.grad_x)};
  return rows::divide<T>(n, [&](auto width, auto packs, int64_t threads) {
    cuplug::grid grid = rows::grid_of(n_rows, threads);
    const int64_t n_groups = n_rows == 0  ? 0
                             : packs == 0 ? (n_rows < 1024 ? (n_rows + 15) / 16 : 64)
                                          : groups_of(grid.blocks[0], packs, threads);
    float *const partial = call.workspace<float>(2 * n_groups * n + 1);
    if (!partial) return (int)CUPLUG_ERROR_MEMORY;
    int status = CUPLUG_OK;
    if (n_rows == 0) {
    } else if constexpr (packs == 0) {
      op.of_row = call.workspace<moments>(n_rows);
      if (!op.of_row) return (int)CUPLUG_ERROR_MEMORY;
      status = call.launch<rows::rows_kernel<width, packs, backward<T, IS_LAYER>>>(grid, e, op);
      if (!status)
        status =
            call.launch<columns_kernel<T, IS_LAYER>>({{columns, n_groups}, {COLUMNS, TOGETHER}},
                                                     op.grad, op.x, op.of_row, partial, n_rows, n);
    } else {
      grid.blocks[0] = n_groups;
      status = call.launch<sums_kernel<T, IS_LAYER, width, packs>>(grid, e, op, partial);
    }
    if (status) return status;
    return call.launch<groups_kernel<T, IS_LAYER>>({{columns}, {COLUMNS, TOGETHER}}, partial,
                                                   (int)n_groups, (T *)t[4].data,
                                                   IS_LAYER ? (T *)t[5].data : nullptr, n);
  });
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
