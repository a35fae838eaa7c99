/* SPDX-License-Identifier: Apache-2.0 */
/* Long lines, in one pass: each element is read once and written once. Blocks are persistent, and
 * take tiles in turn. A block publishes the aggregate of its next tile before it requests the
 * prefix of its present one: a tile waits for the aggregates of all earlier tiles, and not for a
 * chain of them. Others wait for a tile from when it is taken until its aggregate is published. A
 * block therefore has at most one tile in flight, and other blocks of its multiprocessor hide the
 * memory's latency.
 *
 * Blocks take tiles in the order of their tickets, so they wait only for running blocks. The
 * aggregates of tiles are combined in windows at fixed positions, whichever block adds them up:
 * bits depend neither on the GPU nor on timing. */
#include <cuda_pipeline.h>

#include <type_traits>

#include "scan/chunks.cuh"
#include "scan/tile_state.cuh"
#include "scan/values.cuh"

namespace {

constexpr int THREADS = 256, WARPS = THREADS / WARP;
constexpr int ROWS = 5;  /* elements of a warp in a tile: 16 bytes for each lane */
constexpr int DEPTH = 2; /* tiles of a block: the present one and the following ones */
constexpr int EACH = 2, WINDOW = EACH * THREADS; /* tiles whose sums are combined first */
constexpr int TICKETS = 16;  /* words before the tiles' states, in separate lines */
constexpr int FILLED = 1024; /* blocks that keep any GPU busy */

template <typename T> constexpr int SEGMENT = ROWS *WARP *chunk<T>::N; /* of a warp */
template <typename T> constexpr int TILE = WARPS *SEGMENT<T>;
template <typename T>
constexpr int HELD = /* blocks on a multiprocessor at once */
    sizeof(T) == 4    ? 4
    : sizeof(T) == 16 ? 2
                      : 3;

template <typename T> struct job {
  const T *x;
  T *out;
  scan_lines lines;
  unsigned n_tiles, per_line;
  uint64_t *words;
};

/* The layout of lines: PLAIN ones ascend, and all are aligned to 16 bytes. Rare layouts use ANY, to
 * keep files small. */
enum class layout { PLAIN, ANY };
template <typename T, typename Op>
constexpr bool HAS_PLAIN = std::is_same<Op, scan_plus>::value && sizeof(T) <= 8;

/* And an additional one, for lines that begin within 16 bytes; in total a multiple of 128 bytes,
 * since copies that bypass registers are faster from there on. */
template <typename T> using rows = chunk<T>[ROWS * WARP + 8];

template <typename T> struct shared_memory {
  alignas(128) rows<T> tiles[DEPTH][WARPS];
  scan_computed_t<T> sums[WARPS], parts[2][WARPS];
  unsigned ticket;
};

/* The address of a segment whose first element is at `at`. */
template <typename T> __device__ inline T *lowest(T *at, int64_t step) {
  return step < 0 ? at - (SEGMENT<T> - 1) : at;
}

/* A warp's part of a tile: its start, and the number of elements from there on. */
template <typename T, layout L> struct segment {
  int64_t line, first, rest;
  __device__ segment(const job<T> &j, unsigned t) {
    line = t / j.per_line;
    first = (int64_t)(t - (unsigned)line * j.per_line) * TILE<T> + threadIdx.x / WARP * SEGMENT<T>;
    rest = j.lines.n - first;
  }
  __device__ const T *from(const job<T> &j) const {
    return j.x + scan_from(&j.lines, line) + first * j.lines.step;
  }
  /* The number of bytes of the preceding line in its first 16 bytes; -1: it is not moved 16 bytes
   * at a time. */
  __device__ int lead(const T *at, int64_t step) const {
    if constexpr (L == layout::PLAIN) return rest >= SEGMENT<T> ? 0 : -1;
    const int n_bytes = (int)((uintptr_t)lowest(at, step) % 16);
    const bool is_within = first > 0 && rest >= SEGMENT<T> + chunk<T>::N;
    const bool is_whole = rest >= SEGMENT<T> && (n_bytes == 0 || is_within);
    return is_whole && (step == 1 || step == -1) ? n_bytes : -1;
  }
};

/* ---- Tiles before ---------------------------------------------------------------------------- */

/* A block's data for a line: the prefix of a window. */
template <typename C> struct known {
  int64_t line;
  unsigned window;
  C before;
};

/* The aggregates of tiles of windows `at` and `at + 1` before number k of a line. All threads call
 * it. `said` has the line's states. */
template <typename Op, typename T, typename C>
__device__ inline void join_windows(const uint64_t *said, int64_t n, unsigned at, unsigned k,
                                    shared_memory<T> &m, C (&sums)[2]) {
  const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  int64_t from[2 * EACH];
  bool is_there[2 * EACH];
  C values[2 * EACH];
#pragma unroll
  for (int i = 0; i < 2 * EACH; i++) {
    from[i] = (int64_t)at * WINDOW + i * THREADS + threadIdx.x;
    is_there[i] = from[i] < k;
  }
  wait_for_tiles<Op>(said, n, from, is_there, values);
#pragma unroll
  for (int half = 0; half < 2; half++) {
    C sum = values[half * EACH];
    for (int i = 1; i < EACH; i++) sum = Op()(sum, values[half * EACH + i]);
    sum = warp_aggregate<Op>(sum);
    if (lane == 0) m.parts[half][warp] = sum;
  }
  __syncthreads();
#pragma unroll
  for (int half = 0; half < 2; half++) {
    sums[half] = m.parts[half][0];
    for (int w = 1; w < WARPS; w++) sums[half] = Op()(sums[half], m.parts[half][w]);
  }
}

/* The aggregate of the tiles of its line before tile t. */
template <typename Op, typename T, typename C>
__device__ inline C join_before(const job<T> &j, unsigned t, shared_memory<T> &m, known<C> &of) {
  const int64_t line = t / j.per_line;
  const unsigned k = t - (unsigned)line * j.per_line, last = k / WINDOW;
  const uint64_t *said = j.words + TICKETS + line * j.per_line;
  if (line != of.line) of = {line, 0, Op::template identity<C>()};
  for (;; __syncthreads()) {
    C sums[2];
    join_windows<Op>(said, (int64_t)j.n_tiles, of.window, k, m, sums);
    if (of.window == last) return Op()(of.before, sums[0]);
    of.before = Op()(of.before, sums[0]);
    if (++of.window == last) return Op()(of.before, sums[1]);
    of.before = Op()(of.before, sums[1]);
    of.window++;
  }
}

/* ---- Elements -------------------------------------------------------------------------------- */

/* Starts the copy of a warp's part of tile t to shared memory. */
template <typename Op, layout L, typename T>
__device__ inline void fetch(const job<T> &j, unsigned t, rows<T> &to) {
  const int lane = threadIdx.x % WARP;
  if (t < j.n_tiles) {
    const segment<T, L> s(j, t);
    const int64_t step = L == layout::PLAIN ? 1 : j.lines.step;
    const T *from = s.from(j);
    const int lead = s.lead(from, step);
    if (lead >= 0) {
      const auto *chunks = (const chunk<T> *)((const char *)lowest(from, step) - lead) + lane;
#pragma unroll
      for (int r = 0; r < ROWS; r++)
        __pipeline_memcpy_async(to + r * WARP + lane, chunks + r * WARP, 16);
      if (lead && lane == 0) __pipeline_memcpy_async(to + ROWS * WARP, chunks + ROWS * WARP, 16);
    } else {
      T *at = (T *)&to;
#pragma unroll 1 /* for registers */
      for (int k = lane; k < SEGMENT<T>; k += WARP)
        if (k >= s.rest)
          at[k] = Op::template identity<T>();
        else if constexpr (sizeof(T) >= 4)
          __pipeline_memcpy_async(at + k, from + k * step, sizeof(T));
        else
          at[k] = from[k * step];
    }
  }
  __pipeline_commit();
}

/* Reorders a warp's part of tile t from memory order to the line's order. */
template <layout L, typename T>
__device__ inline void copy_contiguous(const job<T> &j, unsigned t, rows<T> &items) {
  const int lane = threadIdx.x % WARP;
  const segment<T, L> s(j, t);
  const bool is_back = j.lines.step < 0;
  const int lead = s.lead(s.from(j), j.lines.step);
  if (t >= j.n_tiles || lead < 0 || (lead == 0 && !is_back)) return;
  chunk<T> own[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const int k = is_back ? ROWS * WARP - 1 - r * WARP - lane : r * WARP + lane;
    own[r] = lead ? from_both(items[k], items[k + 1], lead) : items[k];
  }
  __syncwarp();
#pragma unroll
  for (int r = 0; r < ROWS; r++) items[r * WARP + lane] = is_back ? reversed(own[r]) : own[r];
}

template <typename Op, typename T>
__device__ inline scan_computed_t<T> join_rows(const rows<T> &items) {
  using C = scan_computed_t<T>;
  const int lane = threadIdx.x % WARP;
  C sums[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const chunk<T> own = items[r * WARP + lane];
    sums[r] = static_cast<C>(own.of[0]);
#pragma unroll
    for (int e = 1; e < chunk<T>::N; e++) sums[r] = Op()(sums[r], static_cast<C>(own.of[e]));
  }
#pragma unroll
  for (int r = 1; r < ROWS; r++) sums[0] = Op()(sums[0], sums[r]);
  return warp_aggregate<Op>(sums[0]);
}

/* Replaces a warp's items by their prefixes, after `before`. */
template <typename Op, typename T, typename C>
__device__ inline void scan_rows(const rows<T> &items, C before, chunk<T> (&results)[ROWS]) {
  constexpr int N = chunk<T>::N;
  const int lane = threadIdx.x % WARP;
  C here[ROWS][N], up[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const chunk<T> own = items[r * WARP + lane];
    here[r][0] = static_cast<C>(own.of[0]);
#pragma unroll
    for (int e = 1; e < N; e++) here[r][e] = Op()(here[r][e - 1], static_cast<C>(own.of[e]));
    up[r] = here[r][N - 1];
  }
#pragma unroll
  for (int step = 1; step < WARP; step *= 2)
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const C below = warp_shuffle(up[r], lane - step);
      if (lane >= step) up[r] = Op()(below, up[r]);
    }
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const C below = warp_shuffle(up[r], lane - 1), all = warp_shuffle(up[r], WARP - 1);
    const C own = lane ? Op()(before, below) : before;
#pragma unroll
    for (int e = 0; e < N; e++) results[r].of[e] = static_cast<T>(Op()(own, here[r][e]));
    before = Op()(before, all);
  }
}

