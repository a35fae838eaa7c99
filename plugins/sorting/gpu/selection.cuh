/* SPDX-License-Identifier: Apache-2.0 */
/* The first keys of a line, which a block reads in chunks: those before a key, and then equal ones
 * up to the required number, each in their order. */
#ifndef CUPLUG_PLUGINS_SORTING_SELECTION_CUH
#define CUPLUG_PLUGINS_SORTING_SELECTION_CUH

#include <cub/block/block_scan.cuh>

#include "sorting/gpu/short.cuh"

namespace selection {

constexpr int THREADS = 512, WARP = 32;
constexpr int ROUNDS = 8, CHUNK = THREADS * ROUNDS; /* elements that a block reads at once */
/* So many lines, or lines of this length, have a block each. */
constexpr int64_t MANY = 128, SHORT_BYTES = 1 << 19;

struct lines {
  const void *x;
  elements_axis axis;
  order o;
  int64_t k;
};

/* The keys before key number k begin with less than `prefix`, above their lower `shift` bits.
 * `n_alike` keys begin with `prefix`, and it is number `left` of these. `is_found`: the first
 * `left` of them are among the first k. */
struct search {
  uint64_t prefix;
  int64_t left, n_alike;
  int shift;
  bool is_found;
};

/* A thread has an element in each round r of a chunk for which r * THREADS is less than this. */
__device__ inline int own_elements(int64_t m, int64_t begin) {
  return (int)(m - begin < CHUNK ? m - begin : CHUNK) - (int)threadIdx.x;
}

/* A line of elements, which become keys when they are read. */
template <typename K> struct elements {
  const lines &of;
  int64_t first, m;

  __device__ elements(const lines &l, int64_t line)
      : of(l), first(elements_line(&l.axis, line)), m(l.axis.m) {}

  /* The keys of a thread in a chunk, which do not wait for each other. */
  __device__ void read(int64_t begin, K (&keys)[ROUNDS]) const {
    if constexpr (sizeof(K) == 8)
      read_bits<uint64_t>(begin, keys);
    else if (of.o.n_bytes == 1)
      read_bits<uint8_t>(begin, keys);
    else if (of.o.n_bytes == 2)
      read_bits<uint16_t>(begin, keys);
    else
      read_bits<uint32_t>(begin, keys);
    if (of.o.infinity) /* two equal loops, so that the flag is tested once and not for each key */
      become_keys(keys);
    else
      become_keys(keys);
  }
  __device__ int64_t place(int64_t j) const { return j; }

private:
  template <typename T> __device__ void read_bits(int64_t begin, K (&bits)[ROUNDS]) const {
    const int n = own_elements(m, begin);
    const T *from = (const T *)of.x + first + (begin + threadIdx.x) * of.axis.width;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++, from += THREADS * of.axis.width)
      bits[r] = r * THREADS < n ? *from : T(0);
  }
  __device__ void become_keys(K (&keys)[ROUNDS]) const {
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) keys[r] = network::key_of(of.o, keys[r]);
  }
};

/* Returns 1 for a key before those with the prefix of key number k, ALIKE for one of them, 0 for
 * one after them. Both are counted at once. */
constexpr unsigned ALIKE = 1u << 16;
template <typename K> __device__ inline unsigned place_of(K key, const search &s) {
  const K begin = key >> s.shift, prefix = (K)s.prefix;
  return begin < prefix ? 1u : begin == prefix ? ALIKE : 0u;
}

/* The collected numbers of both. */
struct progress {
  int64_t n_before, n_alike;
};

/* The counts of a block. */
struct tally {
  static constexpr int WARPS = THREADS / WARP, N = WARPS * ROUNDS;
  static_assert(N <= THREADS, "a thread adds up what each warp counts in each round");
  using scan = cub::BlockScan<unsigned, THREADS>;
  typename scan::TempStorage memory;
  unsigned of_warps[N];
};

/* Calls write(i, key, place) for the keys of a chunk that are number i < k: those before key number
 * k, then those with its prefix up to the required number, each in their order. */
template <typename K, class X, class W>
__device__ inline void collect(const X &x, int64_t begin, const search &s, int64_t k, tally *t,
                               progress *p, const W &write) {
  const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  const int n = own_elements(x.m, begin);
  const unsigned below = (1u << lane) - 1;
  K keys[ROUNDS];
  unsigned before[ROUNDS], any = 0;
  x.read(begin, keys);
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    const unsigned place = r * THREADS < n ? place_of(keys[r], s) : 0;
    const unsigned first = __ballot_sync(~0u, place == 1);
    const unsigned alike = __ballot_sync(~0u, place == ALIKE);
    before[r] = __popc(first & below) + __popc(alike & below) * ALIKE;
    any |= first | alike;
    if (lane == 0) t->of_warps[r * tally::WARPS + warp] = __popc(first) + __popc(alike) * ALIKE;
  }
  if (!__syncthreads_or(any)) return;
  unsigned sum = threadIdx.x < tally::N ? t->of_warps[threadIdx.x] : 0, total;
  tally::scan(t->memory).ExclusiveSum(sum, sum, total);
  if (threadIdx.x < tally::N) t->of_warps[threadIdx.x] = sum;
  __syncthreads();
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    const int64_t j = begin + r * THREADS + threadIdx.x;
    const unsigned place = r * THREADS < n ? place_of(keys[r], s) : 0;
    const unsigned at = t->of_warps[r * tally::WARPS + warp] + before[r];
    const int64_t rank = p->n_alike + at / ALIKE;
    if (place == 1) write(p->n_before + at % ALIKE, keys[r], x.place(j));
    if (place == ALIKE && rank < s.left) write(k - s.left + rank, keys[r], x.place(j));
  }
  p->n_before += total % ALIKE, p->n_alike += total / ALIKE;
  __syncthreads(); /* read by all before others are counted */
}

/* The same for all chunks. */
template <typename K, class X, class W>
__device__ inline void collect_all(const X &x, const search &s, int64_t k, tally *t,
                                   const W &write) {
  progress p = {0, 0};
  for (int64_t begin = 0; begin < x.m && (p.n_before < k - s.left || p.n_alike < s.left);
       begin += CHUNK)
    collect<K>(x, begin, s, k, t, &p, write);
}

} // namespace selection

#endif
