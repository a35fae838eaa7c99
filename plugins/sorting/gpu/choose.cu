/* SPDX-License-Identifier: Apache-2.0 */
/* The least keys of long lines, which are not sorted: several blocks count the digits of a line,
 * from the first one on, until it is known which key is number k; then they collect the keys up to
 * that, in order. */
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>

#include "sorting/gpu/radix.cuh"

namespace {

constexpr int THREADS = SORTING_THREADS;
constexpr int DIGIT = 11, BINS = 1 << DIGIT;
constexpr int ROUNDS = 16, CHUNK = THREADS * ROUNDS; /* elements that a block collects */
constexpr int64_t FILLED = 2048;                     /* blocks that keep any GPU busy */
constexpr int64_t MOST_LINES = 4096;                 /* whose counts take 64 MiB */

/* Key number k of a line, as far as it is known, and its number among those that begin alike. */
struct search {
  uint64_t prefix;
  int64_t left;
};

struct lines {
  const void *x;
  elements_axis axis;
  order o;
  int64_t k;
};

template <typename T> __device__ T key_at(const lines &l, int64_t first, int64_t j) {
  const T bits = ((const T *)l.x)[first + j * l.axis.width];
  if constexpr (sizeof(T) == 8)
    return order_key64(&l.o, bits);
  else
    return (T)order_key32(&l.o, bits);
}

__global__ void __launch_bounds__(THREADS)
    begin_kernel(search *searches, unsigned long long *counts, int64_t n_lines, int64_t k) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n_lines) searches[i] = {0, k};
  if (i < n_lines * BINS) counts[i] = 0;
}

/* Counts the digits of keys that begin as key number k does. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    count_kernel(const __grid_constant__ lines l, const search *__restrict__ searches,
                 unsigned long long *counts, int shift, int n_bits) {
  __shared__ unsigned bins[BINS];
  for (int b = threadIdx.x; b < BINS; b += THREADS) bins[b] = 0;
  __syncthreads();
  const int64_t line = blockIdx.y, first = elements_line(&l.axis, line);
  const T prefix = (T)searches[line].prefix;
#pragma unroll 8
  for (int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x; j < l.axis.m;
       j += (int64_t)gridDim.x * THREADS) {
    const T key = key_at<T>(l, first, j) >> shift;
    if (key >> n_bits == prefix) atomicAdd(&bins[key & ((1 << n_bits) - 1)], 1u);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < BINS; b += THREADS)
    if (bins[b]) atomicAdd(&counts[line * BINS + b], (unsigned long long)bins[b]);
}

/* Finds the digit of key number k; one block for each line. The counts are 0 again afterwards. */
__global__ void __launch_bounds__(THREADS)
    find_kernel(search *searches, unsigned long long *counts, int n_bits) {
  using scan = cub::BlockScan<unsigned long long, THREADS>;
  __shared__ typename scan::TempStorage memory;
  constexpr int EACH = BINS / THREADS;
  unsigned long long *of_line = counts + (int64_t)blockIdx.x * BINS, own[EACH], sum = 0, before;
#pragma unroll
  for (int b = 0; b < EACH; b++) {
    own[b] = of_line[threadIdx.x * EACH + b];
    of_line[threadIdx.x * EACH + b] = 0;
    sum += own[b];
  }
  const search s = searches[blockIdx.x];
  scan(memory).ExclusiveSum(sum, before);
  __syncthreads(); /* all have read the search */
  unsigned long long left = (unsigned long long)s.left;
  if (before >= left || before + sum < left) return;
  left -= before;
  int digit = threadIdx.x * EACH;
  bool is_found = false;
#pragma unroll
  for (int b = 0; b < EACH; b++) { /* no number that registers are asked by */
    is_found |= own[b] >= left;
    if (!is_found) left -= own[b], digit++;
  }
  searches[blockIdx.x] = {s.prefix << n_bits | (uint64_t)digit, (int64_t)left};
}

/* The keys of a thread in its chunk, none of which waits for another; the last one of the line for
 * those behind it, too. */
template <typename T>
__device__ inline void read_chunk(const lines &l, int64_t first, T (&keys)[ROUNDS]) {
  const int64_t begin = (int64_t)blockIdx.x * CHUNK + threadIdx.x;
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    const int64_t j = begin + r * THREADS;
    keys[r] = key_at<T>(l, first, j < l.axis.m ? j : l.axis.m - 1);
  }
}

/* How many keys of each chunk are below key number k, and how many equal. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    tally_kernel(const __grid_constant__ lines l, const search *__restrict__ searches,
                 int64_t *below, int64_t *equal) {
  using reduce = cub::BlockReduce<unsigned, THREADS>;
  __shared__ typename reduce::TempStorage memory;
  const int64_t line = blockIdx.y, first = elements_line(&l.axis, line);
  const T last = (T)searches[line].prefix;
  T keys[ROUNDS];
  read_chunk(l, first, keys);
  unsigned n = 0; /* those below, and from bit 16 on those equal */
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    const int64_t j = (int64_t)blockIdx.x * CHUNK + r * THREADS + threadIdx.x;
    if (j < l.axis.m) n += keys[r] < last ? 1u : keys[r] == last ? 1u << 16 : 0u;
  }
  const unsigned total = reduce(memory).Sum(n);
  if (threadIdx.x) return;
  below[line * gridDim.x + blockIdx.x] = total & 0xffff;
  equal[line * gridDim.x + blockIdx.x] = total >> 16;
}

