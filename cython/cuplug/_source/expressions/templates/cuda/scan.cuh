/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of scans. The code before them is as for reduction.cuh, with packs of one element.
 *
 * Elements are read once and written once (D. Merrill, M. Garland: Single-pass parallel prefix scan
 * with decoupled look-back, NVR-2016-002). A block has a tile, and each of its threads has
 * consecutive elements. By rows, a tile consists of elements of all lines in order. By columns, it
 * consists of `side` adjacent lines. A block publishes the value of its tile, combines the values
 * that the tiles before it have published, and then publishes the combined value up to its own.
 * Blocks take tiles in the order in which they start, so they wait only for running blocks. If
 * columns are not FEW, a block has a strip to itself. If ALONE, a thread has a line, and neighbors
 * are adjacent. Values are combined in order. */
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

__device__ inline cuplug_value element_at(const arrays &a, const cuplug_numbers &given,
                                          const int64_t (&base)[N_ARRAYS], const steps &step,
                                          int64_t r) {
  cuplug_places p;
#define CUPLUG_LOAD(k, name, type) \
  p.name.value[0] = static_cast<const type *>(a.data[k])[base[k] + (FLAT ? 0 : r * step.of[k])];
  CUPLUG_EACH_INPUT(CUPLUG_LOAD)
  return cuplug_element(given, p, 0, r);
}

__device__ inline void store_at(const arrays &a, const cuplug_numbers &given,
                                const int64_t (&base)[N_ARRAYS], const steps &step, int64_t r,
                                const cuplug_value &value) {
  const cuplug_results results = cuplug_results_of(given, value, EXCLUSIVE ? r : r + 1);
#define CUPLUG_STORE(k, name, type) \
  static_cast<type *>(a.data[k])[base[k] + (FLAT ? 0 : r * step.of[k])] = results.name;
  CUPLUG_EACH_OUTPUT(CUPLUG_STORE)
}

/* Adds an element to `s`; returns the value at its position. */
__device__ inline cuplug_value go_on(const cuplug_numbers &given, state &s, bool begins_line,
                                     const cuplug_value &next) {
  const cuplug_value before = EXCLUSIVE && begins_line ? cuplug_identity(given) : s.value;
  s.value = s.is_there && !begins_line ? cuplug_reduce(given, s.value, next) : next;
  s.is_cut |= begins_line;
  s.is_there = true;
  return EXCLUSIVE ? before : s.value;
}

#define CUPLUG_SCAN_PARAMETERS                                                     \
  const arrays a, const scalars read, const int64_t n_lines, const int64_t n,      \
      const divisors<1> length, const divisors<KEPT> kept,                         \
      const strides<N_ARRAYS, KEPT> kept_steps, const steps step, uint64_t *words, \
      const int64_t n_states, const int64_t n_strips, const int64_t side
#define CUPLUG_SCAN_ARGUMENTS \
  a, read, n_lines, n, length, kept, kept_steps, step, words, n_states, n_strips, side

/* Scans a line one element after the other. Some elements are loaded ahead. */
__device__ inline void scan_line(CUPLUG_SCAN_PARAMETERS) {
  const cuplug_numbers given = cuplug_read(read.of);
  const int64_t line = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  int64_t base[N_ARRAYS] = {};
  state s = {};
  if (line >= n_lines) return;
  locate<KEPT>((index)line, kept, kept_steps, base);
  for (int64_t r = 0; r < n; r += AHEAD) {
    cuplug_value loaded[AHEAD];
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
      if (r + u < n) loaded[u] = element_at(a, given, base, step, r + u);
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
      if (r + u < n) store_at(a, given, base, step, r + u, go_on(given, s, r + u == 0, loaded[u]));
  }
}

/* Scans adjacent lines, one for each thread of a warp. The elements of each warp follow the
 * elements of the previous warp. The next ones are loaded while the current ones are combined. */
