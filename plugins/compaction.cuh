/* SPDX-License-Identifier: Apache-2.0 */
/* Packs elements whose flags are set, in their order. One kernel counts the flags of tiles and
 * stores them as bits, another adds up the counts, and the last moves each tile to its position. */
#ifndef CUPLUG_PLUGINS_COMPACTION_CUH
#define CUPLUG_PLUGINS_COMPACTION_CUH

#include <cuplug/plugin.hpp>

namespace compaction {

/* A block processes a tile. Its threads have ITEMS elements each. Those of a warp are adjacent. */
constexpr int THREADS = 256, WARP = 32, WARPS = THREADS / WARP, ITEMS = 16, TILE = THREADS * ITEMS;
constexpr int WORDS = TILE / WARP;
constexpr int ADDERS = 1024; /* threads of the single block that adds up counts */

/* Known before elements are moved: the flags of each 32 elements, and the number of set flags in
 * the tile before them; and the numbers in the preceding tiles. */
struct tiles {
  int64_t n, n_tiles, n_found;
  unsigned *bits;
  uint16_t *starts;
  int64_t *before;
};

/* Returns the sum of the n values of a warp's lanes before this one. */
template <typename T> __device__ inline T sum_before(T own, int lane) {
  T sum = own;
  for (int step = 1; step < WARP; step *= 2) {
    const T below = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += below;
  }
  return sum - own;
}

/* Lane j < ITEMS has word j of its warp, the other lanes 0. A single tile needs no sums. */
__device__ inline void keep_words(const tiles &t, unsigned own) {
  __shared__ unsigned of_warps[WARPS];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  unsigned start = sum_before((unsigned)__popc(own), lane);
  if (lane == WARP - 1) of_warps[warp] = start;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < WARPS; w++) start += w < warp ? of_warps[w] : 0;
  const int64_t at = (int64_t)blockIdx.x * WORDS + warp * ITEMS + lane;
  if (lane < ITEMS) {
    t.bits[at] = own;
    t.starts[at] = (uint16_t)start;
  }
  if (threadIdx.x != THREADS - 1) return;
  const bool is_only = t.n_tiles == 1;
  t.before[blockIdx.x + is_only] = start;
  if (is_only) t.before[0] = 0;
}

template <class Flags>
__global__ void __launch_bounds__(THREADS)
    count_kernel(const __grid_constant__ Flags flags, const __grid_constant__ tiles t) {
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int64_t first = (int64_t)blockIdx.x * TILE + warp * (ITEMS * WARP) + lane;
  bool is_set[ITEMS];
  unsigned own = 0;
  if (((int64_t)blockIdx.x + 1) * TILE <= t.n) { /* no flag waits for a condition */
#pragma unroll
    for (int j = 0; j < ITEMS; j++) is_set[j] = flags(first + j * WARP);
  } else {
#pragma unroll
    for (int j = 0; j < ITEMS; j++) is_set[j] = first + j * WARP < t.n && flags(first + j * WARP);
  }
#pragma unroll
  for (int j = 0; j < ITEMS; j++) {
    const unsigned word = __ballot_sync(~0u, is_set[j]);
    if (lane == j) own = word;
  }
  keep_words(t, own);
}

/* The same for flags that are bytes, read 16 at once: flags.together(i) returns those from i on, as
 * bits. */
template <class Flags>
__global__ void __launch_bounds__(THREADS)
    count_bytes_kernel(const __grid_constant__ Flags flags, const __grid_constant__ tiles t) {
  static_assert(ITEMS == 16, "threads side by side have half a word each");
  const int lane = threadIdx.x % WARP;
  const int64_t first = (int64_t)blockIdx.x * TILE + threadIdx.x * ITEMS;
  unsigned half = 0;
  if (first + ITEMS <= t.n)
    half = flags.together(first);
  else
#pragma unroll 1
    for (int j = 0; first + j < t.n; j++) half |= (unsigned)flags(first + j) << j;
  const unsigned low = __shfl_sync(~0u, half, lane * 2 % WARP);
  const unsigned high = __shfl_sync(~0u, half, lane * 2 % WARP + 1);
  keep_words(t, lane < ITEMS ? low | high << ITEMS : 0);
}

/* Replaces counts by the sums of those before, followed by the total. */
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

/* The values kept for the elements of a warp, loaded 16 bytes at once. */
struct alignas(16) warp_bits {
  unsigned of[ITEMS];
};
struct alignas(16) warp_starts {
  uint16_t of[ITEMS];
};

/* Calls take.load(i) for elements whose flags are set, and then take.store(its result, i, number of
 * set flags before i, 1). With Take::ALL, it calls them also for the other elements, with 0. */
template <class Take>
__global__ void __launch_bounds__(THREADS)
    take_kernel(const __grid_constant__ Take take, const __grid_constant__ tiles t) {
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int64_t number = (int64_t)blockIdx.x * WARPS + warp, first = number * (ITEMS * WARP) + lane;
  const warp_bits bits = ((const warp_bits *)t.bits)[number];
  const warp_starts starts = ((const warp_starts *)t.starts)[number];
  const int64_t before = t.before[blockIdx.x];
  typename Take::item items[ITEMS];
#pragma unroll
  for (int j = 0; j < ITEMS; j++) {
    const int64_t i = first + j * WARP;
    if (Take::ALL ? i < t.n : bits.of[j] >> lane & 1) items[j] = take.load(i);
  }
#pragma unroll
  for (int j = 0; j < ITEMS; j++) {
    const int64_t i = first + j * WARP;
    const bool is_set = bits.of[j] >> lane & 1;
    const unsigned place = starts.of[j] + __popc(bits.of[j] & ((1u << lane) - 1));
    if (Take::ALL ? i < t.n : is_set) take.store(items[j], i, before + place, is_set);
  }
}

template <class Flags> int count_tiles(cuplug::call call, const Flags &flags, const tiles &t) {
  if constexpr (Flags::ARE_BYTES)
    if (flags.is_aligned())
      return call.launch<count_bytes_kernel<Flags>>({t.n_tiles, THREADS}, flags, t);
  return call.launch<count_kernel<Flags>>({t.n_tiles, THREADS}, flags, t);
}

/* Finds which of n elements will be moved, but not yet their number. */
template <class Flags> int begin(cuplug::call call, const Flags &flags, int64_t n, tiles *t) {
  *t = {n, cuplug::blocks(n, TILE), 0, nullptr, nullptr, nullptr};
  if (n == 0) return CUPLUG_OK;
  const int64_t n_words = t->n_tiles * WORDS, word_bytes = sizeof *t->bits + sizeof *t->starts;
  char *memory = call.workspace<char>(n_words * word_bytes + (t->n_tiles + 1) * sizeof *t->before);
  if (!memory) return CUPLUG_ERROR_MEMORY;
  t->bits = (unsigned *)memory;
  t->starts = (uint16_t *)(t->bits + n_words);
  t->before = (int64_t *)(t->starts + n_words);
  const int status = count_tiles(call, flags, *t);
  return status || t->n_tiles == 1 ? status : call.launch<add_kernel>({1, ADDERS}, *t);
}

/* The same, and waits for their number. */
template <class Flags> int count(cuplug::call call, const Flags &flags, int64_t n, tiles *t) {
  const int status = begin(call, flags, n, t);
  return status || n == 0 ? status : call.copy_to_host(&t->n_found, t->before + t->n_tiles);
}

template <class Take> int take(cuplug::call call, const Take &take, const tiles &t) {
  return call.launch<take_kernel<Take>>({t.n_tiles, THREADS}, take, t);
}

} // namespace compaction

#endif
