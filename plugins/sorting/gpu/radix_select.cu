/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest keys of long lines, without sorting these. The digits of a line's keys are counted,
 * from the first one on, until the first k keys are known. Then these are collected, in order. A
 * block does so for a line or, if lines are long and few, several blocks. */
#include <cub/block/block_scan.cuh>

#include "sorting/gpu/selection.cuh"

namespace {

using namespace selection;

constexpr int DIGIT = 11, BINS = 1 << DIGIT, EACH = BINS / THREADS;
constexpr int64_t FILLED = 1024; /* blocks that keep any GPU busy */

/* bits of the next digit */
__device__ inline int n_bits_of(const search &s) { return s.shift < DIGIT ? s.shift : DIGIT; }

/* Keys in shared memory that include key number k, and their positions in the line. */
template <typename K> struct candidates {
  static constexpr int MOST = sizeof(K) == 8 ? CHUNK / 2 : CHUNK;
  K *keys;
  uint32_t *places;
  int64_t m;

  __device__ void read(int64_t begin, K (&own)[ROUNDS]) const {
    const int n = own_elements(m, begin);
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
      own[r] = r * THREADS < n ? keys[begin + r * THREADS + threadIdx.x] : K(0);
  }
  __device__ int64_t place(int64_t j) const { return places[j]; }
};

__device__ inline search begin_search(const lines &l) {
  return {0, l.k, l.axis.m, 8 * (int)l.o.n_bytes, false};
}

/* Counts the next digits of keys with the same first digits as key number k, in one chunk of
 * `step`. */
template <typename K, class X>
__device__ inline void count_digits(const X &x, int64_t chunk, int64_t step, const search &s,
                                    unsigned *bins) {
  const int n_bits = n_bits_of(s), shift = s.shift - n_bits;
  const K prefix = (K)s.prefix, mask = (K)((1 << n_bits) - 1);
  for (int64_t begin = chunk * CHUNK; begin < x.m; begin += step * CHUNK) {
    const int n = own_elements(x.m, begin);
    K keys[ROUNDS];
    x.read(begin, keys);
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
      const K key = keys[r] >> shift;
      if (r * THREADS < n && key >> n_bits == prefix) atomicAdd(&bins[key & mask], 1u);
    }
  }
}

/* Finds the next digit of key number k from the counts of digits. All threads of a block call it.
 */
template <typename N> __device__ inline void find_digit(search *s, const N *counts) {
  using scan = cub::BlockScan<N, THREADS>;
  __shared__ typename scan::TempStorage memory;
  const search now = *s;
  N own[EACH], sum = 0, before;
#pragma unroll
  for (int b = 0; b < EACH; b++) sum += own[b] = counts[threadIdx.x * EACH + b];
  scan(memory).ExclusiveSum(sum, before);
  __syncthreads(); /* all have read the search */
  const N wanted = (N)now.left;
  if (before >= wanted || before + sum < wanted) return;
  N left = wanted - before, n_alike = 0;
  int digit = threadIdx.x * EACH;
#pragma unroll
  for (int b = 0; b < EACH; b++) { /* a constant index, so that the array is in registers */
    if (n_alike) continue;
    if (own[b] >= left)
      n_alike = own[b];
    else
      left -= own[b], digit++;
  }
  const int n_bits = n_bits_of(now), shift = now.shift - n_bits;
  *s = {now.prefix << n_bits | (uint64_t)digit, (int64_t)left, (int64_t)n_alike, shift,
        shift == 0 || n_alike == left};
}

/* Searches until key number k is found, or is among at most this number. */
template <typename K, class X>
__device__ inline void search_on(const X &x, search *s, int64_t k, int64_t few, unsigned *bins) {
  for (;;) {
    for (int b = threadIdx.x; b < BINS; b += THREADS) bins[b] = 0;
    __syncthreads();
    if (s->is_found || k - s->left + s->n_alike <= few) return;
    count_digits<K>(x, 0, 1, *s, bins);
    __syncthreads();
    find_digit(s, bins);
  }
}

/* A block for each line, which it mostly reads twice: few keys begin with the first digits of key
 * number k. */