__device__ inline void scan_strip(CUPLUG_SCAN_PARAMETERS) {
  __shared__ cuplug_value of_warps[2][WARPS][WARP];
  const cuplug_numbers given = cuplug_read(read.of);
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int64_t line = (int64_t)blockIdx.x * WARP + lane, end = line < n_lines ? n : 0;
  int64_t base[N_ARRAYS] = {};
  cuplug_value next[ITEMS];
  const auto load = [&](int64_t r) {
#pragma unroll
    for (int j = 0; j < ITEMS; j++)
      if (r + j < end) next[j] = element_at(a, given, base, step, r + j);
  };
  state before = {};
  if (end) locate<KEPT>((index)line, kept, kept_steps, base);
  load(warp * ITEMS);
  for (int64_t tile = 0, k = 0; tile < n; tile += TILE / WARP, k ^= 1) {
    const int64_t r = tile + warp * ITEMS;
    cuplug_value items[ITEMS], all;
    memcpy(items, next, sizeof items);
    load(r + TILE / WARP);
    all = items[0];
#pragma unroll
    for (int j = 1; j < ITEMS; j++)
      if (r + j < n) all = cuplug_reduce(given, all, items[j]);
    of_warps[k][warp][lane] = all;
    __syncthreads();
    state here = before;
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
      if (w == warp) here = before;
      if (tile + w * ITEMS < n) before = join(given, before, {of_warps[k][w][lane], true, false});
    }
#pragma unroll
    for (int j = 0; j < ITEMS; j++)
      if (r + j < end)
        store_at(a, given, base, step, r + j, go_on(given, here, r + j == 0, items[j]));
  }
}

/* True if a tile is contiguous in memory: by rows, and by columns that are FLAT, whose `side` lines
 * are all lines. */
constexpr bool IN_ORDER = !COLUMNS || FLAT;

/* The items of a thread: elements from number r of a line on. By rows they continue in the next
 * line: bit k of `cuts` is set if item k begins a line. */
struct run {
  int64_t r;
  int count;
  unsigned cuts;
};

/* Element k is at k + k / WARP, so that threads that read adjacent groups, whose size is a power of
 * two, do not use the same bank. */
typedef unsigned exchanged[TILE + TILE / WARP];

/* Exchanges each thread's own items with items in the order in which neighbors are adjacent, or
 * back, word by word, so that the memory suffices for values of any size. */
template <bool TO_OWN>
__device__ inline void exchange(exchanged &words, int side, cuplug_value (&items)[ITEMS]) {
  unsigned parts[ITEMS][WORDS] = {};
  const int side_by_side = threadIdx.x + threadIdx.x / WARP, step = THREADS + THREADS / WARP;
  const int first = threadIdx.x / side * side * ITEMS + threadIdx.x % side;
  const auto own = [=](int j) {
    return COLUMNS ? first + j * side + (first + j * side) / WARP : first + first / WARP + j;
  };
  for (int j = 0; j < ITEMS; j++) memcpy(parts[j], &items[j], sizeof items[j]);
#pragma unroll
  for (int w = 0; w < WORDS; w++) {
    __syncthreads();
#pragma unroll
    for (int j = 0; j < ITEMS; j++) words[TO_OWN ? side_by_side + j * step : own(j)] = parts[j][w];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < ITEMS; j++) parts[j][w] = words[TO_OWN ? own(j) : side_by_side + j * step];
  }
  for (int j = 0; j < ITEMS; j++) memcpy(&items[j], parts[j], sizeof items[j]);
}

