/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that a block sorts in its shared memory, by a bitonic network. Equal keys are ordered by
 * their index. */
#ifndef CUPLUG_PLUGINS_SORTING_SHORT_CUH
#define CUPLUG_PLUGINS_SORTING_SHORT_CUH

#include "sorting/gpu/radix.cuh"

namespace network {

constexpr int MOST = 1024, THREADS = MOST / 2, WARP = 32;

/* The number of keys of the network, with half as many threads. Keys after the m-th are ~0. */
inline __host__ __device__ int padded(int64_t m) {
  int n = 2;
  while (n < m) n *= 2;
  return n;
}

/* The threads of a block that sorts m keys. */
inline unsigned threads(int64_t m) {
  const int n = padded(m);
  return n > 2 * WARP ? n / 2 : WARP;
}

template <typename K> __device__ inline K key_of(const order &o, K bits) {
  if constexpr (sizeof(K) == 8)
    return order_key64(&o, bits);
  else
    return order_key32(&o, bits);
}

/* The key of element i of x, which has up to 4 bytes for a K of 32 bits. */
template <typename K> __device__ inline K key_at(const order &o, const void *x, int64_t i) {
  if constexpr (sizeof(K) == 8)
    return key_of(o, ((const uint64_t *)x)[i]);
  else
    return key_of<uint32_t>(o, o.n_bytes == 1   ? ((const uint8_t *)x)[i]
                               : o.n_bytes == 2 ? ((const uint16_t *)x)[i]
                                                : ((const uint32_t *)x)[i]);
}

/* The inverse. */
template <typename K> __device__ inline void put(const order &o, void *x, int64_t i, K key) {
  if constexpr (sizeof(K) == 8) {
    ((uint64_t *)x)[i] = order_bits64(&o, key);
  } else {
    const uint32_t bits = order_bits32(&o, key);
    if (o.n_bytes == 1)
      ((uint8_t *)x)[i] = (uint8_t)bits;
    else if (o.n_bytes == 2)
      ((uint16_t *)x)[i] = (uint16_t)bits;
    else
      ((uint32_t *)x)[i] = bits;
  }
}

/* Writes the output of a key that was number j of its line, to `to`. The line begins at element
 * `first`. Zeros and NaNs, which have several bit patterns, are copied from x. */
template <typename K>
__device__ inline void write_short(const sorting_short &s, int64_t line, int64_t first, int64_t to,
                                   int64_t j, K key) {
  if (!s.indices && !s.from) {
    if (sorting_is_zero(s.o, key) || sorting_is_nan(s.o, key))
      sorting_copy(s.o, s.x, first + j * s.axis.width, s.out, to);
    else
      put(s.o, s.out, to, key);
    return;
  }
  const int64_t from = s.keys ? s.index[line * s.m + j] : j, at = first + from * s.axis.width;
  if (s.indices) s.indices[to] = from;
  if (!s.from) return;
#define CASE(T) ((T *)s.out)[s.is_back ? at : to] = ((const T *)s.from)[s.is_back ? to : at];
  ELEMENTS_BY_WIDTH(s.element_bytes, CASE)
#undef CASE
}

/* Orders the keys of each pair at a distance of `step`: ascending in even parts of `size`, else
 * descending. If step <= WARP, a warp has all keys of a part of 2 * step. */
template <bool has_index, typename K>
__device__ inline void exchange(K *keys, uint32_t *index, int n, int size, int step) {
  const int p = threadIdx.x, i = 2 * p - (p & (step - 1)), j = i + step;
  if (p >= n / 2) return;
  const K a = keys[i], b = keys[j];
  const uint32_t at_a = has_index ? index[i] : 0, at_b = has_index ? index[j] : 0;
  const bool is_above = a > b || (a == b && at_a > at_b),
             is_below = a < b || (a == b && at_a < at_b);
  if (i & size ? !is_below : !is_above) return;
  keys[i] = b, keys[j] = a;
  if (has_index) index[i] = at_b, index[j] = at_a;
}

/* Sorts n keys, a power of two from 2 on, after all threads have written theirs. */
template <bool has_index, typename K> __device__ inline void sort(K *keys, uint32_t *index, int n) {
#pragma unroll 1
  for (int size = 2; size <= n; size *= 2)
#pragma unroll 1
    for (int step = size / 2; step > 0; step /= 2) {
      const int before = step == size / 2 ? 1 : 2 * step;
      if (size == 2 || step > WARP || before > WARP)
        __syncthreads();
      else
        __syncwarp();
      exchange<has_index>(keys, index, n, size, step);
    }
  __syncthreads();
}

} // namespace network

#endif
