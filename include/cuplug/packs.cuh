/* SPDX-License-Identifier: Apache-2.0 */
/* Packs of elements, and where elements of arrays of any strides lie, for CUDA kernels. Stands
 * after <cuplug/loop.h> and the types of <stdint.h>, and needs no other header: NVRTC is given it
 * as text. No part of the ABI. */
#ifndef CUPLUG_PACKS_CUH
#define CUPLUG_PACKS_CUH

namespace cuplug {

constexpr int THREADS = 256;

/* ---- Packs: elements of each array side by side ---------------------------------------------- */

template <typename T, int WIDTH> struct alignas(WIDTH * sizeof(T)) pack { T value[WIDTH]; };

/* The pack at an element; one that stands still has the same element WIDTH times. */
template <int WIDTH, bool STILL, typename T>
__device__ inline pack<T, WIDTH> load(const T *data, int64_t at) {
  if constexpr (!STILL) return *reinterpret_cast<const pack<T, WIDTH> *>(data + at);
  [[maybe_unused]] pack<T, WIDTH> result;
  const T value = data[at];
#pragma unroll
  for (int k = 0; k < WIDTH; k++) result.value[k] = value;
  return result;
}

/* ---- Places ---------------------------------------------------------------------------------- */

__device__ inline unsigned divide(unsigned n, const cuplug_divisor &by) {
  return (__umulhi(n, by.magic) + n) >> by.shift;
}
__device__ inline int64_t divide(int64_t n, const cuplug_divisor &by) {
  return (int64_t)((__umul64hi((uint64_t)n, by.wide_magic) + (uint64_t)n) >> by.shift);
}

template <int N> struct divisors { cuplug_divisor of[N ? N : 1]; };
template <int N_ARRAYS, int N> struct strides { long long of[N_ARRAYS][N ? N : 1]; };

/* Loops of a kernel for any number of dimensions stay small. */
template <int NDIM> constexpr int AT_ONCE = NDIM <= 8 ? 8 : 1;

/* Adds to `at` where element n of the first `ndim` dimensions of a loop lies in each array, in
 * elements; returns its index in the last of them. */
template <int N, int N_ARRAYS, typename INDEX>
__device__ inline INDEX locate(INDEX n, const divisors<N> &sizes, const strides<N_ARRAYS, N> &steps,
                               int64_t (&at)[N_ARRAYS], int ndim = N) {
  INDEX last = 0;
#pragma unroll AT_ONCE < N>
  for (int d = ndim - 1; d >= 0; d--) {
    const INDEX rest = d ? divide(n, sizes.of[d]) : 0, index = n - rest * (INDEX)sizes.of[d].size;
#pragma unroll
    for (int k = 0; k < N_ARRAYS; k++) at[k] += (int64_t)index * steps.of[k][d];
    if (d == ndim - 1) last = index;
    n = rest;
  }
  return last;
}

namespace walks {

/* ---- Packs of all arrays --------------------------------------------------------------------- */

template <int WIDTH, typename... T> struct packs {};
template <int WIDTH, typename T, typename... REST> struct packs<WIDTH, T, REST...> {
  pack<T, WIDTH> first;
  packs<WIDTH, REST...> rest;
};

template <int K, int WIDTH, typename T, typename... REST>
__device__ inline auto &get(packs<WIDTH, T, REST...> &p) {
  if constexpr (K == 0)
    return p.first;
  else
    return get<K - 1>(p.rest);
}

template <int K, typename T, typename... REST> struct type_at {
  using type = typename type_at<K - 1, REST...>::type;
};
template <typename T, typename... REST> struct type_at<0, T, REST...> { using type = T; };

/* Rows are as wide as leaves their columns in different banks. */
template <typename T, int SIDE, bool IS_THERE> struct tile {
  static constexpr int PAD = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
  T at[SIDE][SIDE + PAD];
};
template <typename T, int SIDE> struct tile<T, SIDE, false> {};

template <int SIDE, unsigned MASK, typename... T> struct tiles {};
template <int SIDE, unsigned MASK, typename T, typename... REST>
struct tiles<SIDE, MASK, T, REST...> {
  tile<T, SIDE, (MASK & 1) != 0> first;
  tiles<SIDE, (MASK >> 1), REST...> rest;
};

/* Arrays with elements of these types; a bit for each that is read, and that is written. */
template <unsigned READS, unsigned WRITES, typename... T> struct walked {
  static constexpr int N = sizeof...(T);
  static constexpr unsigned READ = READS, WRITTEN = WRITES;
  template <int WIDTH> using packs = walks::packs<WIDTH, T...>;
  template <int SIDE, unsigned MASK> using tiles = walks::tiles<SIDE, MASK, T...>;
  template <int K> using type = typename type_at<K, T...>::type;
  void *arrays[N];
  template <int K> __device__ type<K> *data() const { return static_cast<type<K> *>(arrays[K]); }
};

template <int K> struct constant { static constexpr int value = K; };

/* Calls f for each number below N, as a type. */
template <int N, int K = 0, class F> __device__ inline void each(const F &f) {
  if constexpr (K < N) {
    f(constant<K>());
    each<N, K + 1>(f);
  }
}

/* Calls f for each array in a mask. */
template <unsigned MASK, int K = 0, class F> __device__ inline void each_of(const F &f) {
  if constexpr (MASK >> K != 0) {
    if constexpr (MASK >> K & 1) f(constant<K>());
    if constexpr (K < 31) each_of<MASK, K + 1>(f);
  }
}

/* WIDTH elements that lie `step` apart. */
template <int WIDTH, typename T>
__device__ inline pack<T, WIDTH> load_each(const T *from, int64_t step) {
  pack<T, WIDTH> result;
#pragma unroll
  for (int k = 0; k < WIDTH; k++) result.value[k] = from[k * step];
  return result;
}

/* A pack of the bytes of two, without the first `shift` ones. */
template <int WORDS>
__device__ inline pack<unsigned, WORDS> shifted(const pack<unsigned, WORDS> (&two)[2],
                                                unsigned shift) {
  pack<unsigned, 2 * WORDS> words;
  pack<unsigned, WORDS> result;
#pragma unroll
  for (int k = 0; k < 2 * WORDS; k++) words.value[k] = two[k / WORDS].value[k % WORDS];
#pragma unroll
  for (int step = WORDS / 2; step > 0; step /= 2)
#pragma unroll
    for (int k = 0; k + step < 2 * WORDS; k++)
      if (shift & 4 * step) words.value[k] = words.value[k + step];
#pragma unroll
  for (int k = 0; k < WORDS; k++)
    result.value[k] = __funnelshift_r(words.value[k], words.value[k + 1], shift % 4 * 8);
  return result;
}

/* The pack at any address. A misaligned one is cut out of the two aligned ones that it lies in,
 * where these have nothing but the `before` elements ahead of it and the `after` ones from it on.
 */
template <int WIDTH, typename T>
__device__ inline pack<T, WIDTH> load_anywhere(const T *from, int64_t before, int64_t after) {
  constexpr int BYTES = WIDTH * sizeof(T), WORDS = BYTES / 4;
  const unsigned shift = reinterpret_cast<uint64_t>(from) % BYTES;
  if (!shift) return load<WIDTH, false>(from, 0);
  if constexpr (WORDS && WIDTH > 1) {
    const int64_t size = sizeof(T);
    if (before * size >= shift && after * size >= 2 * BYTES - shift) {
      using words = pack<unsigned, WORDS>;
      const words *lies =
          reinterpret_cast<const words *>(reinterpret_cast<const char *>(from) - shift);
      const words two[2] = {lies[0], lies[1]}, found = shifted(two, shift);
      pack<T, WIDTH> result;
      memcpy(&result, &found, BYTES);
      return result;
    }
  }
  return load_each<WIDTH>(from, 1);
}

} // namespace walks
} // namespace cuplug

#endif
