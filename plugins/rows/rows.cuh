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

constexpr int MOST_THREADS = 512, LEAST_THREADS = 128; /* of a block */

/* W elements side by side, moved at once where they are aligned. */
template <typename T, int W> struct alignas(sizeof(T) * W) pack { T value[W]; };

/* Of the arrays of a call. */
struct extents {
  int64_t n_rows, n;
  bool is_aligned; /* packs can be moved at once */
};

/* Floats as T, rounded: two at a time where the GPU can. */
template <typename T, int W> __device__ void narrow(const float (&from)[W], pack<T, W> &to) {
#pragma unroll
  for (int k = 0; k < W; k++) to.value[k] = (T)from[k];
}
template <int W> __device__ void narrow(const float (&from)[W], pack<__nv_bfloat16, W> &to) {
  if constexpr (W % 2 == 0)
#pragma unroll
    for (int k = 0; k < W; k += 2)
      reinterpret_cast<__nv_bfloat162 &>(to.value[k]) = __floats2bfloat162_rn(from[k], from[k + 1]);
  else
    to.value[0] = __float2bfloat16_rn(from[0]);
}
template <int W> __device__ void narrow(const float (&from)[W], pack<__half, W> &to) {
  if constexpr (W % 2 == 0)
#pragma unroll
    for (int k = 0; k < W; k += 2)
      reinterpret_cast<__half2 &>(to.value[k]) = __floats2half2_rn(from[k], from[k + 1]);
  else
    to.value[0] = __float2half_rn(from[0]);
}

/* A thread's part of a row: PACKS packs of W elements, or with PACKS = 0 any number of them, which
 * are read again by each loop. */
template <int W_, int PACKS_> struct part {
  static constexpr int W = W_, PACKS = PACKS_;
  using count = std::conditional_t<PACKS != 0, int, int64_t>;
  int64_t row, length;
  count n; /* elements of the row, 0 if it is not there */
  bool is_aligned;

  template <typename T> __device__ T *at(T *array) const { return array + row * length; }
  /* One thread of those that share a row: it stores what the row has one of. */
  __device__ bool is_first() const { return threadIdx.x == 0 && n != 0; }

  template <typename T> __device__ pack<T, W> load(const T *from, count first) const {
    pack<T, W> p = {};
    if (first >= n) return p;
    if constexpr (W > 1)
      if (!is_aligned) {
#pragma unroll
        for (int k = 0; k < W; k++) p.value[k] = from[first + k];
        return p;
      }
    return *reinterpret_cast<const pack<T, W> *>(from + first);
  }
  template <typename T> __device__ void store(T *to, count first, const pack<T, W> &p) const {
    if (first >= n) return;
    if constexpr (W > 1)
      if (!is_aligned) {
#pragma unroll
        for (int k = 0; k < W; k++) to[first + k] = p.value[k];
        return;
      }
    *reinterpret_cast<pack<T, W> *>(to + first) = p;
  }

  /* Calls f(i, first) for this thread's packs. */
  template <typename F> __device__ void over_packs(F f) const {
    if constexpr (PACKS != 0) {
#pragma unroll
      for (int i = 0; i < PACKS; i++) f(i, (int)(i * blockDim.x + threadIdx.x) * W);
    } else {
      for (count first = threadIdx.x * W; first < n; first += blockDim.x * W) f(0, first);
    }
  }

  /* Elements that several loops use: this thread's registers hold them if there are PACKS. */
  template <typename T> struct kept {
    const T *from;
    pack<T, W> of[PACKS ? PACKS : 1];
    __device__ pack<T, W> get(const part &p, int i, count first) const {
      if constexpr (PACKS != 0) return of[i];
      return p.load(from, first);
    }
  };
  template <typename T> __device__ kept<T> keep(const T *from) const {
    kept<T> found = {from, {}};
    if constexpr (PACKS != 0)
      over_packs([&](int i, count first) { found.of[i] = load(from, first); });
    return found;
  }
  /* `to` += x, rounded, and kept. */
  template <typename T> __device__ kept<T> add(T *to, const T *x) const {
    kept<T> found = {to, {}};
    over_packs([&](int i, count first) {
      const pack<T, W> a = load(to, first), b = load(x, first);
      float sums[W];
#pragma unroll
      for (int k = 0; k < W; k++) sums[k] = (float)a.value[k] + (float)b.value[k];
      narrow(sums, found.of[i]);
      store(to, first, found.of[i]);
    });
    return found;
  }
  /* Elements that one loop uses. */
  template <typename T> struct streamed {
    const T *from;
    __device__ pack<T, W> get(const part &p, int, count first) const { return p.load(from, first); }
  };
  template <typename T> __device__ streamed<T> stream(const T *from) const { return {from}; }

  /* The number of each element in its row. */
  struct numbered {
    __device__ pack<count, W> get(const part &, int, count first) const {
      pack<count, W> p;
#pragma unroll
      for (int k = 0; k < W; k++) p.value[k] = first + k;
      return p;
    }
  };
  __device__ numbered numbers() const { return {}; }

  /* Calls f(values...) for this thread's elements. */
  template <typename F, typename... X> __device__ void each(F f, const X &...x) const {
    over_packs([&](int i, count first) {
      if (first < n) of_pack(f, x.get(*this, i, first)...);
    });
  }
  /* to = f(values...). */
  template <typename T, typename F, typename... X>
  __device__ void map(T *to, F f, const X &...x) const {
    over_packs([&](int i, count first) { map_pack(to, first, f, x.get(*this, i, first)...); });
  }

private:
  template <typename T> __device__ static float value(T x) { return (float)x; }
  __device__ static count value(count x) { return x; }
  template <typename F, typename... P> __device__ static void of_pack(F &f, const P &...p) {
#pragma unroll
    for (int k = 0; k < W; k++) f(value(p.value[k])...);
  }
  template <typename T, typename F, typename... P>
  __device__ void map_pack(T *to, count first, F &f, const P &...p) const {
    float values[W];
#pragma unroll
    for (int k = 0; k < W; k++) values[k] = f(value(p.value[k])...);
    pack<T, W> made;
    narrow(values, made);
    store(to, first, made);
  }
};

