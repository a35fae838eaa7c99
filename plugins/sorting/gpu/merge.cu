/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that are longer than a block and do not fill a GPU. Blocks sort parts of them, and then
 * merge pairs of parts. The elements of a pair that form a part of its result are found along its
 * merge path (Green, McColl, Bader: GPU Merge Path, ICS 2012). */
#include "sorting/gpu/digits.cuh"

namespace {

constexpr int THREADS = 256, WARP = 32;
constexpr int EACH = 8, TILE = THREADS * EACH; /* keys that a thread and a block merge */
constexpr int64_t LONG = 1 << 18;              /* keys of 64 bits that fill a GPU */

template <typename K>
__global__ void __launch_bounds__(THREADS)
    part_kernel(const K *__restrict__ keys, const uint32_t *__restrict__ index, K *keys_out,
                uint32_t *index_out, int64_t m, int64_t n_parts, int n_bits) {
  using block = digits::block<K, THREADS, SORTING_SHORT / THREADS>;
  __shared__ typename block::memory shared;
  const int64_t line = blockIdx.x / n_parts, first = (blockIdx.x - line * n_parts) * SORTING_SHORT;
  const int64_t origin = line * m + first;
  const int n = m - first < SORTING_SHORT ? (int)(m - first) : SORTING_SHORT;
  block own(shared);
  own.read_keys(
      keys, [&](int i) { return origin + i; }, n);
  own.sort(n_bits);
#pragma unroll 4
  for (int i = threadIdx.x; i < n; i += THREADS) {
    keys_out[origin + i] = shared.sorted.keys[i];
    const int from = shared.sorted.index[i];
    if (index_out) index_out[origin + i] = index ? index[origin + from] : (uint32_t)(first + from);
  }
}

/* Two sorted parts. Of equal keys, those of the first come first. */
template <typename K> struct pair {
  const K *a, *b;
  int n_a, n_b;

  __device__ bool is_of_a(int i, int j) const { return j >= n_b || (i < n_a && a[i] <= b[j]); }

  /* Returns whether a[i] is among the first n keys of both. */
  __device__ bool is_before(int i, int n) const { return a[i] <= b[n - 1 - i]; }

  /* Returns how many of the first n keys are from a, between these limits. */
  __device__ int least(int n) const { return n > n_b ? n - n_b : 0; }
  __device__ int most(int n) const { return n < n_a ? n : n_a; }
  __device__ int split(int n) const {
    int low = least(n), high = most(n);
    while (low < high) {
      const int i = low + (high - low) / 2;
      if (is_before(i, n))
        low = i + 1;
      else
        high = i;
    }
    return low;
  }

  /* The same, by all threads of a warp. */
  __device__ int split_by_warp(int n) const {
    int low = least(n), high = most(n);
    while (low < high) {
      const int step = (high - low + WARP - 1) / WARP, i = low + (int)(threadIdx.x % WARP) * step;
      const int n_before = __popc(__ballot_sync(~0u, i < high && is_before(i, n)));
      if (n_before == 0) return low;
      const int next = low + n_before * step;
      low = next - step + 1;
      high = next < high ? next : high;
    }
    return low;
  }
};

/* Positions in shared memory, where neither adjacent threads nor their keys conflict. */
__device__ inline int spread(int i) { return i + i / WARP; }

/* Merges parts of `length` keys, two of each line. A block writes TILE keys of the result. */
template <typename K, bool has_index>
__global__ void __launch_bounds__(THREADS)
    merge_kernel(const K *__restrict__ keys, const uint32_t *__restrict__ index, K *keys_out,
                 uint32_t *index_out, int64_t m, int64_t n_tiles, int length) {
  __shared__ K shared[TILE + TILE / WARP];
  __shared__ uint16_t from[has_index ? TILE + TILE / WARP : 1];
  __shared__ int splits[2];
  const int64_t line = blockIdx.x / n_tiles;
  const int first = (int)(blockIdx.x - line * n_tiles) * TILE, begin = first & -2 * length;
  const int64_t origin = line * m + begin;
  const int left = (int)m - begin, n_a = left < length ? left : length;
  const int n_b = left - n_a < length ? left - n_a : length, n_before = first - begin;
  const int n = n_a + n_b - n_before < TILE ? n_a + n_b - n_before : TILE;
  const pair<K> all = {keys + origin, keys + origin + n_a, n_a, n_b};
  if (threadIdx.x < 2 * WARP) {
    const int k = threadIdx.x / WARP, split = all.split_by_warp(n_before + (k ? n : 0));
    if (threadIdx.x % WARP == 0) splits[k] = split;
  }
  __syncthreads();

  const int first_a = splits[0], first_b = n_before - first_a;
  const pair<K> own = {shared, shared + splits[1] - first_a, splits[1] - first_a,
                       n - (splits[1] - first_a)};
#pragma unroll
  for (int u = 0; u < EACH; u++) {
    const int i = threadIdx.x + u * THREADS;
    if (i < n) shared[i] = i < own.n_a ? all.a[first_a + i] : all.b[first_b + i - own.n_a];
  }
  __syncthreads();
  const int at = threadIdx.x * EACH < n ? threadIdx.x * EACH : n;
  int i = own.split(at), j = at - i;
  K merged[EACH];
  uint16_t origins[EACH];
#pragma unroll
  for (int u = 0; u < EACH; u++) {
    if (at + u >= n) break;
    const bool is_of_a = own.is_of_a(i, j);
    origins[u] = (uint16_t)(is_of_a ? i : own.n_a + j);
    merged[u] = shared[origins[u]];
    i += is_of_a, j += !is_of_a;
  }
  __syncthreads();
#pragma unroll
  for (int u = 0; u < EACH; u++) {
    if (at + u >= n) break;
    shared[spread(at + u)] = merged[u];
    if (has_index) from[spread(at + u)] = origins[u];
  }
  __syncthreads();
#pragma unroll
  for (int u = 0; u < EACH; u++) {
    const int i = threadIdx.x + u * THREADS;
    if (i >= n) break;
    keys_out[line * m + first + i] = shared[spread(i)];
    if (!has_index) continue;
    const int k = from[spread(i)];
    index_out[line * m + first + i] =
        index[origin + (k < own.n_a ? first_a + k : n_a + first_b + k - own.n_a)];
  }
}

template <typename K> int merge(cuplug::call call, sorting *s) {
  const int64_t n_parts = cuplug::blocks(s->m, SORTING_SHORT), n_tiles = cuplug::blocks(s->m, TILE);
  const cuplug::grid parts({s->n_lines * n_parts}, THREADS), tiles({s->n_lines * n_tiles}, THREADS);
  int status = CUPLUG_OK;
  for (int length = 0; !status && length < s->m; length = length ? 2 * length : SORTING_SHORT) {
    const auto *keys = (const K *)s->keys;
    const auto *index = length == 0 && s->is_numbered ? nullptr : (const uint32_t *)s->index;
    auto *keys_out = (K *)s->spare;
    auto *index_out = (uint32_t *)s->spare_index;
    if (length == 0)
      status = call.launch<part_kernel<K>>(parts, keys, index, keys_out, index_out, s->m, n_parts,
                                           (int)(8 * s->n_bytes));
    else if (index)
      status = call.launch<merge_kernel<K, true>>(tiles, keys, index, keys_out, index_out, s->m,
                                                  n_tiles, length);
    else
      status = call.launch<merge_kernel<K, false>>(tiles, keys, index, keys_out, index_out, s->m,
                                                   n_tiles, length);
    s->swap();
  }
  return status;
}

enum class way { none, whole, digits, merged };

/* Keys of 32 bits are sorted by digits if these are no more than the number of merges. */
way way_of(const sorting &s) {
  if (s.m < 2 || s.n_lines == 0) return way::none;
  if (s.n_lines == 1 || s.is_wide || (s.n_bytes == 8 && s.m >= LONG)) return way::whole;
  const bool are_few = s.n_bytes < 8 && s.m > SORTING_SHORT << (s.n_bytes - 1);
  return are_few ? way::digits : way::merged;
}

} // namespace

bool sorting_numbers(const sorting &s) {
  return way_of(s) == way::digits || way_of(s) == way::merged;
}

int sorting_run(cuplug::call call, sorting *s) {
  switch (way_of(*s)) {
  case way::none:
    return CUPLUG_OK;
  case way::whole:
    return sorting_run_long(call, s);
  case way::digits:
    return sorting_run_digits(call, s);
  default:
    return s->n_bytes == 8 ? merge<uint64_t>(call, s) : merge<uint32_t>(call, s);
  }
}
