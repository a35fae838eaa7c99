/* SPDX-License-Identifier: Apache-2.0 */
/* What the tiles of scans come to, and how blocks tell each other: before scan.cuh. Tiles number
 * `n_strips` and so on follow those of the same strips; each has a state for each of its columns,
 * 2 to the power of `shift`. GROUP tiles that follow each other are put together once more, so that
 * those behind them have less to ask. */
constexpr int ITEMS = UNROLL; /* of a thread: odd, so that threads do not wait for one bank */
constexpr int TILE = THREADS * ITEMS, WARP = 32, WARPS = THREADS / WARP;
constexpr int BYTES = sizeof(cuplug_value), WORDS = (BYTES + 3) / 4; /* of 32 bits */
constexpr int MOST_SIDE = BYTES <= 16 ? 32 : BYTES <= 64 ? 8 : 4;    /* as in core/source/scan.c */
constexpr int GROUP = 8;                                             /* the same */
constexpr int HEARD = BYTES <= 4    ? 512
                      : BYTES <= 8  ? 448
                      : BYTES <= 16 ? 256
                      : BYTES <= 64 ? 128
                                    : 32;
constexpr int MOST_HEARD = 128;                          /* of a column at once */
constexpr int ANSWERS = (HEARD + THREADS - 1) / THREADS; /* of a thread at once */

struct tiling {
  long long n_tiles, n_states, n_strips, shift; /* n_states: of tiles, and behind them of groups */
};

/* The same number, of which the compiler does not know it: what is made of it is computed again,
 * and not held in registers from one time to the next. */
template <typename T> __device__ inline T again(T number) {
  asm volatile("" : "+r"(number));
  return number;
}

/* Where a thread stands: `side` columns lie side by side, `height` threads in each. */
struct seat {
  int shift, side, height, column, y;
};
__device__ inline seat seat_of(const tiling &of) {
  const int x = again((int)threadIdx.x), shift = COLUMNS ? (int)of.shift : 0, side = 1 << shift;
  return {shift, side, THREADS >> shift, x & (side - 1), x >> shift};
}

/* ---- Values on the way ----------------------------------------------------------------------- */

/* What some elements that follow each other come to, if there are any; where a line begins among
 * them, what comes before does not matter. */
struct state {
  cuplug_value value;
  bool is_there, is_cut;
};

/* What the threads of a block share: of columns one after the other. The two are used in turn. */
struct board {
  union {
    struct {
      cuplug_value values[WARPS * MOST_SIDE];
      unsigned char flags[WARPS * MOST_SIDE];
    } of_warps;
    struct {
      cuplug_value values[HEARD]; /* the nearest tile stands last */
      int last_all[MOST_SIDE];    /* the nearest that has said what all come to; -1: none */
    } heard;
  };
  unsigned ticket;
};

__device__ inline state join(const cuplug_numbers &given, const state &a, const state &b) {
  if (!b.is_there) return a;
  if (b.is_cut || !a.is_there) return {b.value, true, a.is_cut || b.is_cut};
  return {cuplug_reduce(given, a.value, b.value), true, a.is_cut};
}

/* That of the thread `step` lanes below, which there must be for the result to mean something. */
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

/* What the threads of this one's column before it come to, and in `total` all of them. All threads
 * come here. */
__device__ inline state join_threads(const cuplug_numbers &given, const state &own, const seat &at,
                                     board &m, state &total) {
  const int lane = threadIdx.x % WARP, own_warp = threadIdx.x / WARP, side = at.side;
  state all = own;
  for (int step = side; step < WARP; step *= 2) {
    const state below = state_below(all, step);
    if (lane >= step) all = join(given, below, all);
  }
  state before = side < WARP ? state_below(all, side) : state{};
  if (lane < side) before.is_there = before.is_cut = false;
  __syncthreads();
  if (lane >= WARP - side) {
    m.of_warps.values[own_warp * side + at.column] = all.value;
    m.of_warps.flags[own_warp * side + at.column] = all.is_there | all.is_cut << 1;
  }
  __syncthreads();
  state ahead = {};
  total = state{};
  for (int w = 0; w < WARPS; w++) {
    if (w == own_warp) ahead = total;
    const int k = w * side + at.column, flags = m.of_warps.flags[k];
    const state of_warp = {m.of_warps.values[k], (flags & 1) != 0, flags > 1};
    total = join(given, total, of_warp);
  }
  return join(given, ahead, before);
}

