/* SPDX-License-Identifier: Apache-2.0 */
/* Signs of zeros and bits of NaNs, which keys omit. In a sorted line the zeros are consecutive, and
 * so are the NaNs. Both are written again, in the order of x's elements. Blocks count them in parts
 * of lines and publish the counts. Those with a -0.0 or a NaN add up the counts of the preceding
 * parts. The zeros of the others are already correct. */
#include "sorting/gpu/short.cuh"

namespace {

constexpr int THREADS = SORTING_THREADS, WARP = network::WARP, WARPS = THREADS / WARP;
constexpr int AT_ONCE = 4;         /* elements per thread, whose loads do not wait for each other */
constexpr int64_t LEAST = 1 << 13; /* elements of a part of a line, if it has several */
constexpr int64_t FILLED = 1024;   /* blocks that keep any GPU busy */
constexpr int COUNTS = 2;          /* words before the counts: whether to restore, and tickets */
constexpr int COUNT_BITS = 31;     /* bits of a count of zeros or NaNs; the next bit: published */

int64_t parts_of(const sorting &s) {
  const int64_t most = s.n_lines < FILLED ? FILLED / s.n_lines : 1;
  const int64_t n = cuplug::blocks(s.m, LEAST);
  return n < most ? n : most;
}

/* Numbers of zeros and of NaNs, or the positions where they are written. */
struct numbers {
  int64_t zeros, nans;
};

template <typename T, typename K> struct restoring {
  const T *x;
  T *out;
  elements_axis axis, of_out;
  order o;
  unsigned long long *words;
  int64_t n_parts;

  /* Calls f(bits, key, whether the lane has one) for elements `begin` to `end` of the line that
   * starts at x[first], by a warp. */
  template <typename F>
  __device__ void each(int64_t first, int64_t begin, int64_t end, const F &f) const {
    for (int64_t at = begin + threadIdx.x % WARP; at - threadIdx.x % WARP < end;
         at += WARP * AT_ONCE) {
      T bits[AT_ONCE] = {};
#pragma unroll
      for (int u = 0; u < AT_ONCE; u++)
        if (at + u * WARP < end) bits[u] = x[first + (at + u * WARP) * axis.width];
#pragma unroll
      for (int u = 0; u < AT_ONCE; u++)
        f(bits[u], network::key_of<K>(o, bits[u]), at + u * WARP < end);
    }
  }

  /* By a warp: returns the number of sorted elements, from out[first] on, whose keys are smaller.
   */
  __device__ int64_t below(int64_t first, K key) const {
    int64_t low = 0, high = of_out.m;
    while (low < high) {
      const int64_t step = (high - low + WARP - 1) / WARP, i = low + threadIdx.x % WARP * step;
      const bool is_less = i < high && network::key_of<K>(o, (K)out[first + i * axis.width]) < key;
      const int n_less = __popc(__ballot_sync(~0u, is_less));
      if (n_less == 0) return low;
      const int64_t next = low + n_less * step;
      low = next - step + 1;
      high = next < high ? next : high;
    }
    return low;
  }
};

template <typename T, typename K>
__global__ void __launch_bounds__(THREADS)
    restore_kernel(const __grid_constant__ restoring<T, K> r) {
  __shared__ unsigned zeros_of[WARPS], nans_of[WARPS];
  __shared__ unsigned long long zeros_before, nans_before, ticket;
  __shared__ int64_t bounds[4];
  if (r.words[0] == 0) return;
  const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  if (threadIdx.x == 0) ticket = atomicAdd(&r.words[1], 1ull), zeros_before = nans_before = 0;
  if (threadIdx.x < WARPS) zeros_of[threadIdx.x] = nans_of[threadIdx.x] = 0;
  __syncthreads();
  const int64_t own = (int64_t)ticket, line = own / r.n_parts;
  const int64_t first = elements_line(&r.axis, line), first_out = elements_line(&r.of_out, line);
  const int64_t n_warps = r.n_parts * WARPS, length = (r.axis.m + n_warps - 1) / n_warps;
  const int64_t begin = ((own - line * r.n_parts) * WARPS + warp) * length;
  const int64_t end = begin + length < r.axis.m ? begin + length : r.axis.m;

  unsigned zeros = 0, nans = 0, minus_zeros = 0;
  r.each(first, begin, end, [&](T bits, K key, bool has_one) {
    zeros += has_one && sorting_is_zero(r.o, key);
    nans += has_one && sorting_is_nan(r.o, key);
    minus_zeros += has_one && bits == (T)r.o.sign;
  });
  if (zeros) atomicAdd(&zeros_of[warp], zeros);
  if (nans) atomicAdd(&nans_of[warp], nans);
  const bool has_work = __syncthreads_or(nans || minus_zeros);
  numbers at = {0, 0}, all = {0, 0};
  for (int w = 0; w < WARPS; w++) {
    if (w == warp) at = all;
    all = {all.zeros + zeros_of[w], all.nans + nans_of[w]};
  }
  volatile unsigned long long *const counts = r.words + COUNTS;
  if (threadIdx.x == 0)
    counts[own] = 1ull << 2 * COUNT_BITS | (unsigned long long)all.zeros << COUNT_BITS |
                  (unsigned long long)all.nans;
  if (!has_work) return;

  /* Blocks with lower tickets already run, so the wait for their counts ends. */
  unsigned long long sums[2] = {};
  for (int64_t k = line * r.n_parts + threadIdx.x; k < own; k += THREADS) {
    unsigned long long word = counts[k];
    while (word == 0) word = counts[k];
    sums[0] += word >> COUNT_BITS & ((1ull << COUNT_BITS) - 1);
    sums[1] += word & ((1ull << COUNT_BITS) - 1);
  }
  if (sums[0]) atomicAdd(&zeros_before, sums[0]);
  if (sums[1]) atomicAdd(&nans_before, sums[1]);
  if (warp < 4) {
    const K key = network::key_of<K>(r.o, warp < 2 ? (K)0 : (K)r.o.nan) + warp % 2;
    const int64_t bound = r.below(first_out, key);
    if (lane == 0) bounds[warp] = bound;
  }
  __syncthreads();
  at.zeros += bounds[0] + (int64_t)zeros_before;
  at.nans += bounds[2] + (int64_t)nans_before;
  r.each(first, begin, end, [&](T bits, K key, bool has_one) {
    const bool is_zero = has_one && sorting_is_zero(r.o, key);
    const bool is_nan = has_one && sorting_is_nan(r.o, key);
    const unsigned are_zeros = __ballot_sync(~0u, is_zero), are_nans = __ballot_sync(~0u, is_nan);
    const unsigned lanes_below = (1u << lane) - 1;
    const int64_t to = is_zero ? at.zeros + __popc(are_zeros & lanes_below)
                               : at.nans + __popc(are_nans & lanes_below);
    if ((is_zero && to < bounds[1]) || (is_nan && to < bounds[3]))
      r.out[first_out + to * r.axis.width] = bits;
    at.zeros += __popc(are_zeros), at.nans += __popc(are_nans);
  });
}

template <typename T, typename K>
int restore(cuplug::call call, const sorting &s, const cuplug_tensor &x, const elements_axis &axis,
            const order &o, void *out, int64_t n_out) {
  const elements_axis of_out = {axis.n_outer, n_out, axis.width};
  const restoring<T, K> r = {(const T *)x.data, (T *)out, axis, of_out, o, s.words, parts_of(s)};
  return call.launch<restore_kernel<T, K>>({s.n_lines * r.n_parts, THREADS}, r);
}

} // namespace

int sorting_begin_restore(cuplug::call call, sorting *s, const order &o) {
  if (!o.infinity || s->m == 0) return CUPLUG_OK;
  s->n_words = COUNTS + s->n_lines * parts_of(*s);
  s->words = call.workspace<unsigned long long>(s->n_words);
  return s->words ? CUPLUG_OK : CUPLUG_ERROR_MEMORY;
}

int sorting_restore(cuplug::call call, const sorting &s, const cuplug_tensor &x,
                    const elements_axis &axis, const order &o, void *out, int64_t n_out) {
  if (o.n_bytes == 2) return restore<uint16_t, uint32_t>(call, s, x, axis, o, out, n_out);
  if (o.n_bytes == 4) return restore<uint32_t, uint32_t>(call, s, x, axis, o, out, n_out);
  return restore<uint64_t, uint64_t>(call, s, x, axis, o, out, n_out);
}
