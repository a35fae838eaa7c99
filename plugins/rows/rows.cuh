/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of rows: the threads of one threadIdx.y share a row, which is read once if their
 * registers hold it. The division of a row depends only on its length, so its bits do not depend on
 * the number of rows or on their alignment. */
#ifndef CUPLUG_PLUGINS_ROWS_CUH
#define CUPLUG_PLUGINS_ROWS_CUH

#include <cooperative_groups.h>
#include <cuplug/plugin.hpp>
#include <type_traits>

#include "rows/packs.cuh"

namespace rows {

constexpr int MOST_THREADS = 512, LEAST_THREADS = 128; /* of a block */
constexpr int MOST_WARPS = MOST_THREADS / 32;
constexpr int MOST_BLOCKS = 8; /* blocks of a cluster on any GPU that supports clusters */

/* The pointers of a call's arrays. */
struct extents {
  int64_t n_rows, n;
};

template <int N> struct sums { float of[N]; };

/* Two arrays that are read as their sum, or written with the same values. */
template <typename T> struct sum_of { const T *a, *b; };
template <typename T> struct both { T *a, *b; };

template <typename From> struct element {};
template <typename T> struct element<const T *> { using of = T; };
template <typename T> struct element<T *> { using of = T; };
template <typename T> struct element<sum_of<T>> { using of = T; };
template <typename From> using element_of = typename element<From>::of;

/* The value of the thread whose lane differs in a bit, for complete words. */
template <typename V> __device__ V exchanged(const V &value, int lane) {
  uint32_t words[sizeof value / 4];
  static_assert(sizeof words == sizeof value, "");
  memcpy(words, &value, sizeof value);
#pragma unroll
  for (uint32_t &word : words) word = __shfl_xor_sync(0xffffffffu, word, lane, 32);
  V found;
  memcpy(&found, words, sizeof value);
  return found;
}

/* Combines the values of n adjacent threads, a power of two up to 32, and returns the result in
 * each of them. */
template <typename V, typename Op> __device__ V reduce_lanes(V value, int n, Op op) {
#pragma unroll
  for (int lane = 16; lane; lane /= 2)
    if (lane < n) value = op(value, exchanged(value, lane));
  return value;
}

/* The blocks that share a row: one or, with IS_SPREAD, a cluster, whose blocks write to each
 * other's shared memory. Code for GPUs before 9.0 has no clusters. */
template <bool IS_SPREAD> struct team {
  static constexpr bool EXISTS = !IS_SPREAD;
  __device__ static int size() { return 1; }
  __device__ static int rank() { return 0; }
  __device__ static void begin() {}
  __device__ static void wait() {}
};
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900
template <> struct team<true> {
  static constexpr bool EXISTS = true;
  __device__ static auto all() { return cooperative_groups::this_cluster(); }
  __device__ static int size() { return (int)all().num_blocks(); }
  __device__ static int rank() { return (int)all().block_rank(); }
  /* Each running block signals this. All wait for the signals before they write to others' shared
   * memory. */
  __device__ static void begin() { all().barrier_arrive(); }
  __device__ static void wait() { all().barrier_wait(); }
};
#endif

/* A thread's part of a row: PACKS packs of W elements or, with PACKS = 0, any number of them, which
 * each loop reads again. Values are floats, whatever the arrays' dtype. Without IS_ALIGNED, the
 * elements of a pack are moved one by one. With IS_SPREAD, a cluster shares the row. */
template <int W_, int PACKS_, bool IS_ALIGNED, bool IS_SPREAD_ = false> struct part {
  static constexpr int W = W_, PACKS = PACKS_;
  static constexpr bool IS_HELD = PACKS != 0;     /* registers hold the row */
  static constexpr bool IS_LONG = PACKS * W > 32; /* but not as floats */
  static constexpr bool IS_SPREAD = IS_SPREAD_;
  using team = rows::team<IS_SPREAD>;
  using count = std::conditional_t<IS_HELD, int, int64_t>;
  int64_t row, length;
  count n;   /* elements of the row, 0 if the row does not exist */
  int *turn; /* of the slots that reductions share */

  template <typename T> __device__ T *at(T *array) const { return array + row * length; }
  template <typename T> __device__ sum_of<T> at(sum_of<T> x) const { return {at(x.a), at(x.b)}; }
  template <typename T> __device__ both<T> at(both<T> x) const { return {at(x.a), at(x.b)}; }
  /* The number of this thread among those that share a row, and their total. */
  __device__ int thread() const { return team::rank() * blockDim.x + threadIdx.x; }
  __device__ int n_threads() const { return team::size() * blockDim.x; }
  /* One of them, which stores the single results of the row. */
  __device__ bool is_first() const { return thread() == 0 && n != 0; }

  template <typename T> __device__ pack<T, W> load(const T *from, count first) const {
    pack<T, W> p = {};
    if constexpr (IS_ALIGNED && W > 1) {
      pack<uint32_t, 4> words = {};
      if (first < n) words = *reinterpret_cast<const pack<uint32_t, 4> *>(from + first);
      static_assert(sizeof words == sizeof p, "");
      memcpy(&p, &words, sizeof p);
    } else if (first < n)
#pragma unroll
      for (int k = 0; k < W; k++) p.value[k] = from[first + k];
    return p;
  }
  template <typename T> __device__ void store(T *to, count first, const pack<T, W> &p) const {
    if constexpr (IS_ALIGNED) {
      if (first < n) *reinterpret_cast<pack<T, W> *>(to + first) = p;
    } else if (first < n)
#pragma unroll
      for (int k = 0; k < W; k++) to[first + k] = p.value[k];
  }

  /* a + b, rounded. */
  template <typename T> __device__ pack<T, W> load(sum_of<T> from, count first) const {
    pack<T, W> rounded;
    narrow(of_pack([](float a, float b) { return a + b; }, wide(load(from.a, first)),
                   wide(load(from.b, first)))
               .value,
           rounded);
    return rounded;
  }

  /* Stores floats, rounded. */
  template <typename T> __device__ void put(T *to, count first, const float (&values)[W]) const {
    pack<T, W> rounded;
    narrow(values, rounded);
    store(to, first, rounded);
  }
  template <typename T>
  __device__ void put(both<T> to, count first, const float (&values)[W]) const {
    put(to.a, first, values);
    put(to.b, first, values);
  }

  /* Calls f(i, first) for this thread's packs. */
  template <typename F> __device__ void over_packs(F f) const {
    if constexpr (IS_HELD) {
#pragma unroll
      for (int i = 0; i < PACKS; i++) f(i, (i * n_threads() + thread()) * W);
    } else {
      for (count first = thread() * W; first < n; first += n_threads() * W) f(0, first);
    }
  }

  /* Elements of an array that one loop uses. */
  template <typename From> struct streamed {
    From from;
    __device__ pack<float, W> get(const part &p, int, count first) const {
      return wide(p.load(from, first));
    }
  };
  template <typename From> __device__ streamed<From> stream(From from) const { return {from}; }

  /* The same, read at once if registers can hold it. */
  template <typename T> struct fetched {
    pack<T, W> of[IS_HELD ? PACKS : 1];
    __device__ pack<float, W> get(const part &, int i, count) const { return wide(of[i]); }
  };
  template <typename From> __device__ auto fetch(From from) const {
    if constexpr (IS_HELD) {
      fetched<element_of<From>> found;
      over_packs([&](int i, count first) { found.of[i] = load(from, first); });
      return found;
    } else
      return stream(from);
  }

  /* f(value) of elements that several loops use: registers hold them, or each loop computes them.
   */
  struct held {
    pack<float, W> of[IS_HELD ? PACKS : 1];
    __device__ pack<float, W> get(const part &, int i, count) const { return of[i]; }
  };
  template <typename F, typename X> struct made {
    F f;
    X x;
    __device__ pack<float, W> get(const part &p, int i, count first) const {
      return of_pack(f, x.get(p, i, first));
    }
  };
  template <typename F, typename X> __device__ auto make(F f, const X &x) const {
    if constexpr (IS_HELD && !IS_LONG) {
      held found;
      over_packs([&](int i, count first) { found.of[i] = of_pack(f, x.get(*this, i, first)); });
      return found;
    } else
      return made<F, X>{f, x};
  }
  /* Elements of an array that several loops use. */
  template <typename T> __device__ auto keep(const T *from) const {
    if constexpr (sizeof(T) < 4 && (IS_SPREAD || IS_LONG)) /* in half the number of registers */
      return fetch(from);
    else
      return make([](float v) { return v; }, stream(from));
  }
  /* `to` += x, rounded, and stored. */
  template <typename T> __device__ auto add(T *to, const T *x) const {
    fetched<T> found;
    over_packs([&](int i, count first) {
      found.of[i] = load(sum_of<T>{to, x}, first);
      store(to, first, found.of[i]);
    });
    if constexpr (IS_HELD)
      return found;
    else
      return stream((const T *)to);
  }

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

  /* Calls f(values) for this thread's packs that are in the row. */
  template <typename F, typename X> __device__ void each_pack(F f, const X &x) const {
    over_packs([&](int i, count first) {
      if (first < n) f(x.get(*this, i, first).value);
    });
  }
  /* Calls f(values...) for this thread's elements. */
  template <typename F, typename... X> __device__ void each(F f, const X &...x) const {
    over_packs([&](int i, count first) {
      if (first < n) for_pack(f, x.get(*this, i, first)...);
    });
  }
  /* to = f(values...). */
  template <typename To, typename F, typename... X>
  __device__ void map(To to, F f, const X &...x) const {
    over_packs(
        [&](int i, count first) { put(to, first, of_pack(f, x.get(*this, i, first)...).value); });
  }

  /* Combines the values of all threads of a row, and returns the result in each of them. All
   * threads of the block call it. One barrier is enough, since the next reduction uses other slots.
   */
  template <typename V, typename Op> __device__ V reduce(V value, V identity, Op op) const {
    value = reduce_lanes(value, PACKS > 1 || IS_SPREAD ? 32 : blockDim.x, op);
    const int n_warps = blockDim.x / 32, lane = threadIdx.x % 32;
    if (!IS_SPREAD && n_warps <= 1) return value;
    __shared__ V of_warp[2][(IS_SPREAD ? MOST_BLOCKS : 1) * MOST_WARPS];
    V *const own = of_warp[(*turn)++ & 1] + threadIdx.y * n_warps;
    if constexpr (IS_SPREAD) return reduce_blocks(own, value, identity, op);
    if (lane == 0) own[threadIdx.x / 32] = value;
    __syncthreads();
    return reduce_lanes(lane % MOST_WARPS < n_warps ? own[lane % MOST_WARPS] : identity, MOST_WARPS,
                        op);
  }
  __device__ float sum(float value) const {
    return reduce(value, 0.0f, [](float a, float b) { return a + b; });
  }
  template <int N> __device__ sums<N> sum(const sums<N> &values) const {
    return reduce(values, sums<N>{}, [](sums<N> a, const sums<N> &b) {
#pragma unroll
      for (int k = 0; k < N; k++) a.of[k] += b.of[k];
      return a;
    });
  }
  __device__ float greatest(float value) const {
    return reduce(value, (float)-INFINITY, [](float a, float b) { return fmaxf(a, b); });
  }

private:
  /* The values of all warps of a cluster, which each of its blocks receives in `own`. */
  template <typename V, typename Op>
  __device__ V reduce_blocks(V *own, V value, V identity, Op op) const {
    const int n = n_threads() / 32, lane = threadIdx.x % 32;
    const auto all = team::all();
    if (*turn == 1) team::wait();
    if (lane < team::size()) *all.map_shared_rank(own + thread() / 32, lane) = value;
    all.sync();
    value = identity;
#pragma unroll
    for (int k = 0; k < MOST_BLOCKS * MOST_WARPS; k += 32)
      if (k + lane < n) value = op(value, own[k + lane]);
    return reduce_lanes(value, 32, op);
  }

  template <typename T> __device__ static pack<float, W> wide(const pack<T, W> &p) {
    pack<float, W> found;
    widen(p, found.value);
    return found;
  }
  template <typename F, typename... P> __device__ static void for_pack(F &f, const P &...p) {
#pragma unroll
    for (int k = 0; k < W; k++) f(p.value[k]...);
  }
  template <typename F, typename... P>
  __device__ static pack<float, W> of_pack(const F &f, const P &...p) {
    pack<float, W> found;
#pragma unroll
    for (int k = 0; k < W; k++) found.value[k] = f(p.value[k]...);
    return found;
  }
};

/* e to the power of x, for results that are rounded to T. */
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

/* The part of this thread in the rows from `base` on, which its block processes together. */
template <typename Part> __device__ Part part_of(const extents &e, int64_t base, int *turn) {
  const int64_t row = base + threadIdx.y;
  const bool is_there = row < e.n_rows;
  return {is_there ? row : 0, e.n, (typename Part::count)(is_there ? e.n : 0), turn};
}

/* Runs op for each row. All threads of a row reduce together. Op::KEPT is the number of arrays of
 * which an op uses elements several times; two blocks of one with a long array run at once. */
template <typename Part, typename Op>
__global__ void __launch_bounds__(MOST_THREADS, Part::PACKS == 8 && Op::KEPT < 2 ? 2 : 0)
    rows_kernel(const __grid_constant__ extents e, const __grid_constant__ Op op) {
  using team = typename Part::team;
  if constexpr (team::EXISTS) {
    int turn = 0;
    team::begin();
    const int64_t step = (int64_t)gridDim.x / team::size() * blockDim.y;
    for (int64_t base = (int64_t)blockIdx.x / team::size() * blockDim.y; base < e.n_rows;
         base += step)
      op.run(part_of<Part>(e, base, &turn));
  }
}

} // namespace rows

#endif
