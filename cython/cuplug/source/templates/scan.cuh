/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of scans; what stands before is as for reduction.cuh, with packs of one element.
 *
 * Elements are read once and written once (after D. Merrill, M. Garland: Single-pass parallel
 * prefix scan with decoupled look-back, NVR-2016-002). A block has a tile, and each of its threads
 * some elements that follow each other. By rows a tile is of all lines one behind the other; by
 * columns it is of some lines that lie side by side. Where lines are not FEW, a block has some to
 * itself. Else blocks stay, and take tiles in turn: a block says what its next tile comes to before
 * it asks what stands before its present one, which others have said by then. Blocks take tiles in
 * the order of their tickets: they wait for blocks that run. ALONE, a thread has a line, and
 * neighbours lie side by side. Values are put together in their order. */
constexpr int AHEAD = 8;
constexpr int BLOCKS_HELD = /* by a multiprocessor at once */
    BYTES <= 4 || (BYTES <= 8 && !COLUMNS) ? 4 : 3;
struct arrays {
  void *data[N_ARRAYS];
};
struct scalars {
  cuplug_scalar of[N_SCALARS];
};
struct steps {
  long long of[N_ARRAYS];
};

/* ---- Elements -------------------------------------------------------------------------------- */

/* The element at a place of each array, number r of its line. */
__device__ inline cuplug_value element_at(const arrays &a, const cuplug_numbers &given,
                                          const int64_t (&place)[N_ARRAYS], int64_t r) {
  cuplug_places p;
#define CUPLUG_LOAD(k, name, type) p.name.value[0] = static_cast<const type *>(a.data[k])[place[k]];
  CUPLUG_EACH_INPUT(CUPLUG_LOAD)
  return cuplug_element(given, p, 0, r);
}

__device__ inline void store_at(const arrays &a, const cuplug_numbers &given,
                                const int64_t (&place)[N_ARRAYS], int64_t r,
                                const cuplug_value &value) {
  const cuplug_results results = cuplug_results_of(given, value, EXCLUSIVE ? r : r + 1);
#define CUPLUG_STORE(k, name, type) static_cast<type *>(a.data[k])[place[k]] = results.name;
  CUPLUG_EACH_OUTPUT(CUPLUG_STORE)
}

/* Goes on by n elements of a line. */
__device__ inline void move_on(int64_t (&place)[N_ARRAYS], const steps &step, int64_t n) {
#pragma unroll
  for (int k = 0; k < N_ARRAYS; k++) place[k] += n * step.of[k];
}

/* Goes on from `s` by an element; returns what stands there. */
__device__ inline cuplug_value go_on(const cuplug_numbers &given, state &s, bool begins_line,
                                     const cuplug_value &next) {
  const cuplug_value before = EXCLUSIVE && begins_line ? cuplug_identity(given) : s.value;
  s.value = s.is_there && !begins_line ? cuplug_reduce(given, s.value, next) : next;
  s.is_cut |= begins_line;
  s.is_there = true;
  return EXCLUSIVE ? before : s.value;
}

#define CUPLUG_SCAN_PARAMETERS                                                \
  const arrays a, const scalars read, const int64_t n_lines, const int64_t n, \
      const divisors<1> length, const divisors<KEPT> kept,                    \
      const strides<N_ARRAYS, KEPT> kept_steps, const steps step, uint64_t *words, const tiling of
#define CUPLUG_SCAN_ARGUMENTS a, read, n_lines, n, length, kept, kept_steps, step, words, of

/* One element after the other; some are loaded ahead. */
__device__ inline void scan_line(CUPLUG_SCAN_PARAMETERS) {
  const cuplug_numbers given = cuplug_read(read.of);
  const int64_t line = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  int64_t from[N_ARRAYS] = {};
  state s = {};
  if (line >= n_lines) return;
  locate<KEPT>((index)line, kept, kept_steps, from);
  for (int64_t r = 0; r < n; r += AHEAD) {
    cuplug_value loaded[AHEAD];
    int64_t to[N_ARRAYS];
    memcpy(to, from, sizeof to);
#pragma unroll
    for (int u = 0; u < AHEAD; u++, move_on(from, step, 1))
      if (r + u < n) loaded[u] = element_at(a, given, from, r + u);
#pragma unroll
    for (int u = 0; u < AHEAD; u++, move_on(to, step, 1))
      if (r + u < n) store_at(a, given, to, r + u, go_on(given, s, r + u == 0, loaded[u]));
  }
}

/* The items of a thread: elements from number r of a line on. Those of rows go on in the next
 * line: bit k of `cuts` is set where item k begins one. */
