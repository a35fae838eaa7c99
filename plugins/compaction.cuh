/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of an array whose flags are set, one behind the other, in their order. Tiles are counted
 * and their flags kept as bits; the counts are added up; then each tile is taken to its place. */
#ifndef CUPLUG_PLUGINS_COMPACTION_CUH
#define CUPLUG_PLUGINS_COMPACTION_CUH

#include <cuplug/plugin.hpp>

namespace compaction {

/* A tile is of a block; its threads have ITEMS elements each, those of a warp side by side. */
constexpr int THREADS = 256, WARP = 32, WARPS = THREADS / WARP, ITEMS = 16, TILE = THREADS * ITEMS;
constexpr int WORDS = TILE / WARP, EACH = WORDS / WARP;
constexpr int ADDERS = 1024; /* threads of the one block that adds up counts */

/* What is known before elements are taken. `bits` are the flags of 32 elements each. */
struct tiles {
  int64_t n, n_tiles, n_found;
  int64_t *before; /* of each tile: how many are in those before it */
  unsigned *bits;
};

template <class Flags>
__global__ void __launch_bounds__(THREADS)
    count_kernel(const __grid_constant__ Flags flags, const __grid_constant__ tiles t) {
  __shared__ unsigned total;
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int64_t first = (int64_t)blockIdx.x * TILE + threadIdx.x;
  bool is_set[ITEMS];
  unsigned own = 0, n_set = 0;
  if (threadIdx.x == 0) total = 0;
#pragma unroll
  for (int j = 0; j < ITEMS; j++)
    is_set[j] = first + j * THREADS < t.n && flags(first + j * THREADS);
  __syncthreads();
#pragma unroll
  for (int j = 0; j < ITEMS; j++) {
    const unsigned word = __ballot_sync(~0u, is_set[j]);
    n_set += __popc(word);
    if (lane == j) own = word;
  }
  if (lane < ITEMS) t.bits[(int64_t)blockIdx.x * WORDS + lane * WARPS + warp] = own;
  if (lane == 0) atomicAdd(&total, n_set);
  __syncthreads();
  if (threadIdx.x == 0) t.before[blockIdx.x] = total;
}

/* Of n values of a warp's lanes: the sum of those of the lanes before. */
template <typename T> __device__ inline T sum_before(T own, int lane) {
  T sum = own;
  for (int step = 1; step < WARP; step *= 2) {
    const T below = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += below;
  }
  return sum - own;
}

/* Counts become sums of those before; the sum of all is behind them. */
static __global__ void __launch_bounds__(ADDERS) add_kernel(const __grid_constant__ tiles t) {
  __shared__ unsigned long long of_warps[WARP];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int64_t each = (t.n_tiles + ADDERS - 1) / ADDERS, begin = threadIdx.x * each;
  const int64_t end = begin + each < t.n_tiles ? begin + each : t.n_tiles;
  unsigned long long sum = 0;
#pragma unroll 8
  for (int64_t k = begin; k < end; k++) sum += t.before[k];
  unsigned long long before = sum_before(sum, lane);
  if (lane == WARP - 1) of_warps[warp] = before + sum;
  __syncthreads();
  if (warp == 0) of_warps[lane] = sum_before(of_warps[lane], lane);
  __syncthreads();
  before += of_warps[warp];
  if (threadIdx.x == ADDERS - 1) t.before[t.n_tiles] = before + sum;
#pragma unroll 8
  for (int64_t k = begin; k < end; k++) {
    const int64_t own = t.before[k];
    t.before[k] = before;
    before += own;
  }
}

/* take.load(i) is called for elements whose flags are set, take.store(what it returned, i, how many
 * are set before i, 1) afterwards; with Take::ALL for the others, too, with 0. */
template <class Take>
__global__ void __launch_bounds__(THREADS)
    take_kernel(const __grid_constant__ Take take, const __grid_constant__ tiles t) {
  __shared__ int places[WORDS];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int64_t first = (int64_t)blockIdx.x * TILE + threadIdx.x;
  const unsigned *words = t.bits + (int64_t)blockIdx.x * WORDS;
  const unsigned own = lane < ITEMS ? words[lane * WARPS + warp] : 0;
  typename Take::item items[ITEMS];
#pragma unroll
  for (int j = 0; j < ITEMS; j++) {
    const unsigned word = __shfl_sync(~0u, own, j);
    const int64_t i = first + j * THREADS;
    if (Take::ALL ? i < t.n : word >> lane & 1) items[j] = take.load(i);
  }
  if (warp == 0) {
    int counts[EACH], sum = 0;
    for (int k = 0; k < EACH; k++) sum += counts[k] = __popc(words[lane * EACH + k]);
    int before = sum_before(sum, lane);
    for (int k = 0; k < EACH; k++) {
      places[lane * EACH + k] = before;
      before += counts[k];
    }
  }
  __syncthreads();
  const int64_t before = t.before[blockIdx.x];
#pragma unroll
  for (int j = 0; j < ITEMS; j++) {
    const unsigned word = __shfl_sync(~0u, own, j), below = word & ((1u << lane) - 1);
    const int64_t i = first + j * THREADS;
    const bool is_set = word >> lane & 1;
    if (Take::ALL ? i < t.n : is_set)
      take.store(items[j], i, before + places[j * WARPS + warp] + __popc(below), is_set);
  }
}

/* Finds which of n elements are to be taken, but not yet how many. */
template <class Flags> int begin(cuplug::call call, const Flags &flags, int64_t n, tiles *t) {
  *t = {n, cuplug::blocks(n, TILE), 0, nullptr, nullptr};
  if (n == 0) return CUPLUG_OK;
  t->before = call.workspace<int64_t>(t->n_tiles + 1);
  t->bits = t->before ? call.workspace<unsigned>(t->n_tiles * WORDS) : nullptr;
  if (!t->bits) return CUPLUG_ERROR_MEMORY;
  const int status = call.launch<count_kernel<Flags>>({t->n_tiles, THREADS}, flags, *t);
  return status ? status : call.launch<add_kernel>({1, ADDERS}, *t);
}

/* The same, and waits for how many they are. */
template <class Flags> int count(cuplug::call call, const Flags &flags, int64_t n, tiles *t) {
  const int status = begin(call, flags, n, t);
  return status || n == 0 ? status : call.fetch(&t->n_found, t->before + t->n_tiles);
}

template <class Take> int take(cuplug::call call, const Take &take, const tiles &t) {
  return call.launch<take_kernel<Take>>({t.n_tiles, THREADS}, take, t);
}

} // namespace compaction

#endif