/* Writes a warp's part of tile t, whose items are no longer needed. */
template <layout L, typename T>
__device__ inline void store(const job<T> &j, unsigned t, const chunk<T> (&results)[ROWS],
                             rows<T> &items) {
  const int lane = threadIdx.x % WARP;
  const segment<T, L> s(j, t);
  const int64_t step = L == layout::PLAIN ? 1 : j.lines.step;
  T *to = j.out + scan_to(&j.lines, s.line) + s.first * step;
  if (s.lead(to, step) == 0) {
    auto *chunks = (chunk<T> *)lowest(to, step);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
      if (step > 0)
        chunks[r * WARP + lane] = results[r];
      else
        chunks[ROWS * WARP - 1 - r * WARP - lane] = reversed(results[r]);
    return;
  }
#pragma unroll
  for (int r = 0; r < ROWS; r++) items[r * WARP + lane] = results[r];
  __syncwarp();
  const T *at = (const T *)&items;
  for (int k = lane; k < SEGMENT<T> && k < s.rest; k += WARP) to[k * step] = at[k];
  __syncwarp();
}

/* Publishes the aggregate of a tile; returns that of its earlier warps. All threads call it. */
template <typename Op, layout L, typename T>
__device__ inline scan_computed_t<T> begin_tile(const job<T> &j, unsigned t, rows<T> &items,
                                                shared_memory<T> &m) {
  using C = scan_computed_t<T>;
  const int warp = threadIdx.x / WARP;
  if constexpr (L == layout::ANY) copy_contiguous<L>(j, t, items);
  const C sum = join_rows<Op, T>(items);
  if (threadIdx.x % WARP == 0) m.sums[warp] = sum;
  __syncthreads();
  C all = Op::template identity<C>(), before = all;
#pragma unroll
  for (int w = 0; w < WARPS; w++) {
    if (w == warp) before = all;
    all = Op()(all, m.sums[w]);
  }
  if (threadIdx.x == 0 && t < j.n_tiles)
    publish_tile(j.words + TICKETS, (int64_t)j.n_tiles, (int64_t)t, all);
  return before;
}

