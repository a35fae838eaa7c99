/* SPDX-License-Identifier: Apache-2.0 */
/* Adjacent lines. A block scans 32 of them, with adjacent warps: each thread loads its part of its
 * line in the next tile while all combine the present one. If there are too few such strips to keep
 * a GPU busy, they are split into parts, which are reduced first, so that elements are read twice.
 * Parts, and therefore bits, depend only on the shape. */
#include "scan/tile_state.cuh"
#include "scan/values.cuh"

namespace {

constexpr int THREADS = 256, WARPS = THREADS / WARP;
constexpr int64_t FILLED = 128; /* blocks; below, strips are split, into PARTED blocks */
constexpr int64_t PARTED = 528;
template <typename T> constexpr int ROWS = 64 / sizeof(scan_computed_t<T>); /* of a thread */
template <typename T> constexpr int TILE = WARPS *ROWS<T>;

template <typename T> struct job {
  const T *x;
  T *out; /* NULL: only the results of parts are required */
  scan_lines lines;
  int64_t n_strips, part; /* number of rows of lines; elements of a part */
  scan_computed_t<T> *sums;
};

template <typename T, typename C>
__device__ inline void load(const T *from, int64_t step, int64_t rest, C other,
                            C (&items)[ROWS<T>]) {
#pragma unroll
  for (int r = 0; r < ROWS<T>; r++) items[r] = r < rest ? static_cast<C>(from[r * step]) : other;
}

template <typename T, typename Op>
__global__ void __launch_bounds__(THREADS, 3) columns_kernel(const __grid_constant__ job<T> j) {
  using C = scan_computed_t<T>;
  __shared__ C of_warps[2][WARPS][WARP];
  const C identity = Op::template identity<C>();
  const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  const int64_t width = j.lines.in.width, step = j.lines.step, outer = blockIdx.x / j.n_strips;
  const int64_t column = (blockIdx.x - outer * j.n_strips) * WARP + lane;
  const int64_t line = outer * width + column, begin = blockIdx.y * j.part;
  const int64_t end = begin + j.part < j.lines.n ? begin + j.part : j.lines.n;
  const bool is_used = column < width;
  const int64_t first = is_used ? begin + warp * ROWS<T> : end;
  const T *from = j.x + (is_used ? scan_from(&j.lines, line) : 0);
  T *to = j.out + (j.out && is_used ? scan_to(&j.lines, line) : 0);
  C before = identity, next[ROWS<T>];
  load(from + first * step, step, end - first, identity, next);
  for (int64_t p = 0; j.out && is_used && p < blockIdx.y; p++)
    before = Op()(before, j.sums[p * j.lines.n_lines + line]);
  for (int64_t at = first, tile = begin; tile < end; at += TILE<T>, tile += TILE<T>) {
    C(&sums)[WARPS][WARP] = of_warps[(tile - begin) / TILE<T> % 2];
    C items[ROWS<T>], sum = identity;
#pragma unroll
    for (int r = 0; r < ROWS<T>; r++) items[r] = next[r], sum = Op()(sum, items[r]);
    load(from + (at + TILE<T>)*step, step, end - at - TILE<T>, identity, next);
    sums[warp][lane] = sum;
    __syncthreads();
    C here = before;
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
      if (w == warp) here = before;
      before = Op()(before, sums[w][lane]);
    }
    if (!j.out) continue;
#pragma unroll
    for (int r = 0; r < ROWS<T>; r++) {
      here = Op()(here, items[r]);
      if (at + r < end) to[(at + r) * step] = static_cast<T>(here);
    }
  }
  if (!j.out && is_used && warp == 0) j.sums[blockIdx.y * j.lines.n_lines + line] = before;
}

template <typename T, typename Op>
int run(cuplug::call call, const T *x, T *out, const scan_lines &lines) {
  job<T> j = {x, out, lines, cuplug::blocks(lines.in.width, WARP), lines.n, nullptr};
  const int64_t n_strips = lines.in.n_outer * j.n_strips,
                n_tiles = cuplug::blocks(lines.n, TILE<T>);
  const int64_t wanted = n_strips < FILLED ? cuplug::blocks(PARTED, n_strips) : 1;
  j.part = cuplug::blocks(n_tiles, wanted) * TILE<T>;
  const int64_t n_parts = cuplug::blocks(lines.n, j.part);
  if (n_parts > 1) {
    j.sums = call.workspace<scan_computed_t<T>>((n_parts - 1) * lines.n_lines);
    if (!j.sums) return CUPLUG_ERROR_MEMORY;
    j.out = nullptr;
    const cuplug::grid grid({n_strips, n_parts - 1}, THREADS);
    if (int status = call.launch<columns_kernel<T, Op>>(grid, j)) return status;
    j.out = out;
  }
  return call.launch<columns_kernel<T, Op>>(cuplug::grid({n_strips, n_parts}, THREADS), j);
}

} // namespace

SCAN_DTYPES(SCAN_DEFINE, scan_columns)
