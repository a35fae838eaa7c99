/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the first k of many lines, where k is small. Each thread of a block finds the smallest key
 * of its part of a line. The k-th smallest of these is not smaller than the k-th key of the line,
 * so only keys up to it are sorted. Fewer than k parts have keys before it, so these fit in shared
 * memory. */
#include "sorting/gpu/selection.cuh"

namespace {

using namespace selection;

constexpr int64_t LEAST = 512; /* elements of a line from which sorting all takes longer */

/* A key such that at least k of the block's threads have no larger one, and fewer than k have a
 * smaller one, or no k have a larger one. */
template <typename K> __device__ inline K bound_of(K own, int n_bits, int k) {
  K bound = 0;
#pragma unroll 1
  for (int bit = n_bits - 1; bit >= 0; bit--) {
    const K next = bound | K(1) << bit;
    const int n = __syncthreads_count(own < next);
    if (n == k) return next - 1;
    if (n < k) bound = next;
  }
  return bound;
}

/* Keys of a line that may be among its first k, and their positions. */
template <typename K> struct found {
  K keys[network::MOST];
  uint32_t places[network::MOST];
  unsigned n; /* counts keys even if memory is exhausted */

  __device__ void set(unsigned i, K key, int64_t place) {
    keys[i] = key;
    places[i] = (uint32_t)place;
  }
};

/* For a line in which more keys than fit equal the bound: collects these in their order, until
 * there are k. The keys before it do fit. It is a separate function, so that the kernel has more
 * registers. */
template <typename K>
__device__ __noinline__ void find_in_order(const elements<K> &x, K bound, int k, found<K> *all) {
  __shared__ tally t;
  if (threadIdx.x == 0) all->n = 0;
  __syncthreads();
  unsigned n_before = 0;
  for (int64_t begin = 0; begin < x.m; begin += CHUNK) {
    const int n = own_elements(x.m, begin);
    K own[ROUNDS];
    x.read(begin, own);
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) n_before += r * THREADS < n && own[r] < bound;
  }
  if (n_before) atomicAdd(&all->n, n_before);
  __syncthreads();
  const int n = (int)all->n, left = n < k ? k - n : 0;
  __syncthreads();
  if (threadIdx.x == 0) all->n = n + left;
  collect_all<K>(x, {bound, left, 0, 0, true}, n + left, &t,
                 [&](int64_t i, K key, int64_t place) { all->set((unsigned)i, key, place); });
}

template <typename K>
__global__ void __launch_bounds__(THREADS, 2) few_kernel(const __grid_constant__ sorting_short s) {
  __shared__ found<K> all;
  const lines l = {s.x, s.axis, s.o, s.k};
  const elements_axis of_out = {s.axis.n_outer, s.k, s.axis.width};
  const int64_t line = blockIdx.x, first_out = elements_line(&of_out, line);
  const elements<K> x(l, line);
  K own[ROUNDS], least = ~K(0);
  const auto over_chunks = [&](auto f) { /* one is kept, and read once */
                                         for (int64_t begin = 0; begin < x.m; begin += CHUNK) {
                                           const int n = own_elements(x.m, begin);
                                           if (x.m > CHUNK || least == ~K(0)) x.read(begin, own);
#pragma unroll
                                           for (int r = 0; r < ROUNDS; r++)
                                             if (r * THREADS < n)
                                               f(own[r], begin + r * THREADS + threadIdx.x);
                                         }
  };
  over_chunks([&](K key, int64_t) { least = key < least ? key : least; });
  if (threadIdx.x == 0) all.n = 0;
  const K bound = bound_of(least, 8 * (int)s.o.n_bytes, (int)s.k);
  if (least <= bound)
    over_chunks([&](K key, int64_t place) {
      if (key > bound) return;
      const unsigned i = atomicAdd(&all.n, 1u);
      if (i < network::MOST) all.set(i, key, place);
    });
  __syncthreads();
  const bool are_many = all.n > network::MOST;
  __syncthreads(); /* all have read it */
  if (are_many) find_in_order(x, bound, (int)s.k, &all);
  __syncthreads();
  const int n = (int)all.n, n_padded = network::padded(n);
  for (int i = n + threadIdx.x; i < n_padded; i += THREADS) all.set(i, ~K(0), UINT32_MAX);
  network::sort<true>(all.keys, all.places, n_padded);
  for (int j = threadIdx.x; j < s.k; j += THREADS)
    network::write_short(s, line, x.first, first_out + j * s.axis.width, all.places[j],
                         all.keys[j]);
}

} // namespace

bool sorting_has_few(const sorting_short &s) {
  const int64_t n_lines = s.axis.n_outer * s.axis.width, each = cuplug::blocks(s.m, THREADS);
  const bool are_long = n_lines < MANY && s.m * s.o.n_bytes > SHORT_BYTES;
  if (s.m < LEAST || are_long || (s.axis.width > 1 && s.m <= SORTING_SHORT)) return false;
  return s.k <= THREADS / 2 && s.k * (each + 1) <= network::MOST;
}

int sorting_run_few(cuplug::call call, const sorting_short &s) {
  const cuplug::grid grid(s.axis.n_outer * s.axis.width, THREADS);
  return s.o.n_bytes == 8 ? call.launch<few_kernel<uint64_t>>(grid, s)
                          : call.launch<few_kernel<uint32_t>>(grid, s);
}