struct run {
  int64_t r;
  int count;
  unsigned cuts;
};

/* The items of a tile, word by word: element k of its memory's order is at k. */
typedef unsigned kept_items[WORDS][TILE];

/* Where a thread's items begin there, and how far apart they are. */
template <bool OWN_ORDER> struct places {
  int first, apart;
  __device__ explicit places(const seat &own) : first(threadIdx.x), apart(THREADS) {
    if (!OWN_ORDER) return;
    apart = own.side;
    first = own.y * ITEMS * apart + own.column;
  }
};

template <bool OWN_ORDER>
__device__ inline void keep(const cuplug_value (&items)[ITEMS], const seat &own, kept_items &to) {
  const places<OWN_ORDER> at(own);
#pragma unroll
  for (int j = 0; j < ITEMS; j++) {
    unsigned parts[WORDS] = {};
    memcpy(parts, &items[j], sizeof items[j]);
#pragma unroll
    for (int w = 0; w < WORDS; w++) to[w][at.first + j * at.apart] = parts[w];
  }
}

template <bool OWN_ORDER>
__device__ inline void take(const kept_items &from, const seat &own, cuplug_value (&items)[ITEMS]) {
  const places<OWN_ORDER> at(own);
#pragma unroll
  for (int j = 0; j < ITEMS; j++) {
    unsigned parts[WORDS];
#pragma unroll
    for (int w = 0; w < WORDS; w++) parts[w] = from[w][at.first + j * at.apart];
    memcpy(&items[j], parts, sizeof items[j]);
  }
}

/* Goes on from `s` by a thread's items; with KEEPS they become what stands in their places. */
template <bool KEEPS>
__device__ inline void scan_items(const cuplug_numbers &given, const run &own, state &s,
                                  cuplug_value (&items)[ITEMS]) {
  const bool is_plain = own.count == ITEMS && !own.cuts;
  if (is_plain && s.is_there) { /* by far the most: without a question for each item */
#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
      const cuplug_value before = s.value;
      s.value = cuplug_reduce(given, s.value, items[j]);
      if (KEEPS) items[j] = EXCLUSIVE ? before : s.value;
    }
  } else if (is_plain && !KEEPS) {
    s = {items[0], true, false};
#pragma unroll
    for (int j = 1; j < ITEMS; j++) s.value = cuplug_reduce(given, s.value, items[j]);
  } else {
#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
      if (j >= own.count) continue;
      const cuplug_value here = go_on(given, s, own.cuts >> j & 1, items[j]);
      if (KEEPS) items[j] = here;
    }
  }
}

/* Which elements a block and its threads have. */
struct tile {
  int64_t number, first, line; /* of all tiles; by rows of all elements; by columns of all lines */
  int strip, part;             /* its place among the tiles of its strip */
  int n_rows;                  /* by rows: elements */
  bool is_used, begins;        /* the thread has a line; its first element begins one */
  run own;
};

/* That which begins with element `first`, by columns of the lines of a strip, and ends before `end`
 * in any case. */
__device__ inline tile tile_at(int64_t first, int64_t end, int strip, int64_t n_lines, int64_t n,
                               const divisors<1> &length, const tiling &of) {
  const seat own = seat_of(of);
  const int n_rows = TILE >> own.shift, above = own.y * ITEMS;
  tile t = {0, first, 0, strip, 0, 0, true, first == 0, {}};
  const int64_t rest = end - first, at = first + above;
  t.n_rows = rest < n_rows ? (int)rest : n_rows;
  t.own.count = t.n_rows - above < ITEMS ? t.n_rows - above : ITEMS;
  t.own.r = at;
  if constexpr (COLUMNS) {
    t.line = (int64_t)strip * own.side + own.column;
    t.is_used = t.line < n_lines;
    if (!t.is_used) t.own.count = 0;
    t.own.cuts = at == 0;
  } else {
    t.begins = first - (int64_t)divide((index)first, length.of[0]) * n == 0;
    t.own.r = at - (int64_t)divide((index)at, length.of[0]) * n;
    for (int64_t k = t.own.r ? n - t.own.r : 0; k < ITEMS; k += n) t.own.cuts |= 1u << k;
  }
  return t;
}

__device__ inline tile tile_of(unsigned number, int64_t n_lines, int64_t n,
                               const divisors<1> &length, const tiling &of) {
  const unsigned ticket = again(number), n_strips = COLUMNS ? (unsigned)of.n_strips : 1;
  const unsigned part = ticket / n_strips;
  const int64_t first = (int64_t)part * (TILE >> seat_of(of).shift);
  tile t = tile_at(first, COLUMNS ? n : n_lines * n, (int)(ticket - part * n_strips), n_lines, n,
                   length, of);
  t.number = ticket, t.part = (int)part;
  return t;
}

