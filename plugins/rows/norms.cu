/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of norms.c. Gradients of weight and bias are sums over rows: a
 * block adds up the columns of its rows, and the last kernel adds up the blocks. */
#include "rows/launch.cuh"

namespace {

/* A row is (x - mean) inverse. RMS norms have the mean 0. */
struct moments {
  float mean, inverse;
};

template <bool IS_LAYER, typename Part, typename X>
__device__ float mean_of(const Part &p, const X &x) {
  float sum = 0;
  if constexpr (!IS_LAYER) return 0;
  p.each([&](float v) { sum += v; }, x);
  return p.sum(sum) / (float)p.length;
}

template <bool IS_LAYER, typename Part, typename X>
__device__ moments moments_of(const Part &p, const X &x, float eps) {
  const float mean = mean_of<IS_LAYER>(p, x);
  float squares = 0;
  p.each([&](float v) { squares += (v - mean) * (v - mean); }, x);
  return {mean, 1 / sqrtf(p.sum(squares) / (float)p.length + eps)};
}

/* IS_ADDED: x is added to `residual` before. */
template <typename T, bool IS_LAYER, bool IS_ADDED> struct forward {
  static constexpr int KEPT = 1;
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

/* IS_ADDED: for residual + x; grad_x is also added to grad_residual. */
template <typename T_, bool IS_LAYER_, bool IS_ADDED_> struct backward {
  using T = T_;
  static constexpr bool IS_LAYER = IS_LAYER_, IS_ADDED = IS_ADDED_;
  static constexpr int KEPT = 2;
  const T *grad, *x, *weight, *residual;
  T *grad_x, *grad_residual;
  moments *of_row; /* columns of rows that registers do not hold */
  float eps;
  __device__ auto input() const {
    if constexpr (IS_ADDED)
      return rows::sum_of<T>{residual, x};
    else
      return x;
  }
  template <typename Part> __device__ void run(const Part &p) const {
    const moments m = run_on(p, p.fetch(p.at(input())), p.stream(p.at(grad)), p.stream(weight),
                             [](const auto &, float) {});
    if (p.is_first()) of_row[p.row] = m;
  }
  /* `also` is called with the row's distances from its mean, and with `inverse`. */
  template <typename Part, typename X, typename Grad, typename Weight, typename F>
  __device__ moments run_on(const Part &p, const X &own, const Grad &own_grad, const Weight &w,
                            F also) const {
    const float n = (float)p.length, mean = mean_of<IS_LAYER>(p, own);
    const auto distances = p.make([=](float v) { return v - mean; }, own);
    rows::sums<IS_LAYER ? 3 : 2> sums = {};
    p.each(
        [&](float c, float g, float f) {
          sums.of[0] += c * c;
          sums.of[1] += g * f * c;
          if constexpr (IS_LAYER) sums.of[2] += g * f;
        },
        distances, own_grad, w);
    sums = p.sum(sums);
    const float inverse = 1 / sqrtf(sums.of[0] / n + eps);
    also(distances, inverse);
    const float along = sums.of[1] * inverse * inverse * inverse / n,
                plain = IS_LAYER ? sums.of[IS_LAYER ? 2 : 0] * inverse / n : 0;
    const auto value = [=](float c, float g, float f) {
      const float own = g * f * inverse - c * along;
      return IS_LAYER ? own - plain : own;
    };
    if constexpr (IS_ADDED)
      p.map(
          p.at(rows::both<T>{grad_residual, grad_x}),
          [=](float c, float g, float f, float r) { return r + value(c, g, f); }, distances,
          own_grad, w, p.stream(p.at(grad_residual)));
    else
      p.map(p.at(grad_x), value, distances, own_grad, w);
    return {mean, inverse};
  }
};

/* The sum of a value over a block's rows, for threads of its first row, in little code. */
template <int PACKS> __device__ inline float sum_of_rows(float value) {
  __shared__ float shared[rows::MOST_THREADS];
  if (blockDim.y == 1) return value;
  shared[threadIdx.y * blockDim.x + threadIdx.x] = value;
  __syncthreads();
  float sum = 0;
  if (threadIdx.y == 0)
#pragma unroll(PACKS == 1 ? 4 : 1)
    for (unsigned y = 0; y < blockDim.y; y++) sum += shared[y * blockDim.x + threadIdx.x];
  __syncthreads();
  return sum;
}

/* Rows that registers hold, each read while the preceding one is processed, and their columns'
 * sums: partial[group, 0 and 1, column], for the rows of a block or a cluster, of grad (x - mean)
 * inverse and of grad. */
template <typename part, typename Op>
__device__ void sum_held(const rows::extents &e, const Op &op, float *partial) {
  constexpr bool IS_LAYER = Op::IS_LAYER;
  constexpr int W = part::W, PACKS = part::PACKS;
  using team = typename part::team;
  float weight[PACKS][W] = {}, bias[PACKS][W] = {};
  int turn = 0;
  team::begin();
  const int64_t group = (int64_t)blockIdx.x / team::size(),
                step = (int64_t)gridDim.x / team::size() * blockDim.y;
  int64_t base = group * blockDim.y;
  part p = rows::part_of<part>(e, base, &turn);
  const auto w = part{0, e.n, (int)e.n, &turn}.fetch(op.weight);
  auto own = p.fetch(p.at(op.input())), own_grad = p.fetch(p.at(op.grad));
  for (; base < e.n_rows; base += step) {
    const part next = rows::part_of<part>(e, base + step, &turn);
    const auto next_x = next.fetch(next.at(op.input())), next_grad = next.fetch(next.at(op.grad));
    op.run_on(p, own, own_grad, w, [&](const auto &distances, float inverse) {
      p.over_packs([&](int i, int first) {
        const auto c = distances.get(p, i, first), g = own_grad.get(p, i, first);
#pragma unroll
        for (int k = 0; k < W; k++) {
          weight[i][k] += g.value[k] * (c.value[k] * inverse);
          if constexpr (IS_LAYER) bias[i][k] += g.value[k];
        }
      });
    });
    p = next, own = next_x, own_grad = next_grad;
  }
  float *const to = partial + group * 2 * e.n;
#pragma unroll
  for (int i = 0; i < PACKS; i++)
#pragma unroll
    for (int k = 0; k < W; k++) {
      const int64_t j = (int64_t)(i * p.n_threads() + p.thread()) * W + k;
      const float sum = sum_of_rows<PACKS>(weight[i][k]),
                  plain = IS_LAYER ? sum_of_rows<PACKS>(bias[i][k]) : 0;
      if (threadIdx.y != 0 || j >= e.n) continue;
      to[j] = sum;
      if constexpr (IS_LAYER) to[e.n + j] = plain;
    }
}

template <typename Op, int W, int PACKS, bool IS_SPREAD>
__global__ void __launch_bounds__(rows::MOST_THREADS)
    sums_kernel(const __grid_constant__ rows::extents e, const __grid_constant__ Op op,
                float *partial) {
  using part = rows::part<W, PACKS, true, IS_SPREAD>;
  if constexpr (part::team::EXISTS) sum_held<part>(e, op, partial);
}

constexpr int COLUMNS = 32, TOGETHER = 32; /* threads of a block */

/* Calls f(k, sum) for each of W values: their sums over the threads of a column, one thread each.
 */
template <int W, typename F> __device__ void sum_columns(const float (&values)[W], F f) {
  __shared__ float shared[W][TOGETHER][COLUMNS];
#pragma unroll
  for (int k = 0; k < W; k++) shared[k][threadIdx.y][threadIdx.x] = values[k];
  __syncthreads();
  if (threadIdx.y < W) {
    float sum = 0;
#pragma unroll
    for (int y = 0; y < TOGETHER; y++) sum += shared[threadIdx.y][y][threadIdx.x];
    f(threadIdx.y, sum);
  }
  __syncthreads();
}

/* The same sums for longer rows, by groups of rows: W columns for each thread. */
template <typename Op, int W>
__global__ void __launch_bounds__(COLUMNS *TOGETHER)
    columns_kernel(const __grid_constant__ rows::extents e, const __grid_constant__ Op op,
                   float *partial) {
  constexpr bool IS_LAYER = Op::IS_LAYER;
  const int64_t n = e.n, j = ((int64_t)blockIdx.x * COLUMNS + threadIdx.x) * W;
  float weight[W] = {}, bias[W] = {};
  if (j < n)
#pragma unroll 2
    for (int64_t i = (int64_t)blockIdx.y * TOGETHER + threadIdx.y; i < e.n_rows;
         i += (int64_t)gridDim.y * TOGETHER) {
      const rows::part<W, 0, true> p = {i, n, n, nullptr};
      const auto g = p.stream(p.at(op.grad)).get(p, 0, j);
      const auto x = p.stream(p.at(op.input())).get(p, 0, j);
      const moments m = op.of_row[i];
#pragma unroll
      for (int k = 0; k < W; k++) {
        weight[k] += g.value[k] * ((x.value[k] - m.mean) * m.inverse);
        if constexpr (IS_LAYER) bias[k] += g.value[k];
      }
    }
  float *to = partial + 2 * (int64_t)blockIdx.y * n + j;
  const auto put = [&](int k, float sum) {
    if (j < n) to[k] = sum;
  };
  sum_columns(weight, put);
  to += n;
  if constexpr (IS_LAYER) sum_columns(bias, put);
}

template <typename T, bool IS_LAYER>
__global__ void __launch_bounds__(COLUMNS *TOGETHER)
    groups_kernel(const float *__restrict__ partial, int n_groups, T *grad_weight, T *grad_bias,
                  int64_t n) {
  const int64_t j = (int64_t)blockIdx.x * COLUMNS + threadIdx.x;
  float weight = 0, bias = 0;
  if (j < n)
#pragma unroll 8
    for (int k = threadIdx.y; k < n_groups; k += TOGETHER) {
      weight += partial[2 * k * n + j];
      if constexpr (IS_LAYER) bias += partial[(2 * k + 1) * n + j];
    }
  const auto put = [&](int k, float sum) {
    if (j < n) (k ? grad_bias : grad_weight)[j] = (T)sum;
  };
  if constexpr (IS_LAYER)
    sum_columns({weight, bias}, put);
  else
    sum_columns({weight}, put);
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

/* The destination of the sums of groups of rows, and the results from them. */
template <typename Op> struct columns {
  using T = typename Op::T;
  const cuplug::call &call;
  const cuplug_tensor *results; /* the gradients of weight and bias */
  int64_t n_rows, n, n_groups;
  float *partial;

  bool reserve(int64_t groups) {
    n_groups = groups;
    partial = call.workspace<float>(2 * groups * n + 1);
    return partial;
  }
  cuplug::grid grid(int64_t groups, int64_t width = 1) const {
    return {{(n + COLUMNS * width - 1) / (COLUMNS * width), groups}, {COLUMNS, TOGETHER}};
  }
  int add_up() const {
    return call.launch<groups_kernel<T, Op::IS_LAYER>>(
        grid(1), (const float *)partial, (int)n_groups, (T *)results[0].data,
        Op::IS_LAYER ? (T *)results[1].data : nullptr, n);
  }
};

/* Enough blocks to keep GPUs busy, with few sums to add up. With `blocks`, clusters of that many
 * share a row; a GPU that runs 132 blocks at once may run one of 4 or more clusters less. */
template <int W, int PACKS, bool IS_SPREAD = false, typename Op>
int run_held(columns<Op> &c, const Op &op, int64_t blocks = 1) {
  cuplug::grid grid = rows::grid_of(
      c.n_rows, rows::threads_of((c.n + blocks - 1) / blocks, PACKS * W, PACKS == 1 ? 1 : 32));
  const int64_t threads = (int64_t)grid.threads[0] * grid.threads[1],
                most = IS_SPREAD ? (blocks > 2 ? 120 : 132) / blocks
                                 : 132 * (PACKS == 1 ? 1024 : 512) / threads,
                groups = (int64_t)grid.blocks[0] < most ? (int64_t)grid.blocks[0] : most;
  grid.blocks[0] = groups * blocks;
  if (!c.reserve(groups)) return CUPLUG_ERROR_MEMORY;
  const rows::extents e = {c.n_rows, c.n};
  const int status = c.call.template launch<sums_kernel<Op, W, PACKS, IS_SPREAD>>(
      IS_SPREAD ? grid.in_clusters(blocks) : grid, e, op, c.partial);
  return status ? status : c.add_up();
}

/* For rows that `run_held` does not process: of up to HELD elements only without clusters. */
template <int W, int64_t HELD, typename Op> int run_again(columns<Op> &c, Op op) {
  const int64_t n_groups = c.n_rows < 8192 ? (c.n_rows + 255) / 256 : 32;
  const rows::extents e = {c.n_rows, c.n};
  op.of_row = c.call.template workspace<moments>(c.n_rows);
  if (!op.of_row || !c.reserve(n_groups)) return CUPLUG_ERROR_MEMORY;
  int status = rows::divide_by<W, Op::KEPT, HELD>(c.n, std::true_type(), [&](auto part, auto d) {
    return rows::launch_rows<typename decltype(part)::of>(c.call, e, d, op);
  });
  if (!status)
    status = c.call.template launch<columns_kernel<Op, W>>(c.grid(n_groups, W), e, op, c.partial);
  return status ? status : c.add_up();
}

template <typename Op> int run_aligned(columns<Op> &c, const Op &op) {
  return rows::by_width<typename Op::T>(c.n, [&](auto width) {
    constexpr int W = width;
    if (c.n <= 32 * W) return run_held<W, 1>(c, op);
    if constexpr (W == 4)
      if (c.n <= 8 * rows::MOST_THREADS) return run_held<W, 8 / W>(c, op);
    constexpr int64_t BLOCK = 16 * rows::MOST_THREADS, CLUSTER = BLOCK * rows::MOST_BLOCKS;
    if (c.n <= BLOCK) return run_held<W, 16 / W>(c, op);
    if constexpr (W == 4) /* of 16-bit elements, a second read takes less time than the waiting */
      if (c.n <= CLUSTER && rows::has_clusters())
        return run_held<W, 16 / W, true>(c, op, rows::blocks_of(c.n, 16));
    return run_again<W, (W == 4 ? CLUSTER : BLOCK)>(c, op);
  });
}

template <typename T> int copy(const cuplug::call &call, T *to, const T *from, int64_t n) {
  if (to == from) return CUPLUG_OK;
  return call.check(
      cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyDeviceToDevice, call.stream()));
}

/* Replaces x by an aligned copy if it is misaligned and read in packs. */
template <typename T> int align(const cuplug::call &call, T *&x, int64_t n, bool has_packs) {
  if (!has_packs || rows::are_aligned(x)) return CUPLUG_OK;
  using element = std::remove_const_t<T>;
  element *const aligned = call.workspace<element>(n);
  if (!aligned) return CUPLUG_ERROR_MEMORY;
  const int status = copy<element>(call, aligned, x, n);
  x = aligned;
  return status;
}

template <typename Op>
int run_backward_of(const cuplug::call &call, const cuplug_tensor *t, float eps) {
  using T = typename Op::T;
  const cuplug_tensor *grad = t + Op::IS_ADDED, *x = grad + 1 + Op::IS_ADDED, *grad_x = x + 2;
  columns<Op> c = {call, grad_x + 1, rows::count(x), rows::length(x)};
  const int64_t n_elements = c.n_rows * c.n;
  const bool has_packs = c.n % (int64_t)(16 / sizeof(T)) == 0;
  if (c.n == 0) return CUPLUG_OK;
  if (c.n_rows == 0) return c.reserve(0) ? c.add_up() : CUPLUG_ERROR_MEMORY;
  Op op = {};
  op.grad = (const T *)grad->data, op.x = (const T *)x->data, op.weight = (const T *)x[1].data;
  op.grad_x = (T *)grad_x->data, op.eps = eps;
  if (Op::IS_ADDED) op.residual = (const T *)grad[1].data, op.grad_residual = (T *)t->data;
  int status = align(call, op.weight, c.n, has_packs);
  for (const T **array : {&op.grad, &op.x, &op.residual})
    if (!status) status = align(call, *array, n_elements, has_packs);
  for (T **array : {&op.grad_x, &op.grad_residual})
    if (!status) status = align(call, *array, n_elements, has_packs);
  if (!status) status = run_aligned(c, op);
  if (!status) status = copy(call, (T *)grad_x->data, op.grad_x, n_elements);
  return status || !Op::IS_ADDED ? status
                                 : copy<T>(call, (T *)t->data, op.grad_residual, n_elements);
}

template <bool IS_LAYER, bool IS_ADDED> int run_backward(const cuplug_call *call) {
  return rows::by_dtype(call->tensors, [=](auto zero) {
    return run_backward_of<backward<decltype(zero), IS_LAYER, IS_ADDED>>(call, call->tensors,
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
  return run_backward<false, false>(call);
}
CUPLUG_ENTRY int layer_norm_backward_cuda(const cuplug_call *call) {
  return run_backward<true, false>(call);
}
CUPLUG_ENTRY int add_rms_norm_backward_cuda(const cuplug_call *call) {
  return run_backward<false, true>(call);
}
CUPLUG_ENTRY int add_layer_norm_backward_cuda(const cuplug_call *call) {
  return run_backward<true, true>(call);
}
