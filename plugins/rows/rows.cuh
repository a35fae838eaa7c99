/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of rows: the threads of one threadIdx.y share a row, which is read once where their
 * registers hold it. How a row is divided depends on its length alone, so its bits do not depend
 * on how many rows there are, or on their alignment. */
#ifndef CUPLUG_PLUGINS_ROWS_CUH
#define CUPLUG_PLUGINS_ROWS_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuplug/plugin.hpp>
#include <type_traits>

namespace rows {

constexpr int MOST_THREADS = 512;

template <typename T> constexpr int width = 16 / sizeof(T);
template <typename T> struct alignas(16) pack { T value[width<T>]; };

/* Of the arrays of a call. */
struct extents {
  int64_t n_rows, n;
  bool is_packed; /* all rows can be accessed 16 bytes at a time */
};

template <typename T> __device__ pack<T> load(const T *row, int64_t first, const extents &e) {
  pack<T> p = {};
  if (e.is_packed) {
    if (first < e.n) p = *reinterpret_cast<const pack<T> *>(row + first);
  } else {
#pragma unroll
    for (int k = 0; k < width<T>; k++)
      if (first + k < e.n) p.value[k] = row[first + k];
  }
  return p;
}

template <typename T>
__device__ void store(T *row, int64_t first, const extents &e, const pack<T> &p) {
  if (e.is_packed) {
    if (first < e.n) *reinterpret_cast<pack<T> *>(row + first) = p;
  } else {
#pragma unroll
    for (int k = 0; k < width<T>; k++)
      if (first + k < e.n) row[first + k] = p.value[k];
  }
}

/* This thread's elements of a row: in registers, or without PACKS read again by each loop. */
template <typename T, int PACKS> class elements {
  const T *row_;
  pack<T> kept_[PACKS ? PACKS : 1];

public:
  __device__ elements(const T *row, const extents &e) : row_(row) {
#pragma unroll
    for (int i = 0; i < PACKS; i++)
      kept_[i] = load(row, (int64_t)(i * blockDim.x + threadIdx.x) * width<T>, e);
  }
  __device__ pack<T> get(int i, int64_t first, const extents &e) const {
    return PACKS ? kept_[i] : load(row_, first, e);
  }
};

template <typename T, int PACKS, typename F> __device__ void over_packs(const extents &e, F f) {
  if constexpr (PACKS != 0) {
#pragma unroll
    for (int i = 0; i < PACKS; i++) f(i, (int64_t)(i * blockDim.x + threadIdx.x) * width<T>);
  } else {
    for (int64_t at = threadIdx.x; at * width<T> < e.n; at += blockDim.x) f(0, at * width<T>);
  }
}

/* Calls f(values...) for the elements of rows that are this thread's. */
template <typename T, int PACKS, typename F, typename... X>
__device__ void each(const extents &e, F f, const X &...x) {
  const auto apply = [&](int64_t first, const auto &...p) {
    const int n = (int)(e.n - first < width<T> ? e.n - first : width<T>);
#pragma unroll
    for (int k = 0; k < width<T>; k++)
      if (k < n) f((float)p.value[k]...);
  };
  over_packs<T, PACKS>(e, [&](int i, int64_t first) { apply(first, x.get(i, first, e)...); });
}

/* out = f(values...). */
template <typename T, int PACKS, typename F, typename... X>
__device__ void map(T *out, const extents &e, F f, const X &...x) {
  const auto apply = [&](int64_t first, const auto &...p) {
    pack<T> to;
#pragma unroll
    for (int k = 0; k < width<T>; k++) to.value[k] = (T)f((float)p.value[k]...);
    store(out, first, e, to);
  };
  over_packs<T, PACKS>(e, [&](int i, int64_t first) { apply(first, x.get(i, first, e)...); });
}

struct plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct greater {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <typename Op> __device__ float reduce_warp(float value, Op op) {
#pragma unroll
  for (int lane = 16; lane; lane /= 2)
    value = op(value, __shfl_xor_sync(0xffffffffu, value, lane, 32));
  return value;
}

/* The values of all threads of a row put together, in each of them. All threads of the block call
 * it. */
template <typename Op> __device__ float reduce(float value, float identity, Op op) {
  value = reduce_warp(value, op);
  const int n_warps = blockDim.x / 32, lane = threadIdx.x % 32;
  if (n_warps == 1) return value;
  __shared__ float of_warp[MOST_THREADS / 32];
  float *const own = of_warp + threadIdx.y * n_warps;
  if (lane == 0) own[threadIdx.x / 32] = value;
  __syncthreads();
  value = reduce_warp(lane < n_warps ? own[lane] : identity, op);
  __syncthreads();
  return value;
}
__device__ inline float sum_of(float value) { return reduce(value, 0, plus()); }
__device__ inline float greatest_of(float value) { return reduce(value, -INFINITY, greater()); }

/* Calls op.run<PACKS>(extents, row, n_stored): threads without a row of their own take the last one
 * and store nothing, as all of a block reduce together. */
template <typename T, int PACKS, typename Op>
__global__ void __launch_bounds__(MOST_THREADS)
    rows_kernel(const __grid_constant__ extents e, const __grid_constant__ Op op) {
  const int64_t step = (int64_t)gridDim.x * blockDim.y;
  for (int64_t base = (int64_t)blockIdx.x * blockDim.y; base < e.n_rows; base += step) {
    const int64_t row = base + threadIdx.y;
    extents stored = e;
    if (row >= e.n_rows) stored.n = 0;
    op.template run<PACKS>(e, row < e.n_rows ? row : e.n_rows - 1, stored);
  }
}

template <int n> using packs_of = std::integral_constant<int, n>;

/* Runs op for each row. The arrays are those that it reads and writes by packs. */
template <typename T, typename Op, typename... P>
int launch(const cuplug::call &call, int64_t n_rows, int64_t n, const Op &op, const P *...arrays) {
  const extents e = {n_rows, n, n % width<T> == 0 && ((uint64_t)arrays | ... | 0) % 16 == 0};
  if (n_rows == 0 || n == 0) return CUPLUG_OK;
  const int64_t n_warps = (n + 32 * width<T> - 1) / (32 * width<T>); /* of a pack for each thread */
  const auto run = [&](auto packs) {
    const int64_t warps = packs ? (n_warps + packs - 1) / packs : MOST_THREADS / 32;
    const int64_t together = warps < 4 ? 4 / warps : 1;
    const cuplug::grid grid = {{cuplug::blocks(n_rows, together)}, {32 * warps, together}};
    return call.launch<rows_kernel<T, packs, Op>>(grid, e, op);
  };
  if (n_warps <= 1) return run(packs_of<1>());
  if (n_warps <= 4 * MOST_THREADS / 32) return run(packs_of<4>());
  return run(packs_of<0>());
}

/* run(T()) by the dtype of an array. */
template <typename Run> int by_dtype(const cuplug_tensor *x, Run run) {
  switch (cuplug_type(x)) {
  case CUPLUG_FLOAT16:
    return run(__half());
  case CUPLUG_BFLOAT16:
    return run(__nv_bfloat16());
  }
  return run(float());
}

inline int64_t length(const cuplug_tensor *x) { return x->shape[x->ndim - 1]; }
inline int64_t count(const cuplug_tensor *x) {
  const int64_t n = length(x);
  return n ? cuplug_n_elements(x) / n : 0;
}

} // namespace rows

#endif