struct plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct greater {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/* The values of up to 32 threads side by side, n of them, a power of two, in each of them. */
template <typename V, typename Op> __device__ V reduce_lanes(V value, int n, Op op) {
#pragma unroll
  for (int lane = 16; lane; lane /= 2)
    if (lane < n) value = op(value, __shfl_xor_sync(0xffffffffu, value, lane, 32));
  return value;
}

/* The values of all threads of a row put together, in each of them. All threads of the block call
 * it. */
template <typename V, typename Op> __device__ V reduce(V value, V identity, Op op) {
  value = reduce_lanes(value, blockDim.x, op);
  const int n_warps = blockDim.x / 32, lane = threadIdx.x % 32;
  if (n_warps <= 1) return value;
  __shared__ V of_warp[MOST_THREADS / 32];
  V *const own = of_warp + threadIdx.y * n_warps;
  if (lane == 0) own[threadIdx.x / 32] = value;
  __syncthreads();
  value = reduce_lanes(lane < n_warps ? own[lane] : identity, 32, op);
  __syncthreads();
  return value;
}
__device__ inline float sum_of(float value) { return reduce(value, 0.0f, plus()); }
__device__ inline float greatest_of(float value) {
  return reduce(value, (float)-INFINITY, greater());
}

/* e to the power of x, of results that are rounded to T. */
template <typename T> __device__ float exponential(float x) {
  if (sizeof(T) > 2) return expf(x);
#ifdef __CUDA_ARCH__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
  return y;
#else
  return exp2f(x * 1.44269504f);
#endif
}

/* Calls f(part) for each row of this thread; all threads of a block reduce together. */
template <int W, int PACKS, typename F> __device__ void over_rows(const extents &e, F f) {
  using own = part<W, PACKS>;
  const int64_t step = (int64_t)gridDim.x * blockDim.y;
  for (int64_t base = (int64_t)blockIdx.x * blockDim.y; base < e.n_rows; base += step) {
    const int64_t row = base + threadIdx.y;
    const bool is_there = row < e.n_rows;
    f(own{is_there ? row : 0, e.n, (typename own::count)(is_there ? e.n : 0), e.is_aligned});
  }
}

template <int W, int PACKS, typename Op>
__global__ void __launch_bounds__(MOST_THREADS)
    rows_kernel(const __grid_constant__ extents e, const __grid_constant__ Op op) {
  over_rows<W, PACKS>(e, [&](const part<W, PACKS> &p) { op.run(p); });
}

template <int n> using number = std::integral_constant<int, n>;

/* The way in which rows of n elements are divided, by n and the dtype alone: calls f(width, packs,
 * threads), in packs of 16 bytes if these divide a row. */
template <typename T, typename F> int divide(int64_t n, F f) {
  constexpr int WIDEST = 16 / sizeof(T);
  const auto with = [&](auto width, auto packs) {
    const int64_t of_warp = 32 * packs * width;
    int64_t threads = 1;
    if (n <= 32 * width) {
      while (threads * width < n) threads *= 2;
      return f(width, number<1>(), threads);
    }
    threads = (n + of_warp - 1) / of_warp * 32;
    if (threads <= MOST_THREADS) return f(width, packs, threads);
    return f(width, number<0>(), (int64_t)MOST_THREADS);
  };
  if (n % WIDEST == 0) return with(number<WIDEST>(), number<4>());
  return with(number<1>(), number<16>());
}

/* Blocks that share n_rows rows, `threads` for each. */
inline cuplug::grid grid_of(int64_t n_rows, int64_t threads) {
  const int64_t together = threads < LEAST_THREADS ? LEAST_THREADS / threads : 1;
  return {{cuplug::blocks(n_rows, together)}, {threads, together}};
}

template <typename... P> bool are_aligned(const P *...arrays) {
  return ((uint64_t)arrays | ... | 0) % 16 == 0;
}

/* Runs op for each row of n elements. The arrays are those that it moves by packs. */
template <typename T, typename Op, typename... P>
int launch(const cuplug::call &call, int64_t n_rows, int64_t n, const Op &op, const P *...arrays) {
  const extents e = {n_rows, n, are_aligned(arrays...)};
  if (n_rows == 0 || n == 0) return CUPLUG_OK;
  return divide<T>(n, [&](auto width, auto packs, int64_t threads) {
    return call.launch<rows_kernel<width, packs, Op>>(grid_of(n_rows, threads), e, op);
  });
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
