/* SPDX-License-Identifier: Apache-2.0 */
/* The values of the tiles of scans, and how blocks publish them. Included before scan.cuh. */
constexpr int ITEMS = UNROLL; /* per thread */
constexpr int TILE = THREADS * ITEMS, WARP = 32, WARPS = THREADS / WARP, AHEAD = 8;
constexpr int BLOCKS_HELD = /* by a multiprocessor */
    sizeof(cuplug_value) <= 4 && !COLUMNS ? 4
    : sizeof(cuplug_value) <= 8           ? 3
                                          : 2;
constexpr int WORDS = (sizeof(cuplug_value) + 3) / 4; /* of 32 bits */

/* ---- Exchange between threads ---------------------------------------------------------------- */

/* The combined value of consecutive elements, if there are any. If a line begins among them,
 * preceding elements have no effect. */
struct state {
  cuplug_value value;
  bool is_there, is_cut;
};

__device__ inline state join(const cuplug_numbers &given, const state &a, const state &b) {
  if (!b.is_there) return a;
  if (b.is_cut || !a.is_there) return {b.value, true, a.is_cut || b.is_cut};
  return {cuplug_reduce(given, a.value, b.value), true, a.is_cut};
}

/* The state of the thread `step` lanes below, which must exist for the result to be valid. */
__device__ inline state state_below(const state &s, int step) {
  unsigned words[WORDS] = {};
  state below;
  memcpy(words, &s.value, sizeof s.value);
#pragma unroll
  for (int w = 0; w < WORDS; w++) words[w] = __shfl_up_sync(~0u, words[w], step);
  memcpy(&below.value, words, sizeof s.value);
  const unsigned flags = __shfl_up_sync(~0u, s.is_there | s.is_cut << 1, step);
  below.is_there = flags & 1, below.is_cut = flags & 2;
  return below;
}

/* Combines the states of the threads before this one in its column, and in `total` of all. All
 * threads must call this. Thread k has column k % side. */
__device__ inline state join_threads(const cuplug_numbers &given, const state &own, int side,
                                     state &total) {
  __shared__ state of_warps[THREADS];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, column = lane % side;
  state all = own;
  for (int step = side; step < WARP; step *= 2) {
    const state below = state_below(all, step);
    if (lane >= step) all = join(given, below, all);
  }
  state before = side < WARP ? state_below(all, side) : state{};
  if (lane < side) before.is_there = before.is_cut = false;
  __syncthreads();
  if (lane >= WARP - side) of_warps[warp * side + column] = all;
  __syncthreads();
  state ahead = {};
  total = state{};
  for (int w = 0; w < WARPS; w++) {
    if (w == warp) ahead = total;
    total = join(given, total, of_warps[w * side + column]);
  }
  return join(given, ahead, before);
}

/* ---- Published states ------------------------------------------------------------------------ */

enum said { NOTHING, OWN, ALL }; /* a tile's own value, or the value of all tiles up to it */

/* Publishes words of 32 bits, each next to the kind of state, so that they need no order. */
__device__ inline void say(volatile uint64_t *words, int64_t n_states, int64_t at, said what,
                           const cuplug_value &value) {
  unsigned parts[WORDS] = {};
  memcpy(parts, &value, sizeof value);
#pragma unroll
  for (int w = 0; w < WORDS; w++) words[w * n_states + at] = (uint64_t)what << 32 | parts[w];
}

__device__ inline state heard(const volatile uint64_t *words, int64_t n_states, int64_t at) {
  unsigned parts[WORDS];
  uint64_t least, most;
  do {
    least = ALL, most = NOTHING;
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
      const uint64_t word = words[w * n_states + at], what = word >> 32;
      parts[w] = (unsigned)word;
      least = what < least ? what : least;
      most = what > most ? what : most;
    }
  } while (least == NOTHING || least != most);
  state s = {{}, true, most == ALL};
  memcpy(&s.value, parts, sizeof s.value);
  return s;
}

/* The published states of a window of tiles. The closest is the last. */
struct window {
  cuplug_value values[THREADS];
  int last_all[WARP]; /* for each column: the closest one that has published ALL; -1: none */
};

/* Combines all tiles before number `number` in this thread's column: the closest tile that has
 * published ALL, then those after it in order. The bits therefore do not depend on timing. All
 * threads must call this. A line begins in the first tile of a column, which publishes ALL. */
__device__ inline state all_before(const cuplug_numbers &given, const uint64_t *words,
                                   int64_t n_states, int64_t number, int64_t n_strips, int side,
                                   bool is_used) {
  __shared__ window heard_of;
  const int column = threadIdx.x % side, y = threadIdx.x / side, n_window = THREADS / side;
  const int64_t own = number - (n_window - y) * n_strips;
  for (bool is_done = false; !is_done;) {
    if (threadIdx.x < side) heard_of.last_all[column] = -1;
    __syncthreads();
    if (own >= 0 && is_used) {
      const state s = heard(words, n_states, own * side + column);
      heard_of.values[threadIdx.x] = s.value;
      if (s.is_cut) atomicMax(&heard_of.last_all[column], y);
    }
    __syncthreads();
    is_done = __syncthreads_and(heard_of.last_all[column] >= 0 || !is_used);
  }
  if (threadIdx.x < side && is_used) {
    const int last = heard_of.last_all[column];
    cuplug_value all = heard_of.values[last * side + column];
#pragma unroll 8
    for (int k = last + 1; k < n_window; k++)
      all = cuplug_reduce(given, all, heard_of.values[k * side + column]);
    heard_of.values[column] = all;
  }
  __syncthreads();
  return {heard_of.values[column], is_used, false};
}