template <typename K>
__global__ void __launch_bounds__(THREADS, 2)
    line_kernel(const __grid_constant__ lines l, K *keys, const sorted_index index) {
  __shared__ unsigned bins[BINS];
  __shared__ K kept[candidates<K>::MOST];
  __shared__ uint32_t places[candidates<K>::MOST];
  __shared__ tally t;
  __shared__ search s;
  const int64_t line = blockIdx.x, first = line * l.k;
  const elements<K> x(l, line);
  const auto write = [&](int64_t i, K key, int64_t place) {
    keys[first + i] = key;
    index.set(first + i, place);
  };
  if (threadIdx.x == 0) s = begin_search(l);
  search_on<K>(x, &s, l.k, candidates<K>::MOST, bins);
  if (s.is_found) {
    collect_all<K>(x, s, l.k, &t, write);
    return;
  }
  const int64_t n = l.k - s.left + s.n_alike;
  search all = s;
  all.left = s.n_alike;
  collect_all<K>(x, all, n, &t, [&](int64_t i, K key, int64_t place) {
    kept[i] = key;
    places[i] = (uint32_t)place;
  });
  const candidates<K> few = {kept, places, n};
  search_on<K>(few, &s, l.k, 0, bins);
  collect_all<K>(few, s, l.k, &t, write);
}

/* The same by several blocks for each line. */
__global__ void __launch_bounds__(THREADS)
    begin_kernel(const __grid_constant__ lines l, search *searches, unsigned long long *counts,
                 int64_t n_lines) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n_lines) searches[i] = begin_search(l);
  if (i < n_lines * BINS) counts[i] = 0;
}

template <typename K>
__global__ void __launch_bounds__(THREADS)
    count_kernel(const __grid_constant__ lines l, const search *__restrict__ searches,
                 unsigned long long *counts) {
  __shared__ unsigned bins[BINS];
  const int64_t line = blockIdx.y;
  const search s = searches[line];
  if (s.is_found) return;
  for (int b = threadIdx.x; b < BINS; b += THREADS) bins[b] = 0;
  __syncthreads();
  count_digits<K>(elements<K>(l, line), blockIdx.x, gridDim.x, s, bins);
  __syncthreads();
  for (int b = threadIdx.x; b < BINS; b += THREADS)
    if (bins[b]) atomicAdd(&counts[line * BINS + b], (unsigned long long)bins[b]);
}

/* One block for each line. The counts are 0 again afterwards. */
__global__ void __launch_bounds__(THREADS)
    find_kernel(search *searches, unsigned long long *counts) {
  unsigned long long *const of_line = counts + (int64_t)blockIdx.x * BINS;
  if (searches[blockIdx.x].is_found) return;
  find_digit(&searches[blockIdx.x], of_line);
  for (int b = threadIdx.x; b < BINS; b += THREADS) of_line[b] = 0;
}

/* The numbers of keys of each chunk before key number k, and with its prefix. */
template <typename K>
__global__ void __launch_bounds__(THREADS)
    tally_kernel(const __grid_constant__ lines l, const search *__restrict__ searches,
                 int64_t *before, int64_t *alike) {
  __shared__ typename tally::scan::TempStorage memory;
  const int64_t line = blockIdx.y, begin = (int64_t)blockIdx.x * CHUNK;
  const search s = searches[line];
  K keys[ROUNDS];
  elements<K>(l, line).read(begin, keys);
  unsigned n = 0, total;
#pragma unroll
  for (int r = 0; r < ROUNDS; r++)
    if (begin + r * THREADS + threadIdx.x < l.axis.m) n += place_of(keys[r], s);
  tally::scan(memory).ExclusiveSum(n, n, total);
  if (threadIdx.x) return;
  before[line * gridDim.x + blockIdx.x] = total % ALIKE;
  alike[line * gridDim.x + blockIdx.x] = total / ALIKE;
}

