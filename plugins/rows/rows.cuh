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
};

/* Elements as floats: of a word with two numbers of bfloat16, the bits at their places. */
template <typename T, int W> __device__ void widen(const pack<T, W> &from, float (&to)[W]) {
#pragma unroll
  for (int k = 0; k < W; k++) to[k] = (float)from.value[k];
}
template <int W> __device__ void widen(const pack<__nv_bfloat16, W> &from, float (&to)[W]) {
  if constexpr (W % 2 == 0)
#pragma unroll
    for (int k = 0; k < W; k += 2) {
      const uint32_t word = reinterpret_cast<const uint32_t &>(from.value[k]),
                     bits[2] = {word << 16, word & 0xffff0000u};
      memcpy(&to[k], bits, sizeof bits);
    }
  else
    to[0] = __bfloat162float(from.value[0]);
}

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

template <int N> struct sums { float of[N]; };

template <typename V> __device__ V exchanged(V value, int lane) {
  return __shfl_xor_sync(0xffffffffu, value, lane, 32);
}
template <int N> __device__ sums<N> exchanged(sums<N> value, int lane) {
#pragma unroll
  for (int k = 0; k < N; k++) value.of[k] = exchanged(value.of[k], lane);
  return value;
}

/* The values of up to 32 threads side by side, n of them, a power of two, in each of them. */
template <typename V, typename Op> __device__ V reduce_lanes(V value, int n, Op op) {
#pragma unroll
  for (int lane = 16; lane; lane /= 2)
    if (lane < n) value = op(value, exchanged(value, lane));
  return value;
}

/* A thread's part of a row: PACKS packs of W elements, or with PACKS = 0 any number of them, which
 * are read again by each loop. Values are floats, whatever the arrays' dtype. Without IS_ALIGNED
 * the elements of a pack are moved one by one. */