/* Adds a thread's items to `s`. With KEEPS, they become the values at their positions. */
template <bool KEEPS>
__device__ inline void scan_items(const cuplug_numbers &given, const run &own, state &s,
                                  cuplug_value (&items)[ITEMS]) {
  const bool is_plain = own.count == ITEMS && !own.cuts;
  if (is_plain && s.is_there) { /* the usual case: no condition for each item */
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

/* The elements of a block and its threads. */
struct tile {
  int64_t number, first, line; /* number of the tile; first element in order; by columns the line */
  int n_elements;              /* in order */
  bool is_used, begins;        /* the thread has a line; its first element begins one */
  run own;
};

__device__ inline tile tile_of(unsigned ticket, int64_t n_lines, int64_t n,
                               const divisors<1> &length, int64_t n_strips, int side) {
  const int64_t first = (int64_t)ticket * TILE, rest_of_all = n_lines * n - first;
  tile t = {ticket, first, 0, rest_of_all < TILE ? (int)rest_of_all : TILE, true, false, {}};
  if constexpr (COLUMNS) {
    const int64_t part = ticket / n_strips, strip = ticket - part * n_strips;
    t.line = strip * side + threadIdx.x % side;
    t.is_used = t.line < n_lines;
    t.begins = part == 0;
    t.own.r = (part * (THREADS / side) + threadIdx.x / side) * ITEMS;
    const int64_t rest = t.is_used ? n - t.own.r : 0;
    t.own.count = rest < ITEMS ? (int)rest : ITEMS;
    t.own.cuts = t.own.r == 0;
  } else {
    const int64_t own = first + threadIdx.x * ITEMS, rest = n_lines * n - own;
    t.begins = first - (int64_t)divide((index)first, length.of[0]) * n == 0;
    t.own.r = own - (int64_t)divide((index)own, length.of[0]) * n;
    t.own.count = rest < ITEMS ? (int)rest : ITEMS;
    for (int64_t at = t.own.r ? n - t.own.r : 0; at < ITEMS; at += n) t.own.cuts |= 1u << at;
  }
  return t;
}

/* Calls `body` for a tile's elements, if possible in an order in which neighbors are adjacent. */
template <bool WHOLE, typename B>
__device__ inline void each_of(const divisors<1> &length, const divisors<KEPT> &kept,
                               const strides<N_ARRAYS, KEPT> &kept_steps, const tile &t, int side,
                               B body) {
  int64_t base[N_ARRAYS] = {};
  if (!IN_ORDER && t.is_used) locate<KEPT>((index)t.line, kept, kept_steps, base);
  const int64_t first = t.first + threadIdx.x;
#pragma unroll
  for (int j = 0; j < ITEMS; j++) {
    const int k = IN_ORDER ? j * THREADS + threadIdx.x : j;
    if (!WHOLE && k >= (IN_ORDER ? t.n_elements : t.own.count)) continue;
    if constexpr (!IN_ORDER) {
      body(j, base, t.own.r + j);
    } else {
      int64_t place[N_ARRAYS] = {};
      const int64_t at = first + j * THREADS;
      for (int x = 0; FLAT && x < N_ARRAYS; x++) place[x] = at;
      if constexpr (COLUMNS) {
        body(j, place, at >> __popc(side - 1));
      } else {
        const index line = divide((index)at, length.of[0]);
        if constexpr (!FLAT) locate<KEPT>(line, kept, kept_steps, place);
        body(j, place, at - (int64_t)line * length.of[0].size);
      }
    }
  }
}

template <typename B>
__device__ inline void each_element(const divisors<1> &length, const divisors<KEPT> &kept,
                                    const strides<N_ARRAYS, KEPT> &kept_steps, const tile &t,
                                    int side, B body) {
  if (IN_ORDER ? t.n_elements == TILE : t.own.count == ITEMS)
    each_of<true>(length, kept, kept_steps, t, side, body);
  else
    each_of<false>(length, kept, kept_steps, t, side, body);
}

__device__ inline void scan_tile(CUPLUG_SCAN_PARAMETERS) {
  __shared__ unsigned ticket;
  __shared__ exchanged memory;
  const cuplug_numbers given = cuplug_read(read.of);
  const int beside = (int)side;
  uint64_t *said = words + 1;
  if (threadIdx.x == 0) ticket = atomicAdd(reinterpret_cast<unsigned *>(words), 1u);
  __syncthreads();
  const tile t = tile_of(ticket, n_lines, n, length, n_strips, beside);
  const int64_t at = t.number * side + threadIdx.x;
  const auto each = [&](auto body) { each_element(length, kept, kept_steps, t, beside, body); };
  cuplug_value items[ITEMS];
  state s = {}, total;
  each([&](int j, const int64_t(&place)[N_ARRAYS], int64_t r) {
    items[j] = element_at(a, given, place, step, r);
  });
  if constexpr (IN_ORDER) exchange<true>(memory, beside, items);
  scan_items<false>(given, t.own, s, items);
  s = join_threads(given, s, beside, total);
  const bool speaks = threadIdx.x < beside && total.is_there;
  if (speaks) say(said, n_states, at, total.is_cut ? ALL : OWN, total.value);
  if (!t.begins) {
    const state before = all_before(given, said, n_states, t.number, n_strips, beside, t.is_used);
    total = join(given, before, total);
    if (speaks && !total.is_cut) say(said, n_states, at, ALL, total.value);
    s = join(given, before, s);
  }
  scan_items<true>(given, t.own, s, items);
  if constexpr (IN_ORDER) exchange<false>(memory, beside, items);
  each([&](int j, const int64_t(&place)[N_ARRAYS], int64_t r) {
    store_at(a, given, place, step, r, items[j]);
  });
}

/* Resets the published states of tiles, and the ticket. */
CUPLUG_KERNEL cuplug_kernel(CUPLUG_SCAN_PARAMETERS) {
  const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (k <= n_states * WORDS) words[k] = NOTHING;
}

CUPLUG_KERNEL_FOR(BLOCKS_HELD) cuplug_finish(CUPLUG_SCAN_PARAMETERS) {
  if constexpr (ALONE)
    scan_line(CUPLUG_SCAN_ARGUMENTS);
  else if constexpr (COLUMNS && !FEW)
    scan_strip(CUPLUG_SCAN_ARGUMENTS);
  else
    scan_tile(CUPLUG_SCAN_ARGUMENTS);
}
} // namespace cuplug
