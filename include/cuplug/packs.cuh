/* SPDX-License-Identifier: Apache-2.0 */
/* Packs of elements, and the positions of elements in arrays of any strides, for CUDA kernels.
 * Include it after <cuplug/loop.h> and the types of <stdint.h>; it requires no other header,
 * because NVRTC receives it as text. Not part of the ABI. */
#ifndef CUPLUG_PACKS_CUH
#define CUPLUG_PACKS_CUH

namespace cuplug {

constexpr int THREADS = 256;

/* ---- Packs: elements of each array side by side ---------------------------------------------- */

template <typename T, int WIDTH> struct alignas(WIDTH * sizeof(T)) pack { T value[WIDTH]; };

/* The pack at an element; a broadcast one has the same element WIDTH times. */
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

/* Adds to `at` the position of element n of the first `ndim` dimensions of a loop in each array, in
 * elements; returns its index in the last of them. `near`: arrays that are unit-stride in that
 * one. */
template <int N, int N_ARRAYS, typename INDEX>
__device__ inline INDEX locate(INDEX n, const divisors<N> &sizes, const strides<N_ARRAYS, N> &steps,
                               int64_t (&at)[N_ARRAYS], int ndim = N, uint64_t near = 0) {
  INDEX last = 0;
#pragma unroll AT_ONCE < N>
  for (int d = ndim - 1; d >= 0; d--) {
    const INDEX rest = d ? divide(n, sizes.of[d]) : 0, index = n - rest * (INDEX)sizes.of[d].size;
#pragma unroll
    for (int k = 0; k < N_ARRAYS; k++)
      at[k] += (int64_t)index * (d == ndim - 1 && near >> k & 1 ? 1 : steps.of[k][d]);
    if (d == ndim - 1) last = index;
    n = rest;
  }
  return last;
}

namespace walks {

/* ---- Packs on their way ---------------------------------------------------------------------- */

/* The form of a pack until its elements are used: narrow ones are words. Otherwise their elements
 * would be unpacked where the ways of loading join, and each load waited for before the next. */
template <typename T, int WIDTH, bool IN_WORDS = (sizeof(T) < 4 && WIDTH * sizeof(T) % 4 == 0)>
struct held_pack {
  using type = pack<T, WIDTH>;
};
template <typename T, int WIDTH> struct held_pack<T, WIDTH, true> {
  using type = pack<unsigned, WIDTH * sizeof(T) / 4>;
};
template <typename T, int WIDTH> using held = typename held_pack<T, WIDTH>::type;

/* The same bytes as another type of this size. */
template <class TO, class FROM> __device__ inline void put(TO &to, const FROM &from) {
  static_assert(sizeof(TO) == sizeof(FROM), "");
  memcpy(&to, &from, sizeof to);
}
template <class TO, class FROM> __device__ inline TO same_bytes(const FROM &from) {
  TO to;
  put(to, from);
  return to;
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

/* A pack as it was loaded. A misaligned one is cut out of two aligned ones when it is used: that
 * waits for them. */
template <typename T, int WIDTH, bool MAY_SHIFT = (WIDTH > 1 && WIDTH * sizeof(T) % 4 == 0)>
struct loose_pack {
  held<T, WIDTH> loaded;
  __device__ void hold(held<T, WIDTH> all) { loaded = all; }
  __device__ held<T, WIDTH> whole() const { return loaded; }
};
template <typename T, int WIDTH> struct loose_pack<T, WIDTH, true> {
  pack<unsigned, WIDTH * sizeof(T) / 4> two[2];
  unsigned shift; /* bytes; 0: the first is all */
  __device__ void hold(held<T, WIDTH> all) {
    put(two[0], all);
    shift = 0;
  }
  __device__ held<T, WIDTH> whole() const {
    return same_bytes<held<T, WIDTH>>(shift ? shifted(two, shift) : two[0]);
  }
};

/* ---- Packs of all arrays --------------------------------------------------------------------- */

template <class... P> struct of_arrays {};
template <class P, class... REST> struct of_arrays<P, REST...> {
  P first;
  of_arrays<REST...> rest;
};

template <int K, class P, class... REST> __device__ inline auto &get(of_arrays<P, REST...> &p) {
  if constexpr (K == 0)
    return p.first;
  else
    return get<K - 1>(p.rest);
}

template <int K, typename T, typename... REST> struct type_at {
  using type = typename type_at<K - 1, REST...>::type;
};
template <typename T, typename... REST> struct type_at<0, T, REST...> { using type = T; };

/* Rows are as wide as leaves their columns in different banks, and consist of words of 4 bytes. */
template <typename T, int SIDE, bool IS_THERE> struct tile {
  static constexpr int PAD = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
  using element = T;
  alignas(T) alignas(4) T at[SIDE][SIDE + PAD];
};
template <typename T, int SIDE> struct tile<T, SIDE, false> {};

template <int SIDE, uint64_t MASK, typename... T> struct tiles {};
template <int SIDE, uint64_t MASK, typename T, typename... REST>
struct tiles<SIDE, MASK, T, REST...> {
  tile<T, SIDE, (MASK & 1) != 0> first;
  tiles<SIDE, (MASK >> 1), REST...> rest;
};

/* Arrays with elements of these types; a bit for each that is read, and that is written. */
template <uint64_t READS, uint64_t WRITES, typename... T> struct walked {
  static constexpr int N = sizeof...(T);
  static constexpr uint64_t READ = READS, WRITTEN = WRITES;
  static constexpr bool TAKES_PACKS = false; /* 1: whole ones have a call of their own, code(p) */
  template <int WIDTH> using packs = of_arrays<pack<T, WIDTH>...>;
  template <int WIDTH> using loose_packs = of_arrays<loose_pack<T, WIDTH>...>;
  template <int SIDE, uint64_t MASK> using tiles = walks::tiles<SIDE, MASK, T...>;
  template <int K> using type = typename type_at<K, T...>::type;
  /* The bytes of the widest element of these arrays. */
  __device__ static constexpr int widest(uint64_t mask) {
    const int bytes[] = {(int)sizeof(T)...};
    int most = 1;
    for (int k = 0; k < N; k++)
      if (mask >> k & 1 && bytes[k] > most) most = bytes[k];
    return most;
  }
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
template <uint64_t MASK, int K = 0, class F> __device__ inline void each_of(const F &f) {
  if constexpr (MASK >> K != 0) {
    if constexpr (MASK >> K & 1) f(constant<K>());
    if constexpr (K < 63) each_of<MASK, K + 1>(f);
  }
}

/* WIDTH elements at a distance of `step`. */
template <int WIDTH, typename T>
__device__ inline held<T, WIDTH> load_each(const T *from, int64_t step) {
  pack<T, WIDTH> result;
#pragma unroll
  for (int k = 0; k < WIDTH; k++) result.value[k] = from[k * step];
  return same_bytes<held<T, WIDTH>>(result);
}

/* The distance in bytes of an element from the preceding start of a pack. */
template <int WIDTH, typename T> __device__ inline unsigned misaligned(const T *from) {
  return reinterpret_cast<uint64_t>(from) % (WIDTH * sizeof(T));
}

template <int WIDTH, typename T> __device__ inline held<T, WIDTH> load_aligned(const T *from) {
  return *reinterpret_cast<const held<T, WIDTH> *>(from);
}

/* Loads a misaligned pack: as the two aligned ones that contain it, if these contain only the
 * `before` elements ahead of it and the `after` ones from it on. */
template <int WIDTH, typename T, typename OFFSET>
__device__ inline void load_misaligned(loose_pack<T, WIDTH> &to, const T *from, OFFSET before,
                                       OFFSET after) {
  if constexpr (WIDTH > 1 && WIDTH * sizeof(T) % 4 == 0) {
    const unsigned shift = misaligned<WIDTH>(from);
    const int ahead = shift / sizeof(T);
    if (before >= ahead && after >= 2 * WIDTH - ahead) {
      const auto *lies = reinterpret_cast<const pack<unsigned, WIDTH * sizeof(T) / 4> *>(
          reinterpret_cast<const char *>(from) - shift);
      to.two[0] = lies[0];
      to.two[1] = lies[1];
      to.shift = shift;
      return;
    }
  }
  to.hold(load_each<WIDTH>(from, 1));
}

/* Stores a pack whose elements are at a distance of `step`. */
template <int WIDTH, typename T>
__device__ inline void store_along(T *to, int64_t step, const pack<T, WIDTH> &value) {
  const auto all = same_bytes<held<T, WIDTH>>(value);
  if (step == 1 && !misaligned<WIDTH>(to)) {
    *reinterpret_cast<held<T, WIDTH> *>(to) = all;
    return;
  }
  const auto each = same_bytes<pack<T, WIDTH>>(all);
#pragma unroll
  for (int j = 0; j < WIDTH; j++) to[j * step] = each.value[j];
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* Of numbers of elements, which are negative ahead of a line. */
template <typename INDEX> struct signed_index { using type = int64_t; };
template <> struct signed_index<unsigned> { using type = int; };

/* The elements `from` to `to` - 1 of a pack that begins with element `first` of the loop; in the
 * line's last dimension that is `column`, and in each array `at`. */
template <int WIDTH, int N_ARRAYS, typename INDEX> struct piece {
  using offset = typename signed_index<INDEX>::type;
  offset first = 0, column = 0;
  int from = 0, to = 0;
  int64_t at[N_ARRAYS] = {};
  __device__ bool is_whole() const { return to - from == WIDTH; }
  __device__ bool has(int j) const { return j >= from && j < to; }
};

/* The pack with this number, one for each thread, and the part of its line that it contains. */
template <int WIDTH, int N, typename INDEX, class CODE>
__device__ inline piece<WIDTH, CODE::N, INDEX>
piece_of(const CODE &code, INDEX item, const cuplug_loop_split &cut, int ndim,
         const divisors<N> &sizes, const strides<CODE::N, N> &steps, uint64_t near) {
  piece<WIDTH, CODE::N, INDEX> own;
  using offset = typename piece<WIDTH, CODE::N, INDEX>::offset;
  const bool is_one = (ndim == 1 && !(CODE::WRITTEN & ~near)) || !cut.items.size;
  const INDEX line = is_one ? 0 : divide(item, cut.items);
  const offset size = (offset)cut.line, begin = (offset)line * size;
  offset low = (offset)(item - line * (INDEX)cut.items.size) * WIDTH - cut.lead;
  const INDEX begins = (INDEX)(is_one && low > 0 ? low : begin);
  own.column = (offset)locate(begins, sizes, steps, own.at, ndim, near);
  if (!is_one) {
    each_of<CODE::WRITTEN>([&](auto k) {
      constexpr int K = decltype(k)::value;
      const uint64_t address = reinterpret_cast<uint64_t>(code.template data<K>() + own.at[K]);
      using element = typename CODE::template type<K>;
      if (K == cut.anchor) low -= address % (WIDTH * sizeof(element)) / sizeof(element);
    });
    own.column = low;
#pragma unroll
    for (int k = 0; k < CODE::N; k++)
      own.at[k] += near >> k & 1 ? low : low * steps.of[k][ndim - 1];
  }
  const offset left = size - low;
  own.first = begin + low;
  own.from = low < 0 ? (int)-low : 0;
  own.to = left < WIDTH ? (int)left : WIDTH;
  return own;
}

} // namespace walks
} // namespace cuplug

#endif
