/* SPDX-License-Identifier: Apache-2.0 */
/* Elements along an axis that is not the last are copied to consecutive lines, or back, by tiles in
 * shared memory, so that neighbors are read and written together. */
#ifndef CUPLUG_PLUGINS_SORTING_COLUMNS_CUH
#define CUPLUG_PLUGINS_SORTING_COLUMNS_CUH

#include "sorting/gpu/radix.cuh"

namespace columns {

constexpr int THREADS = SORTING_THREADS, EACH = 4, TILE = THREADS * EACH;
constexpr int MOST = 32; /* columns of a tile */

/* An element: number j of its line, number i of all lines, and element `place` of the array. */
struct spot {
  int64_t line, j, i, place;
};

struct tiling {
  elements_axis axis;
  int n_across; /* columns of a tile, a power of two */
  int64_t across, down;
};

inline tiling tiles(const elements_axis &axis) {
  int n = 1;
  while (n < MOST && n < axis.width) n *= 2;
  return {axis, n, cuplug::blocks(axis.width, n), cuplug::blocks(axis.m, TILE / n)};
}

/* Calls f.read(spot) for elements in their order, or in the order of lines, and f.write(spot,
 * value) in the other order. */
template <bool to_lines, typename T, typename F>
__global__ void __launch_bounds__(THREADS)
    turn_kernel(const __grid_constant__ tiling t, const __grid_constant__ F f) {
  __shared__ T shared[TILE + MOST];
  const int n_down = TILE / t.n_across;
  const int64_t part = blockIdx.x / t.across, outer = part / t.down;
  const int64_t left = (blockIdx.x - part * t.across) * t.n_across,
                top = (part - outer * t.down) * n_down;
  const auto each = [&](bool is_across, const auto &body) {
#pragma unroll
    for (int u = 0; u < EACH; u++) {
      const int k = threadIdx.x + u * THREADS;
      const int column = is_across ? k & (t.n_across - 1) : k / n_down;
      const int row = is_across ? k / t.n_across : k & (n_down - 1);
      const int64_t inner = left + column, j = top + row;
      if (inner >= t.axis.width || j >= t.axis.m) continue;
      const int64_t line = outer * t.axis.width + inner;
      body(spot{line, j, line * t.axis.m + j, (outer * t.axis.m + j) * t.axis.width + inner},
           shared[column * (n_down + 1) + row]);
    }
  };
  each(to_lines, [&](const spot &at, T &value) { value = f.read(at); });
  __syncthreads();
  each(!to_lines, [&](const spot &at, const T &value) { f.write(at, value); });
}

template <bool to_lines, typename T, typename F>
int turn(cuplug::call call, const elements_axis &axis, const F &f) {
  const tiling t = tiles(axis);
  return call.launch<turn_kernel<to_lines, T, F>>({axis.n_outer * t.across * t.down, THREADS}, t,
                                                  f);
}

} // namespace columns

#endif