/* Goes through a tile's elements, in an order in which neighbours lie side by side. */
template <bool WHOLE, typename B>
__device__ inline void each_of(CUPLUG_SCAN_PARAMETERS, const tile &t, B body) {
  const seat own = seat_of(of);
  int64_t here[N_ARRAYS] = {};
  if constexpr (COLUMNS) {
    locate<KEPT>((index)t.line, kept, kept_steps, here);
    move_on(here, step, t.first + own.y);
  }
#pragma unroll
  for (int j = 0; j < ITEMS; j++) {
    const int row = own.y + j * own.height;
    const int64_t at = t.first + row;
    if (!WHOLE && row >= t.n_rows) return;
    if constexpr (COLUMNS) {
      body(j, here, at);
      move_on(here, step, own.height);
    } else {
      int64_t place[N_ARRAYS] = {};
      const index line = divide((index)at, length.of[0]);
      const int64_t r = at - (int64_t)line * length.of[0].size;
      if constexpr (!FLAT) locate<KEPT>(line, kept, kept_steps, place);
      if constexpr (!FLAT) move_on(place, step, r);
      for (int x = 0; FLAT && x < N_ARRAYS; x++) place[x] = at;
      body(j, place, r);
    }
  }
}

template <typename B>
__device__ inline void each_element(CUPLUG_SCAN_PARAMETERS, const tile &t, B body) {
  if (!t.is_used) return;
  if (t.n_rows == TILE >> seat_of(of).shift)
    each_of<true>(CUPLUG_SCAN_ARGUMENTS, t, body);
  else
    each_of<false>(CUPLUG_SCAN_ARGUMENTS, t, body);
}

__device__ inline void load_tile(CUPLUG_SCAN_PARAMETERS, const cuplug_numbers &given, const tile &t,
                                 cuplug_value (&items)[ITEMS]) {
  each_element(CUPLUG_SCAN_ARGUMENTS, t, [&](int j, const int64_t(&place)[N_ARRAYS], int64_t r) {
    items[j] = element_at(a, given, place, r);
  });
}

/* Stores what stands in the places of a thread's items; `s` is what comes before them. */
__device__ inline void store_tile(CUPLUG_SCAN_PARAMETERS, const cuplug_numbers &given,
                                  const tile &t, state s, cuplug_value (&items)[ITEMS],
                                  kept_items &slot) {
  const seat own = seat_of(of);
  scan_items<true>(given, t.own, s, items);
  keep<true>(items, own, slot);
  __syncthreads();
  take<false>(slot, own, items);
  each_element(CUPLUG_SCAN_ARGUMENTS, t, [&](int j, const int64_t(&place)[N_ARRAYS], int64_t r) {
    store_at(a, given, place, r, items[j]);
  });
}

/* ---- Lines of one block ---------------------------------------------------------------------- */

/* Tile after tile, by columns of a strip, by rows of some lines one behind the other. */
__device__ inline void scan_own(CUPLUG_SCAN_PARAMETERS) {
  __shared__ board m;
  __shared__ kept_items slot;
  const cuplug_numbers given = cuplug_read(read.of);
  const seat own = seat_of(of);
  const int64_t block = blockIdx.x, n_blocks = gridDim.x;
  const int64_t end = COLUMNS ? n : (block + 1) * n_lines / n_blocks * n;
  int64_t first = COLUMNS ? 0 : block * n_lines / n_blocks * n;
  for (state before = {}; first < end; first += TILE >> own.shift) {
    const tile t = tile_at(first, end, (int)block, n_lines, n, length, of);
    cuplug_value items[ITEMS];
    state s = {}, total;
    load_tile(CUPLUG_SCAN_ARGUMENTS, given, t, items);
    keep<false>(items, own, slot);
    __syncthreads();
    take<true>(slot, own, items);
    scan_items<false>(given, t.own, s, items);
    s = join(given, before, join_threads(given, s, own, m, total));
    before = join(given, before, total);
    store_tile(CUPLUG_SCAN_ARGUMENTS, given, t, s, items, slot);
  }
}

/* ---- Tiles in turn --------------------------------------------------------------------------- */