template <typename T, typename Op, layout L>
__global__ void __launch_bounds__(THREADS, HELD<T>) long_kernel(const __grid_constant__ job<T> j) {
  using C = scan_computed_t<T>;
  __shared__ shared_memory<T> m;
  const int warp = threadIdx.x / WARP;
  unsigned *tickets = (unsigned *)j.words;
  unsigned tiles[DEPTH] = {}; /* the present one, the next one, and the following ones */
  known<C> of_line = {0, 0, Op::template identity<C>()};
  C before = of_line.before;
  /* Other blocks' tickets are between a block's own, because it waits for each. */
#pragma unroll
  for (int k = 1; k < DEPTH; k++) {
    if (threadIdx.x == 0) m.ticket = atomicAdd(tickets, 1u);
    __syncthreads();
    tiles[k] = m.ticket;
    if (tiles[1] >= j.n_tiles) return;
    fetch<Op, L>(j, tiles[k], m.tiles[k][warp]);
    __syncthreads();
  }
  bool is_there = false;
  for (int slot = 0; !is_there || tiles[0] < j.n_tiles;) {
    unsigned ticket = 0;
    if (threadIdx.x == 0) ticket = atomicAdd(tickets, 1u);
    rows<T> &items = m.tiles[slot][warp];
    slot = slot + 1 == DEPTH ? 0 : slot + 1;
    __pipeline_wait_prior(DEPTH - 2);
    __syncwarp();
    const C before_next = begin_tile<Op, L>(j, tiles[1], m.tiles[slot][warp], m);
    if (threadIdx.x == 0) m.ticket = ticket;
    const C before_tile = join_before<Op>(j, tiles[0], m, of_line);
    if (is_there) {
      chunk<T> results[ROWS];
      scan_rows<Op, T>(items, Op()(before_tile, before), results);
      store<L>(j, tiles[0], results, items);
    }
    is_there = true;
    before = before_next;
    ticket = m.ticket;
    fetch<Op, L>(j, ticket, items);
#pragma unroll
    for (int k = 0; k + 1 < DEPTH; k++) tiles[k] = tiles[k + 1];
    tiles[DEPTH - 1] = ticket;
  }
}

