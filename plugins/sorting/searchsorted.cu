/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of searchsorted.c. */
#include <cuplug/plugin.hpp>

#include "sorting/search.h"

namespace {

constexpr int THREADS = 256;
constexpr int KEPT = 48 << 10;   /* bytes of keys in shared memory */
constexpr int AT_ONCE = 4;       /* values per thread, which do not wait for each other */
constexpr int64_t BLOCKS = 1056; /* blocks, four of which run on a multiprocessor at once */
constexpr int64_t REPAID = 2;    /* at most, keys that a block reads for each value */

struct searching {
  const void *x, *values;
  int64_t *out;
  order o;
  int64_t m, n;
  int is_right;
};

/* T is the type of elements; few are fewer than 2^31. */
template <typename T, bool few>
__global__ void __launch_bounds__(THREADS) search_kernel(const __grid_constant__ searching s) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= s.n) return;
  order o = s.o;
  o.n_bytes = sizeof(T);
  if constexpr (sizeof(T) == 8 && few)
    s.out[i] = search_in64_few(&o, s.x, (int32_t)s.m, search_key64(&o, s.values, i), s.is_right);
  else if constexpr (sizeof(T) == 8)
    s.out[i] = search_in64(&o, s.x, s.m, search_key64(&o, s.values, i), s.is_right);
  else if constexpr (few)
    s.out[i] = search_in32_few(&o, s.x, (int32_t)s.m, search_key32(&o, s.values, i), s.is_right);
  else
    s.out[i] = search_in32(&o, s.x, s.m, search_key32(&o, s.values, i), s.is_right);
}

/* The position of key i in shared memory: keys that a search may read next, at distances of a power
 * of two, are in different banks. */
__device__ inline int spread(int i) { return i ^ (i >> 5 & 31) ^ (i >> 10 & 31); }

/* The number of elements up to a key, among `n` from `first` on. */
template <typename T, typename K>
__device__ inline int search_between(const searching &s, int first, int n, K key) {
  const int left = (int)s.m - first;
  order o = s.o;
  o.n_bytes = sizeof(T);
  if constexpr (sizeof(T) == 8)
    return search_from64_few(&o, s.x, first, n < left ? n : left, key, 1);
  else
    return search_from32_few(&o, s.x, first, n < left ? n : left, key, 1);
}

/* The same if a block has keys of x in its shared memory: all, or the last of each `length`. */
template <typename T, typename K>
__global__ void __launch_bounds__(THREADS)
    search_kept_kernel(const __grid_constant__ searching s, int length) {
  __shared__ K keys[KEPT / sizeof(K)];
  const int m = (int)s.m / length;
  const auto key = [&](const void *from, int64_t i) {
    order o = s.o;
    o.n_bytes = sizeof(T);
    if constexpr (sizeof(T) == 8)
      return search_key64(&o, from, i);
    else
      return search_key32(&o, from, i);
  };
  for (int i = threadIdx.x; i < m; i += THREADS)
    keys[spread(i)] = key(s.x, (int64_t)(i + 1) * length - 1);
  __syncthreads();
  const int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < s.n; i += AT_ONCE * step) {
    K most[AT_ONCE]; /* the largest key that is after it */
    int first[AT_ONCE];
    bool is_none[AT_ONCE];
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) {
      most[u] = key(s.values, i + u * step < s.n ? i + u * step : i);
      is_none[u] = !s.is_right && most[u] == 0;
      most[u] -= !s.is_right;
      first[u] = 0;
    }
    for (int left = m; left > 0;) {
      const int half = left > 1 ? left / 2 : 1;
#pragma unroll
      for (int u = 0; u < AT_ONCE; u++)
        if (keys[spread(first[u] + half - 1)] <= most[u]) first[u] += half;
      left -= half;
    }
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) {
      if (length > 1) first[u] = search_between<T>(s, first[u] * length, length - 1, most[u]);
      if (i + u * step < s.n) s.out[i + u * step] = is_none[u] ? 0 : first[u];
    }
  }
}

template <typename T> int search(cuplug::call call, const searching &s) {
  using K = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr int64_t MOST = KEPT / sizeof(K);
  const int64_t wanted = cuplug::blocks(s.n, THREADS * AT_ONCE);
  const int64_t n_blocks = wanted < BLOCKS ? wanted : BLOCKS;
  if (s.m > 0 && s.m <= INT32_MAX && n_blocks * (s.m < MOST ? s.m : MOST) <= REPAID * s.n)
    return call.launch<search_kept_kernel<T, K>>({n_blocks, THREADS}, s,
                                                 (int)cuplug::blocks(s.m, MOST));
  const cuplug::grid grid({cuplug::blocks(s.n, THREADS)}, THREADS);
  return s.m <= INT32_MAX ? call.launch<search_kernel<T, true>>(grid, s)
                          : call.launch<search_kernel<T, false>>(grid, s);
}

} // namespace

CUPLUG_ENTRY int searchsorted_cuda(const cuplug_call *c) {
  const cuplug_tensor &x = c->tensors[0], &values = c->tensors[1];
  const searching s = {x.data,
                       values.data,
                       (int64_t *)c->outputs[0].data,
                       order_of(&x, 0),
                       x.shape[0],
                       cuplug_n_elements(&values),
                       c->scalars[0].i != 0};
  switch (s.o.n_bytes) {
  case 1:
    return search<uint8_t>(c, s);
  case 2:
    return search<uint16_t>(c, s);
  case 4:
    return search<uint32_t>(c, s);
  default:
    return search<uint64_t>(c, s);
  }
}