/* Writes the keys below key number k, then as many equal ones as are left, each in their order.
 * `below` and `equal` count those in chunks before, of all lines. */
template <typename T, typename K>
__global__ void __launch_bounds__(THREADS)
    collect_kernel(const __grid_constant__ lines l, const search *__restrict__ searches,
                   const int64_t *__restrict__ below, const int64_t *__restrict__ equal, K *keys,
                   const sorted_index index) {
  using scan = cub::BlockScan<unsigned, THREADS>;
  __shared__ typename scan::TempStorage memory;
  const int64_t line = blockIdx.y, first = elements_line(&l.axis, line);
  const int64_t of_line = line * gridDim.x, chunk = of_line + blockIdx.x;
  const search s = searches[line];
  const T last = (T)s.prefix;
  int64_t n_below = below[chunk] - below[of_line], n_equal = equal[chunk] - equal[of_line];
  T read[ROUNDS];
  read_chunk(l, first, read);
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    const int64_t j = (int64_t)blockIdx.x * CHUNK + r * THREADS + threadIdx.x;
    const bool is_there = j < l.axis.m;
    const T key = read[r];
    const unsigned own = !is_there ? 0u : key < last ? 1u : key == last ? 1u << 16 : 0u;
    if (!__syncthreads_or(own != 0)) continue;
    unsigned before, total;
    scan(memory).ExclusiveSum(own, before, total);
    const int64_t rank = own == 1 ? n_below + (before & 0xffff) : n_equal + (before >> 16);
    if (own == 1 || (own && rank < s.left)) {
      const int64_t to = line * l.k + (own == 1 ? rank : l.k - s.left + rank);
      keys[to] = key;
      index.set(to, j);
    }
    n_below += total & 0xffff;
    n_equal += total >> 16;
  }
}

/* Sums of all before. */
int accumulate(cuplug::call call, int64_t *counts, int64_t n) {
  return call.with_scratch([=](void *scratch, size_t &bytes) {
    return cub::DeviceScan::ExclusiveSum(scratch, bytes, counts, counts, n, call.stream());
  });
}

template <typename T, typename K>
int choose(cuplug::call call, const lines &l, int64_t n_lines, const sorting &top) {
  const int64_t m = l.axis.m, n_chunks = cuplug::blocks(m, CHUNK);
  auto *searches = call.workspace<search>(n_lines);
  auto *counts = call.workspace<unsigned long long>(n_lines * BINS);
  auto *below = call.workspace<int64_t>(n_lines * n_chunks);
  auto *equal = call.workspace<int64_t>(n_lines * n_chunks);
  if (!searches || !counts || !below || !equal) return CUPLUG_ERROR_MEMORY;
  int status = call.launch<begin_kernel>({cuplug::blocks(n_lines * BINS, THREADS), THREADS},
                                         searches, counts, n_lines, l.k);
  const int64_t wanted = FILLED / n_lines + 1;
  const cuplug::extent grid(wanted < n_chunks ? wanted : n_chunks, n_lines);
  for (int shift = 8 * sizeof(T), n_bits; shift > 0 && !status;) {
    n_bits = shift < DIGIT ? shift : DIGIT;
    shift -= n_bits;
    status = call.launch<count_kernel<T>>({grid, THREADS}, l, searches, counts, shift, n_bits);
    if (!status) status = call.launch<find_kernel>({n_lines, THREADS}, searches, counts, n_bits);
  }
  const cuplug::extent chunks(n_chunks, n_lines);
  if (!status) status = call.launch<tally_kernel<T>>({chunks, THREADS}, l, searches, below, equal);
  if (!status) status = accumulate(call, below, n_lines * n_chunks);
  if (!status) status = accumulate(call, equal, n_lines * n_chunks);
  return status ? status
                : call.launch<collect_kernel<T, K>>({chunks, THREADS}, l, searches, below, equal,
                                                    (K *)top.keys, top.indices());
}

} // namespace

bool sorting_can_choose(const elements_axis &axis, int64_t k) {
  return axis.m > SORTING_SHORT && k <= axis.m / 4 && axis.n_outer * axis.width <= MOST_LINES;
}

int sorting_choose(cuplug::call call, const sorting &top, const cuplug_tensor &x,
                   const elements_axis &axis, const order &o) {
  const lines l = {x.data, axis, o, top.m};
  switch (top.n_bytes) {
  case 1:
    return choose<uint8_t, uint32_t>(call, l, top.n_lines, top);
  case 2:
    return choose<uint16_t, uint32_t>(call, l, top.n_lines, top);
  case 4:
    return choose<uint32_t, uint32_t>(call, l, top.n_lines, top);
  default:
    return choose<uint64_t, uint64_t>(call, l, top.n_lines, top);
  }
}