template <int W_, int PACKS_, bool IS_ALIGNED> struct part {
  static constexpr int W = W_, PACKS = PACKS_;
  static constexpr bool IS_HELD = PACKS != 0; /* registers hold the row */
  using count = std::conditional_t<IS_HELD, int, int64_t>;
  int64_t row, length;
  count n;   /* elements of the row, 0 if it is not there */
  int *turn; /* of the places that reductions share */

  template <typename T> __device__ T *at(T *array) const { return array + row * length; }
  /* One thread of those that share a row: it stores what the row has one of. */
  __device__ bool is_first() const { return threadIdx.x == 0 && n != 0; }

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

  /* Stores floats, rounded. */
  template <typename T> __device__ void put(T *to, count first, const float (&values)[W]) const {
    pack<T, W> rounded;
    narrow(values, rounded);
    store(to, first, rounded);
  }

  /* Calls f(i, first) for this thread's packs. */
  template <typename F> __device__ void over_packs(F f) const {
    if constexpr (IS_HELD) {
#pragma unroll
      for (int i = 0; i < PACKS; i++) f(i, (int)(i * blockDim.x + threadIdx.x) * W);
    } else {
      for (count first = threadIdx.x * W; first < n; first += blockDim.x * W) f(0, first);
    }
  }

  /* Elements of an array that one loop uses. */
  template <typename T> struct streamed {
    const T *from;
    __device__ pack<float, W> get(const part &p, int, count first) const {
      return wide(p.load(from, first));
    }
  };
  template <typename T> __device__ streamed<T> stream(const T *from) const { return {from}; }

  /* The same, read at once where registers can hold it. */
  template <typename T> struct fetched {
    pack<T, W> of[IS_HELD ? PACKS : 1];
    __device__ pack<float, W> get(const part &, int i, count) const { return wide(of[i]); }
  };
  template <typename T> __device__ auto fetch(const T *from) const {
    if constexpr (IS_HELD) {
      fetched<T> found;
      over_packs([&](int i, count first) { found.of[i] = load(from, first); });
      return found;
    } else
      return stream(from);
  }

  /* f(value) of elements, which several loops use: registers hold them, or each makes them. */
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
    if constexpr (IS_HELD) {
      held found;
      over_packs([&](int i, count first) { found.of[i] = of_pack(f, x.get(*this, i, first)); });
      return found;
    } else
      return made<F, X>{f, x};
  }
  /* Elements of an array that several loops use. */
  template <typename T> __device__ auto keep(const T *from) const {
    return make([](float v) { return v; }, stream(from));
  }
  /* `to` += x, rounded, and kept. */
  template <typename T> __device__ auto add(T *to, const T *x) const {
    held found;
    over_packs([&](int i, count first) {
      const pack<float, W> sums = of_pack([](float a, float b) { return a + b; },
                                          wide(load(to, first)), wide(load(x, first)));
      pack<T, W> rounded;
      narrow(sums.value, rounded);
      store(to, first, rounded);
      found.of[i] = wide(rounded);
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

  /* Calls f(values...) for this thread's elements. */
  template <typename F, typename... X> __device__ void each(F f, const X &...x) const {
    over_packs([&](int i, count first) {
      if (first < n) for_pack(f, x.get(*this, i, first)...);
    });
  }
  /* to = f(values...). */
  template <typename T, typename F, typename... X>
  __device__ void map(T *to, F f, const X &...x) const {
    over_packs(
        [&](int i, count first) { put(to, first, of_pack(f, x.get(*this, i, first)...).value); });
  }

  /* The values of all threads of a row put together, in each of them. All threads of the block call
   * it. One barrier is enough, as the next reduction has other places. */
  template <typename V, typename Op> __device__ V reduce(V value, V identity, Op op) const {
    value = reduce_lanes(value, PACKS > 1 ? 32 : blockDim.x, op);
    const int n_warps = blockDim.x / 32, lane = threadIdx.x % 32;
    if (n_warps <= 1) return value;
    __shared__ V of_warp[2][MOST_THREADS / 32];
    V *const own = of_warp[(*turn)++ & 1] + threadIdx.y * n_warps;
    if (lane == 0) own[threadIdx.x / 32] = value;
    __syncthreads();
    constexpr int MOST = MOST_THREADS / 32;
    return reduce_lanes(lane % MOST < n_warps ? own[lane % MOST] : identity, MOST, op);
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

/* The part of this thread in the rows from `base` on that its block takes together. */
template <typename Part> __device__ Part part_of(const extents &e, int64_t base, int *turn) {
  const int64_t row = base + threadIdx.y;
  const bool is_there = row < e.n_rows;
  return {is_there ? row : 0, e.n, (typename Part::count)(is_there ? e.n : 0), turn};
}

/* Runs op for each row; all threads of a block reduce together. */
template <typename Part, typename Op>
__global__ void __launch_bounds__(MOST_THREADS)
    rows_kernel(const __grid_constant__ extents e, const __grid_constant__ Op op) {
  int turn = 0;
  const int64_t step = (int64_t)gridDim.x * blockDim.y;
  for (int64_t base = (int64_t)blockIdx.x * blockDim.y; base < e.n_rows; base += step)
    op.run(part_of<Part>(e, base, &turn));
}

template <int n> using number = std::integral_constant<int, n>;
template <typename T> struct type { using of = T; };

/* Threads of a row of which each has at most `most` elements at once; whole warps or a power of
 * two, at least `least`. */
inline int64_t threads_of(int64_t n, int64_t most, int64_t least = 1) {
  int64_t threads = least;
  while (threads < 32 && threads * most < n) threads *= 2;
  if (n > 32 * most) threads = (n + 32 * most - 1) / (32 * most) * 32;
  return threads < MOST_THREADS ? threads : MOST_THREADS;
}

/* Calls f(part's type) for rows of n elements whose thread has PACKS packs: of 16 bytes if these
 * divide a row. Where arrays are not aligned, packs are not held, with the same bits. */
template <int W, int PACKS, typename F> int with_part(bool is_aligned, F f) {
  if constexpr (W > 1)
    if (!is_aligned) return f(type<part<W, 0, false>>());
  return f(type<part<W, PACKS, true>>());
}

/* The way in which rows of n elements are divided, by n and the dtype alone: calls f(part's type,
 * threads). */
template <int W, typename F> int divide_by(int64_t n, bool is_aligned, F f) {
  const auto with = [&](auto packs, int64_t most, int64_t least) {
    return with_part<W, packs>(is_aligned,
                               [&](auto part) { return f(part, threads_of(n, most, least)); });
  };
  constexpr int MANY = W > 1 ? 4 * W : 16;
  if (n <= 32 * W) return with(number<1>(), W, 1);
  if (n <= MANY * MOST_THREADS) return with(number<MANY / W>(), MANY, 32);
  if constexpr (W == 4)
    if (n <= 2 * MANY * MOST_THREADS) return with(number<2 * MANY / W>(), 2 * MANY, 32);
  return with(number<0>(), 1, 32);
}

/* Calls f(number of elements of a pack). */
template <typename T, typename F> int by_width(int64_t n, F f) {
  constexpr int WIDEST = 16 / sizeof(T);
  return n % WIDEST == 0 ? f(number<WIDEST>()) : f(number<1>());
}

/* Blocks that share n_rows rows, `threads` for each. */
inline cuplug::grid grid_of(int64_t n_rows, int64_t threads) {
  const int64_t together = threads < LEAST_THREADS ? LEAST_THREADS / threads : 1;
  return {{cuplug::blocks(n_rows, together)}, {threads, together}};
}

template <typename... P> bool are_aligned(const P *...arrays) {
  return ((uint64_t)arrays | ... | 0) % 16 == 0;
}

template <typename Part, typename Op>
int launch_rows(const cuplug::call &call, const extents &e, int64_t threads, const Op &op) {
  return call.launch<rows_kernel<Part, Op>>(grid_of(e.n_rows, threads), e, op);
}

/* Runs op for each row of n elements. The arrays are those that it moves by packs. */
template <typename T, typename Op, typename... P>
int launch(const cuplug::call &call, int64_t n_rows, int64_t n, const Op &op, const P *...arrays) {
  if (n_rows == 0 || n == 0) return CUPLUG_OK;
  return by_width<T>(n, [&](auto width) {
    return divide_by<width>(n, are_aligned(arrays...), [&](auto part, int64_t threads) {
      return launch_rows<typename decltype(part)::of>(call, {n_rows, n}, threads, op);
    });
  });
}

/* The same for an op that uses each element once. */
template <typename T, typename Op, typename... P>
int launch_map(const cuplug::call &call, int64_t n_rows, int64_t n, const Op &op,
               const P *...arrays) {
  if (n_rows == 0 || n == 0) return CUPLUG_OK;
  return by_width<T>(n, [&](auto width) {
    return with_part<width, 0>(are_aligned(arrays...), [&](auto part) {
      return launch_rows<typename decltype(part)::of>(call, {n_rows, n}, threads_of(n, width), op);
    });
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