/* Replaces the numbers of chunks by sums of those before, in each line. Each line has one block. */
__global__ void __launch_bounds__(THREADS)
    add_kernel(int64_t *before, int64_t *alike, int64_t n_chunks) {
  using scan = cub::BlockScan<int64_t, THREADS>;
  __shared__ typename scan::TempStorage memory;
  const int64_t each = (n_chunks + THREADS - 1) / THREADS, begin = threadIdx.x * each;
  const int64_t end = begin + each < n_chunks ? begin + each : n_chunks;
#pragma unroll 1
  for (int64_t *of_all : {before, alike}) {
    int64_t *const counts = of_all + blockIdx.x * n_chunks, sum = 0;
#pragma unroll 4
    for (int64_t i = begin; i < end; i++) sum += counts[i];
    scan(memory).ExclusiveSum(sum, sum);
    __syncthreads();
#pragma unroll 4
    for (int64_t i = begin; i < end; i++) {
      const int64_t own = counts[i];
      counts[i] = sum;
      sum += own;
    }
  }
}

/* `before` and `alike` count keys in the preceding chunks of the line. */
template <typename K>
__global__ void __launch_bounds__(THREADS)
    collect_kernel(const __grid_constant__ lines l, const search *__restrict__ searches,
                   const int64_t *__restrict__ before, const int64_t *__restrict__ alike, K *keys,
                   const sorted_index index) {
  __shared__ tally t;
  const int64_t line = blockIdx.y, chunk = line * gridDim.x + blockIdx.x;
  progress p = {before[chunk], alike[chunk]};
  const search s = searches[line];
  collect<K>(elements<K>(l, line), (int64_t)blockIdx.x * CHUNK, s, l.k, &t, &p,
             [&](int64_t i, K key, int64_t place) {
               keys[line * l.k + i] = key;
               index.set(line * l.k + i, place);
             });
}

template <typename K> int choose_by_blocks(cuplug::call call, const lines &l, const sorting &top) {
  const int64_t n_lines = top.n_lines, n_chunks = cuplug::blocks(l.axis.m, CHUNK);
  auto *searches = call.workspace<search>(n_lines);
  auto *counts = call.workspace<unsigned long long>(n_lines * BINS);
  auto *before = call.workspace<int64_t>(n_lines * n_chunks);
  auto *alike = call.workspace<int64_t>(n_lines * n_chunks);
  if (!searches || !counts || !before || !alike) return CUPLUG_ERROR_MEMORY;
  int status = call.launch<begin_kernel>({cuplug::blocks(n_lines * BINS, THREADS), THREADS}, l,
                                         searches, counts, n_lines);
  const int64_t wanted = FILLED / n_lines + 1;
  const cuplug::extent grid(wanted < n_chunks ? wanted : n_chunks, n_lines);
  for (int bit = 0; bit < 8 * top.n_bytes && !status; bit += DIGIT) {
    status = call.launch<count_kernel<K>>({grid, THREADS}, l, searches, counts);
    if (!status) status = call.launch<find_kernel>({n_lines, THREADS}, searches, counts);
  }
  const cuplug::extent chunks(n_chunks, n_lines);
  if (!status) status = call.launch<tally_kernel<K>>({chunks, THREADS}, l, searches, before, alike);
  if (!status) status = call.launch<add_kernel>({n_lines, THREADS}, before, alike, n_chunks);
  return status ? status
                : call.launch<collect_kernel<K>>({chunks, THREADS}, l, searches, before, alike,
                                                 (K *)top.keys, top.indices());
}

template <typename K> int choose(cuplug::call call, const lines &l, const sorting &top) {
  const bool are_few = top.n_lines < MANY && l.axis.m * top.n_bytes > SHORT_BYTES;
  if (are_few || l.axis.m > UINT32_MAX) return choose_by_blocks<K>(call, l, top);
  return call.launch<line_kernel<K>>({top.n_lines, THREADS}, l, (K *)top.keys, top.indices());
}

} // namespace

bool sorting_can_choose(const elements_axis &axis, int64_t k) {
  return axis.m > SORTING_SHORT && k <= axis.m / 4;
}

int sorting_choose(cuplug::call call, const sorting &top, const cuplug_tensor &x,
                   const elements_axis &axis, const order &o) {
  const lines l = {x.data, axis, o, top.m};
  return top.n_bytes == 8 ? choose<uint64_t>(call, l, top) : choose<uint32_t>(call, l, top);
}