template <typename T> bool is_plain(const job<T> &j) {
  const int64_t m_in = j.lines.n_lines > 1 ? j.lines.in.m : 0;
  const int64_t m_out = j.lines.n_lines > 1 ? j.lines.out.m : 0;
  const auto first_in = (uintptr_t)(j.x + j.lines.first_in);
  const auto first_out = (uintptr_t)(j.out + j.lines.first_out);
  return j.lines.step == 1 &&
         (first_in | first_out | m_in * sizeof(T) | m_out * sizeof(T)) % 16 == 0;
}

template <typename T, typename Op>
int run(cuplug::call call, const T *x, T *out, const scan_lines &lines) {
  const int64_t per_line = cuplug::blocks(lines.n, TILE<T>), n_tiles = per_line * lines.n_lines;
  const int64_t n_words = TICKETS + n_tiles * WORDS<scan_computed_t<T>>;
  auto *words = call.workspace<uint64_t>(n_words);
  if (!words) return CUPLUG_ERROR_MEMORY;
  const job<T> j = {x, out, lines, (unsigned)n_tiles, (unsigned)per_line, words};
  const int status = call.check(cudaMemsetAsync(words, 0, n_words * sizeof *words, call.stream()));
  if (status) return status;
  const cuplug::grid grid({n_tiles < FILLED ? n_tiles : FILLED}, THREADS);
  if constexpr (HAS_PLAIN<T, Op>)
    if (is_plain(j)) return call.launch<long_kernel<T, Op, layout::PLAIN>>(grid, j);
  return call.launch<long_kernel<T, Op, layout::ANY>>(grid, j);
}

} // namespace

SCAN_DTYPES(SCAN_DEFINE, scan_long)