/* ---- What tiles say -------------------------------------------------------------------------- */

enum said { NOTHING, OWN, ALL }; /* what a tile comes to by itself, or with all before it */

/* Words of 32 bits, each beside what is said: they need no order among each other. */
__device__ inline void say(volatile uint64_t *words, int64_t n_states, int64_t at, said what,
                           const cuplug_value &value) {
  unsigned parts[WORDS] = {};
  memcpy(parts, &value, sizeof value);
#pragma unroll
  for (int w = 0; w < WORDS; w++) words[w * n_states + at] = (uint64_t)what << 32 | parts[w];
}

/* Asks again until all words say the same. */
__device__ inline state heard(const volatile uint64_t *words, int64_t n_states, int64_t at,
                              uint64_t (&seen)[WORDS]) {
  unsigned parts[WORDS];
  for (;;) {
    uint64_t least = ALL, most = NOTHING;
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
      const uint64_t what = seen[w] >> 32;
      parts[w] = (unsigned)seen[w];
      least = what < least ? what : least;
      most = what > most ? what : most;
    }
    if (least != NOTHING && least == most) break;
#pragma unroll
    for (int w = 0; w < WORDS; w++) seen[w] = words[w * n_states + at];
  }
  state s = {{}, true, seen[0] >> 32 == ALL};
  memcpy(&s.value, parts, sizeof s.value);
  return s;
}

/* Tiles of a strip before its tile number `part`, and before them groups: n of both. */
struct question {
  int strip, part, n_tiles, n;
};

/* Which tile or group is asked `back` before the last one; -1: there is none. */
__device__ inline int64_t number_asked(const tiling &of, const question &q, int back) {
  const bool is_tile = back < q.n_tiles;
  const int number = is_tile ? q.part - 1 - back : q.part / GROUP - 1 - (back - q.n_tiles);
  if (number < 0) return -1;
  return (is_tile ? 0 : of.n_tiles) + number * of.n_strips + q.strip;
}

/* A thread's share of the answers, in shared memory. */
__device__ inline void ask(const volatile uint64_t *words, const tiling &of, const question &q,
                           const seat &own, board &m) {
  int64_t at[ANSWERS];
  uint64_t seen[ANSWERS][WORDS];
#pragma unroll
  for (int i = 0; i < ANSWERS; i++) {
    const int back = own.y + i * own.height;
    at[i] = back < q.n ? number_asked(of, q, back) : -1;
    if (at[i] < 0) continue;
    at[i] = at[i] * own.side + own.column;
#pragma unroll
    for (int w = 0; w < WORDS; w++) seen[i][w] = words[w * of.n_states + at[i]];
  }
#pragma unroll
  for (int i = 0; i < ANSWERS; i++) {
    if (at[i] < 0) continue;
    const int k = q.n - 1 - (own.y + i * own.height);
    const state s = heard(words, of.n_states, at[i], seen[i]);
    m.heard.values[k * own.side + own.column] = s.value;
    if (s.is_cut) atomicMax(&m.heard.last_all[own.column], k);
  }
}

/* What all that is asked for comes to in this thread's column: of tiles alone themselves; else all
 * before, from one that has said what all come to on, and those behind it one after the other. So
 * bits do not depend on who was quick. All threads come here; a line begins in the first tile of a
 * column, which says ALL. */
__device__ inline state hear(const cuplug_numbers &given, const uint64_t *words, const tiling &of,
                             const question &q, const seat &own, board &m, bool is_used) {
  const bool is_first = threadIdx.x < own.side;
  __syncthreads();
  for (bool is_done = false; !is_done;) {
    if (is_first) m.heard.last_all[own.column] = -1;
    __syncthreads();
    if (is_used) ask(words, of, q, own, m);
    __syncthreads();
    is_done = q.n == q.n_tiles || m.heard.last_all[own.column] >= 0 || !is_used;
    is_done = __syncthreads_and(is_done);
  }
  const int last = m.heard.last_all[own.column], first = last < 0 ? 0 : last;
  if (is_first && is_used) {
    cuplug_value all = m.heard.values[first * own.side + own.column];
#pragma unroll 8
    for (int k = first + 1; k < q.n; k++)
      all = cuplug_reduce(given, all, m.heard.values[k * own.side + own.column]);
    m.heard.values[own.column] = all;
  }
  __syncthreads();
  return {m.heard.values[own.column], is_used, last >= 0};
}