/* Says what a tile comes to, and keeps its items; returns what the threads before this one do. */
__device__ inline state begin_tile(const cuplug_numbers &given, uint64_t *said, const tiling &of,
                                   const tile &t, cuplug_value (&items)[ITEMS], kept_items &slot,
                                   board &m) {
  const seat own = seat_of(of);
  state s = {}, total;
  keep<false>(items, own, slot);
  __syncthreads();
  take<true>(slot, own, items);
  scan_items<false>(given, t.own, s, items);
  s = join_threads(given, s, own, m, total);
  if (threadIdx.x < own.side && total.is_there)
    say(said, of.n_states, t.number * own.side + threadIdx.x, total.is_cut ? ALL : OWN,
        total.value);
  return s;
}

/* Of the last tile of a group: says what all of it comes to. Others wait for that. */
__device__ inline void end_group(const cuplug_numbers &given, uint64_t *said, const tiling &of,
                                 const tile &t, board &m) {
  if (t.part % GROUP != GROUP - 1) return;
  const seat own = seat_of(of);
  const state all = hear(given, said, of, {t.strip, t.part + 1, GROUP, GROUP}, own, m, t.is_used);
  const int64_t group = of.n_tiles + t.part / GROUP * of.n_strips + t.strip;
  if (threadIdx.x < own.side && t.is_used)
    say(said, of.n_states, group * own.side + threadIdx.x, all.is_cut ? ALL : OWN, all.value);
}

/* What the tiles before this one come to, which the next group's first tile says too. */
__device__ inline state join_before(const cuplug_numbers &given, uint64_t *said, const tiling &of,
                                    const tile &t, board &m) {
  if (t.begins) return state{};
  const seat own = seat_of(of);
  const int in_group = t.part % GROUP, most = HEARD >> own.shift;
  const int n = most < MOST_HEARD ? most : MOST_HEARD;
  const state all = hear(given, said, of, {t.strip, t.part, in_group, n}, own, m, t.is_used);
  const int64_t group = of.n_tiles + (t.part / GROUP - 1) * of.n_strips + t.strip;
  if (in_group == 0 && threadIdx.x < own.side && t.is_used)
    say(said, of.n_states, group * own.side + threadIdx.x, ALL, all.value);
  return all;
}

__device__ inline void scan_tiles(CUPLUG_SCAN_PARAMETERS) {
  __shared__ board m;
  __shared__ kept_items slots[2];
  const cuplug_numbers given = cuplug_read(read.of);
  unsigned *tickets = reinterpret_cast<unsigned *>(words), present = 0;
  uint64_t *said = words + 1;
  state before = {};
  if (threadIdx.x == 0) m.ticket = atomicAdd(tickets, 1u);
  __syncthreads();
  for (int slot = 0, is_there = 0;; slot ^= 1) {
    const unsigned next = m.ticket;
    const bool has_next = next < of.n_tiles;
    state before_then = {};
    unsigned ticket = next;
    if (is_there) end_group(given, said, of, tile_of(present, n_lines, n, length, of), m);
    if (has_next) {
      cuplug_value items[ITEMS];
      load_tile(CUPLUG_SCAN_ARGUMENTS, given, tile_of(next, n_lines, n, length, of), items);
      before_then =
          begin_tile(given, said, of, tile_of(next, n_lines, n, length, of), items, slots[slot], m);
      if (threadIdx.x == 0) ticket = atomicAdd(tickets, 1u);
    }
    if (is_there) {
      const tile now = tile_of(present, n_lines, n, length, of);
      const state all = join_before(given, said, of, now, m);
      cuplug_value items[ITEMS];
      take<true>(slots[slot ^ 1], seat_of(of), items);
      store_tile(CUPLUG_SCAN_ARGUMENTS, given, now, join(given, all, before), items,
                 slots[slot ^ 1]);
    }
    if (!has_next) return;
    if (threadIdx.x == 0) m.ticket = ticket;
    __syncthreads();
    is_there = 1, present = next, before = before_then;
  }
}

/* Lets tiles say nothing, and begins with the first one. */
CUPLUG_KERNEL cuplug_kernel(CUPLUG_SCAN_PARAMETERS) {
  const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (k <= of.n_states * WORDS) words[k] = NOTHING;
}

CUPLUG_KERNEL_FOR(BLOCKS_HELD) cuplug_finish(CUPLUG_SCAN_PARAMETERS) {
  if constexpr (ALONE)
    scan_line(CUPLUG_SCAN_ARGUMENTS);
  else if constexpr (!FEW)
    scan_own(CUPLUG_SCAN_ARGUMENTS);
  else
    scan_tiles(CUPLUG_SCAN_ARGUMENTS);
}
} // namespace cuplug
