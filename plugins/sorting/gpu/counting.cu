/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts long lines of keys with few digits, one digit after the other. Blocks count the digits of
 * parts of lines, which gives the positions of the keys of each part. Then they sort tiles of it in
 * their shared memory. Equal digits of a tile are written contiguously. */
#include <cub/block/block_scan.cuh>

#include "sorting/gpu/digits.cuh"

namespace {

constexpr int THREADS = digits::MOST + 1; /* a digit each */
constexpr int EACH = 16, TILE = THREADS * EACH;
constexpr int64_t FILLED = 1024; /* blocks that keep any GPU busy */

/* A block's part of a line, with a number of tiles. The parts of a line are consecutive. */
struct parts {
  int64_t m, n_tiles;
  unsigned n;

  __device__ unsigned own() const { return blockIdx.x % n; }
  __device__ int64_t line() const { return blockIdx.x / n; }
  __device__ int64_t begin() const { return own() * n_tiles * TILE; }
  __device__ int64_t end() const {
    return begin() + n_tiles * TILE < m ? begin() + n_tiles * TILE : m;
  }
};

/* For each digit, the number of keys in the part. */
__global__ void __launch_bounds__(THREADS)
    count_kernel(const uint32_t *__restrict__ keys, const parts p, int bit, unsigned *counts) {
  __shared__ unsigned bins[THREADS];
  bins[threadIdx.x] = 0;
  __syncthreads();
  const uint32_t *const line = keys + p.line() * p.m;
#pragma unroll 8
  for (int64_t j = p.begin() + threadIdx.x; j < p.end(); j += THREADS)
    atomicAdd(&bins[line[j] >> bit & digits::MOST], 1u);
  __syncthreads();
  counts[(int64_t)blockIdx.x * THREADS + threadIdx.x] = bins[threadIdx.x];
}

/* Without an index, the position of each key in its line becomes the index. */
template <bool has_index>
__global__ void __launch_bounds__(THREADS, 3)
    place_kernel(const uint32_t *__restrict__ keys, const uint32_t *__restrict__ index,
                 uint32_t *__restrict__ keys_out, uint32_t *__restrict__ index_out, const parts p,
                 int bit, const unsigned *__restrict__ counts) {
  using block = digits::block<uint32_t, THREADS, EACH>;
  using scan = cub::BlockScan<unsigned, THREADS>;
  __shared__ typename block::memory shared;
  __shared__ typename scan::TempStorage memory;
  __shared__ uint32_t numbers[has_index ? TILE : 1];
  __shared__ unsigned firsts[THREADS + 1], offsets[THREADS];
  const int digit = threadIdx.x;
  const int64_t origin = p.line() * p.m;
  unsigned before = 0, all = 0, next; /* the position of the next key with the thread's digit */
  const unsigned *const of_line = counts + p.line() * p.n * THREADS;
#pragma unroll 4
  for (unsigned part = 0; part < p.n; part++) {
    const unsigned own = of_line[part * THREADS + digit];
    all += own;
    before += part < p.own() ? own : 0;
  }
  scan(memory).ExclusiveSum(all, next);
  next += before;
  if (digit == 0) firsts[THREADS] = TILE;

  for (int64_t begin = p.begin(); begin < p.end(); begin += TILE) {
    const int n = p.end() - begin < TILE ? (int)(p.end() - begin) : TILE;
    const int64_t first = origin + begin;
    block own(shared);
    own.read_keys(
        keys, [&](int i) { return first + i; }, n);
#pragma unroll
    for (int i = digit; has_index && i < TILE; i += THREADS)
      if (i < n) numbers[i] = index[first + i];
    firsts[digit] = own.sort_by_bits(bit);
    __syncthreads();
    offsets[digit] = next - firsts[digit];
    next += firsts[digit + 1] - firsts[digit];
    __syncthreads();
#pragma unroll 4
    for (int i = digit; i < n; i += THREADS) {
      const uint32_t key = shared.sorted.keys[i];
      const int64_t to = origin + (offsets[key >> bit & digits::MOST] + i);
      const int from = shared.sorted.index[i];
      keys_out[to] = key;
      if (index_out) index_out[to] = has_index ? numbers[from] : (uint32_t)(begin + from);
    }
    __syncthreads();
  }
}

} // namespace

int sorting_run_digits(cuplug::call call, sorting *s) {
  const int64_t n_tiles = cuplug::blocks(s->m, TILE), wanted = FILLED / s->n_lines + 1;
  const int64_t each = cuplug::blocks(n_tiles, wanted), n_parts = cuplug::blocks(n_tiles, each);
  const parts p = {s->m, each, (unsigned)n_parts};
  const cuplug::grid grid({s->n_lines * n_parts}, THREADS);
  auto *counts = call.workspace<unsigned>(s->n_lines * n_parts * THREADS);
  if (!counts) return CUPLUG_ERROR_MEMORY;
  int status = CUPLUG_OK;
  for (int bit = 0; bit < 8 * s->n_bytes && !status; bit += digits::BITS) {
    const auto *keys = (const uint32_t *)s->keys;
    const auto *index = bit == 0 && s->is_numbered ? nullptr : (const uint32_t *)s->index;
    auto *keys_out = (uint32_t *)s->spare, *index_out = (uint32_t *)s->spare_index;
    status = call.launch<count_kernel>(grid, keys, p, bit, counts);
    if (status) return status;
    status = index ? call.launch<place_kernel<true>>(grid, keys, index, keys_out, index_out, p, bit,
                                                     counts)
                   : call.launch<place_kernel<false>>(grid, keys, index, keys_out, index_out, p,
                                                      bit, counts);
    s->swap();
  }
  return status;
}
