/* SPDX-License-Identifier: Apache-2.0 */
/* Many short lines: a block takes the number that it holds, and sorts them together, by the digits
 * of their keys, and then by the number of their line. */
#include "sorting/gpu/digits.cuh"

namespace {

constexpr int MOST_LINES = 128; /* of a block */

/* An element of a block's lines. */
struct item {
  int line, j;
};

/* The numbers of a block's elements before they are sorted, so that neighbors are adjacent in
 * memory: by rows, m in a line, or by columns, one of each line in turn. */
struct tiling {
  bool is_by_columns;
  int divisor;
  uint32_t inverse; /* 2^32 divided by that, rounded up */

  __device__ tiling(int n_lines, int m, bool are_columns)
      : is_by_columns(are_columns && n_lines > 1), divisor(is_by_columns ? n_lines : m),
        inverse(~0u / divisor + 1) {}
  __device__ item operator[](int i) const {
    const int q = (int)__umulhi((uint32_t)i, inverse), r = i - q * divisor;
    return is_by_columns ? item{r, q} : item{q, r};
  }
};

template <int N_THREADS, int N_ITEMS, typename K>
__global__ void __launch_bounds__(N_THREADS)
    tile_kernel(const __grid_constant__ sorting_short s, int most_lines) {
  using block = digits::block<K, N_THREADS, N_ITEMS>;
  __shared__ typename block::memory shared;
  __shared__ int64_t begins[MOST_LINES], begins_out[MOST_LINES];
  const int64_t first = (int64_t)blockIdx.x * most_lines;
  const int64_t n_left = s.axis.n_outer * s.axis.width - first;
  const int n_lines = n_left < most_lines ? (int)n_left : most_lines;
  const int m = (int)s.m, n = n_lines * m;
  const tiling items(n_lines, m, s.axis.width > 1);
  if ((int)threadIdx.x < n_lines) {
    const elements_axis of_out = {s.axis.n_outer, s.k, s.axis.width};
    begins[threadIdx.x] = elements_line(&s.axis, first + threadIdx.x);
    begins_out[threadIdx.x] = elements_line(&of_out, first + threadIdx.x);
  }
  __syncthreads();

  block own(shared);
  if (s.keys) {
    const auto place = [&](int i) { return (first + items[i].line) * m + items[i].j; };
    own.read_keys(s.keys, place, n);
  } else {
    const auto place = [&](int i) { return begins[items[i].line] + items[i].j * s.axis.width; };
    own.read_elements(s.o, s.x, place, n);
  }
  own.sort(8 * (int)s.o.n_bytes);
  if (n_lines > 1) own.sort_again([&](int i) { return i < n ? items[i].line : digits::MOST; });

#pragma unroll 4
  for (int i = threadIdx.x; i < n; i += N_THREADS) {
    const item to = items[i];
    if (to.j >= s.k) continue;
    const int at = to.line * m + to.j;
    network::write_short(s, first + to.line, begins[to.line],
                         begins_out[to.line] + to.j * s.axis.width,
                         items[shared.sorted.index[at]].j, shared.sorted.keys[at]);
  }
}

template <int N_THREADS, int N_ITEMS, typename K>
int sort_tiles(cuplug::call call, const sorting_short &s) {
  const int64_t n_lines = s.axis.n_outer * s.axis.width, fitting = N_THREADS * N_ITEMS / s.m;
  const int most = (int)(fitting < MOST_LINES ? fitting : MOST_LINES);
  return call.launch<tile_kernel<N_THREADS, N_ITEMS, K>>({cuplug::blocks(n_lines, most), N_THREADS},
                                                         s, most);
}

template <typename K> int sort_tiles(cuplug::call call, const sorting_short &s) {
  return s.m > 1024 ? sort_tiles<256, 16, K>(call, s) : sort_tiles<128, 8, K>(call, s);
}

} // namespace

int sorting_run_tiles(cuplug::call call, const sorting_short &s) {
  return s.o.n_bytes == 8 ? sort_tiles<uint64_t>(call, s) : sort_tiles<uint32_t>(call, s);
}
