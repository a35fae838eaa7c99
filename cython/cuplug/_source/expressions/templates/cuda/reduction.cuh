/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of reductions. The code before them is as for reduction.h, except that
 * `cuplug_places` are packs: elements that one instruction loads. A block has outputs and a part of
 * their elements. runtime/expressions/reduction_cuda.c describes how one of these ways is chosen:
 *
 *   rows     adjacent threads share an output, and packs are along the reduced loop
 *   FEW      the same for some adjacent outputs: element e of a line is in column e % n_columns,
 *            and threads advance by whole rows, so that each of a thread's WIDTH values stays with
 *            one column
 *   COLUMNS  packs are along the outputs, each thread has WIDTH of its own, and threads with the
 *            same threadIdx.x share them
 *
 * If ALONE, threads do not share outputs. A FLAT line need not be aligned to packs: elements before
 * its first complete pack, and after its last one, are loaded separately. */
constexpr int PARTS_AHEAD = sizeof(cuplug_value) <= 4 ? 16 : 8;
#if CUPLUG_OWN_SUMS /* for small integers: 32 bits hold the sums of a thread */
typedef int walked;
#elif CUPLUG_CHOOSES /* the best value, and the thread's pack in which it was found */
struct walked {
  decltype(cuplug_value::value) value;
  int pack;
};
#else
typedef cuplug_value walked;
#endif
#if CUPLUG_OWN_SUMS && CUPLUG_SMALL_BYTES == 1 /* 32 bits also hold the sums of a block */
typedef int summed;
#else
typedef cuplug_value summed;
#endif
/* Blocks that a multiprocessor holds at once, N_BLOCKS_HELD in runtime/expressions/reduction_cuda.c
 * if values are narrow. Without this number, the compiler uses fewer registers, and loads wait for
 * each other. */
constexpr int WALKED_BYTES = WIDTH * sizeof(walked);
constexpr int N_HELD = WALKED_BYTES <= 32 ? 4 : WALKED_BYTES <= 64 ? 3 : 2;
/* Launches overlap: this kernel begins while the last blocks of the previous kernel run, and allows
 * the next one to do the same. Memory is accessed only after the previous kernel has finished. */
__device__ inline void wait_for_kernel_ahead() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* The numbers of the elements in a thread's packs, counted from 0. */
struct numbers {
  int64_t i;
  int step, more[WIDTH];
  __device__ int64_t of(int pack, int k) const { return i + (int64_t)pack * step + more[k]; }
};

__device__ inline numbers numbers_from(int64_t first, const team &t, int n_columns) {
  numbers n = {first, t.n_lanes * (COLUMNS ? 1 : WIDTH), {}};
  const int64_t row = FEW ? first / n_columns : 0;
  const int column = FEW ? (int)(first - row * n_columns) : 0;
  if (FEW) n.i = row, n.step /= n_columns;
#pragma unroll
  for (int k = 0; k < WIDTH; k++) n.more[k] = COLUMNS ? 0 : FEW ? (column + k) / n_columns : k;
  return n;
}

#if CUPLUG_IS_SUM
/* Adds the bytes of a word that are selected by ones in `ones`. For bools, adds 128 for each that
 * is not 0. */
template <typename T> __device__ inline int add_bytes(unsigned word, unsigned ones, int sum) {
  if constexpr (T(-1) < T(0)) return __dp4a((int)word, (int)ones, sum);
  return (int)__dp4a(word, ones, (unsigned)sum);
}
__device__ inline unsigned set_bytes(unsigned x) {
  return ((x & 0x7f7f7f7f) + 0x7f7f7f7f | x) & 0x80808080;
}

/* Adds a pack of small integers, each to its own sum, or all to the first one. */
template <typename T, typename P>
__device__ inline void add_small(const P &p, walked (&sums)[WIDTH]) {
  constexpr bool is_words = sizeof(T) == 1 && WIDTH % 4 == 0;
  int all = 0;
#pragma unroll
  for (int k = 0; k < WIDTH; k++) {
    int sum = CUPLUG_OWN_SUMS ? (int)sums[k] : all;
    if constexpr (!is_words) {
      sum += CUPLUG_IS_BOOL ? (p.value[k] != 0) * 128 : (int)p.value[k];
    } else {
      const unsigned word = CUPLUG_IS_BOOL ? set_bytes(p.value[k / 4]) : p.value[k / 4];
      if (CUPLUG_OWN_SUMS) sum = add_bytes<T>(word, 1u << k % 4 * 8, sum);
      if (!CUPLUG_OWN_SUMS && k % 4 == 0) sum = add_bytes<T>(word, 0x01010101, sum);
    }
    if (CUPLUG_OWN_SUMS) sums[k] = sum;
    all = sum;
  }
  if (!CUPLUG_OWN_SUMS) sums[0] += CUPLUG_IS_BOOL ? all >> 7 : all;
}
#endif

/* Adds the first n_packs of UNROLL packs, which follow n_taken others, to the values. */
__device__ inline void take_packs(const cuplug_numbers &given,
                                  const cuplug_places (&loaded)[UNROLL], int n_packs, int n_taken,
                                  const numbers &at, bool &is_first, walked (&values)[WIDTH]) {
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    if (u >= n_packs) continue;
#if CUPLUG_IS_SUM
    add_small<cuplug_small_type>(loaded[u].CUPLUG_SMALL, values);
#else
#pragma unroll
    for (int k = 0; k < WIDTH; k++) {
      const cuplug_value made = cuplug_element(given, loaded[u], k, at.of(n_taken + u, k));
#if CUPLUG_CHOOSES
      if (is_first || cuplug_better(given, values[k].value, made.value))
        values[k] = {made.value, n_taken + u};
#else
      values[k] = is_first ? made : cuplug_follow(given, values[k], made);
#endif
    }
#endif
    is_first = false;
  }
}

/* The total of a thread's values. */
__device__ inline cuplug_value total_of(const walked &value, int k, const numbers &at) {
#if CUPLUG_OWN_SUMS
  return (cuplug_value)(CUPLUG_IS_BOOL ? value >> 7 : value);
#elif CUPLUG_CHOOSES
  cuplug_value total;
  total.value = value.value;
  total.index = at.of(value.pack, k);
  return total;
#else
  return value;
#endif
}

/* The packs of a thread: p, p + n_lanes ... before `end`, and the elements around complete packs.
 */
struct path {
  int64_t begin, p, end, n_whole, n_line;
  int lead;
  bool is_used, is_first_part, is_last_part;
};

__device__ inline path path_of(const arrays &a, const int64_t (&base)[N_ARRAYS], const team &t,
                               int64_t n_reduced, int64_t part, int64_t n_parts, bool is_used) {
  /* the first parts have an additional pack, until all packs are distributed */
  const int64_t n_packs = FLAT ? (n_reduced + WIDTH - 1) / WIDTH : n_reduced;
  const int64_t rest = n_packs - part * n_parts, y = ALONE ? 0 : blockIdx.y;
  const int lead = FLAT && is_used ? lead_of(a, base) : 0;
  const int64_t begin = ALONE ? 0 : y * part + (y < rest ? y : rest);
  const int64_t n_whole = FLAT ? (n_reduced + lead) / WIDTH : n_packs;
  const int64_t end = y == n_parts - 1 ? n_whole : begin + part + (y < rest);
  const int64_t p = begin + t.lane;
  return {begin,
          !is_used                 ? end
          : FLAT && p == 0 && lead ? t.n_lanes
                                   : p,
          end,
          n_whole,
          n_reduced,
          lead,
          is_used,
          y == 0,
          y == n_parts - 1};
}

/* The element outside of complete packs that a thread reads; -1: none. By rows, each of the first
 * threads has one of the elements before the first complete pack, or after the last. */
__device__ inline int64_t edge_of(const path &w, int lane) {
  const bool is_head = lane < WIDTH;
  const int64_t at = (is_head ? 0 : (w.n_whole - 1) * WIDTH) + lane - w.lead;
  const bool is_there = is_head ? w.is_first_part && w.lead : w.is_last_part && lane < 2 * WIDTH;
  return w.is_used && is_there && at >= 0 && at < w.n_line ? at : -1;
}

/* Adds the elements of a line in the pack that begins with its element `first` to the states of
 * some columns. */
__device__ inline void take_edge(const arrays &a, const cuplug_numbers &given,
                                 const int64_t (&base)[N_ARRAYS], int64_t first, int64_t n_line,
                                 int n_columns, state (&states)[WIDTH]) {
  cuplug_places loaded[WIDTH];
#pragma unroll
  for (int k = 0; k < WIDTH; k++) {
    const int64_t at = first + k < 0 ? 0 : first + k < n_line ? first + k : n_line - 1;
    loaded[k] = load_element(a, base, at);
  }
#pragma unroll
  for (int k = 0; k < WIDTH; k++) {
    const int64_t at = first + k;
    if (at >= 0 && at < n_line)
      add(given, states[k], cuplug_element(given, loaded[k], 0, at / n_columns));
  }
}

/* Adds the elements before the first complete pack of few columns, and after the last one. */
__device__ inline void take_edges(const arrays &a, const cuplug_numbers &given,
                                  const int64_t (&base)[N_ARRAYS], const path &w, const team &t,
                                  int n_columns, state (&states)[WIDTH]) {
  const bool has_head = w.is_first_part && w.lead && t.lane == 0;
  const bool has_tail = w.is_last_part && (w.n_whole - w.begin) % t.n_lanes == t.lane;
  if (has_head) take_edge(a, given, base, -w.lead, w.n_line, n_columns, states);
  if (has_tail) take_edge(a, given, base, w.n_whole * WIDTH - w.lead, w.n_line, n_columns, states);
}

#define CUPLUG_REDUCTION_PARAMETERS                                                            \
  const arrays a, const scalars read, const int64_t n_outputs, const int64_t n_reduced,        \
      const int64_t part, const divisors<KEPT> kept, const strides<N_ARRAYS, KEPT> kept_steps, \
      const divisors<REDUCED> reduced, const strides<N_ARRAYS, REDUCED> reduced_steps,         \
      cuplug_value *partials, const int64_t n, const int64_t n_parts, const int64_t n_columns, \
      const int64_t period

/* Loads UNROLL packs from number p on, which are WHOLE, or precede the end. Returns their number.
 * The first pack is loaded again in place of missing ones, so that no load waits for a condition.
 */
template <bool WHOLE>
__device__ inline int load_packs(const arrays &a, const int64_t (&base)[N_ARRAYS],
                                 const divisors<REDUCED> &reduced,
                                 const strides<N_ARRAYS, REDUCED> &steps, const path &w, int64_t p,
                                 int n_lanes, cuplug_places (&loaded)[UNROLL]) {
  int n_loaded = 0;
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    const int64_t next = p + (int64_t)u * n_lanes;
    const bool is_there = WHOLE || next < w.end;
    const int64_t r = is_there ? next : p;
    int64_t place[N_ARRAYS] = {};
    if constexpr (!FLAT) locate<REDUCED>((index)r, reduced, steps, place);
#pragma unroll
    for (int k = 0; k < N_INPUTS; k++)
      place[k] = FIXED >> k & 1 ? 0 : FLAT ? r * WIDTH - w.lead : place[k];
    loaded[u] = load_places(a, base, place);
    n_loaded += is_there;
  }
  return n_loaded;
}

/* Computes the states of a thread: of its columns or, by rows, of its part of the only output. */
__device__ inline void walk_packs(const arrays &a, const cuplug_numbers &given,
                                  const int64_t (&base)[N_ARRAYS], const divisors<REDUCED> &reduced,
                                  const strides<N_ARRAYS, REDUCED> &steps, const path &w,
                                  const team &t, int n_columns, state (&states)[WIDTH]) {
  constexpr bool HAS_EDGE = FLAT && !FEW;
  const int64_t edge = HAS_EDGE ? edge_of(w, t.lane) : -1;
  cuplug_places at_edge, loaded[UNROLL];
  walked values[WIDTH];
  bool is_first = true;
  int64_t p = w.p;
  int n_taken = 0;
  const int64_t step = (int64_t)t.n_lanes * UNROLL;
  const numbers at = numbers_from(COLUMNS ? p : p * WIDTH - w.lead, t, n_columns);
  if (HAS_EDGE && edge >= 0) at_edge = load_element(a, base, edge);
#pragma unroll
  for (int k = 0; k < WIDTH && CUPLUG_IS_SUM; k++) values[k] = walked();
  /* by rows, all threads of a team leave the loop in the same iteration */
  int64_t last = !w.is_used ? w.end : COLUMNS ? p : w.begin + t.n_lanes - !w.lead;
  for (; last + step - t.n_lanes < w.end; p += step, last += step, n_taken += UNROLL) {
    load_packs<true>(a, base, reduced, steps, w, p, t.n_lanes, loaded);
    take_packs(given, loaded, UNROLL, n_taken, at, is_first, values);
  }
  if (p < w.end) {
    const int n_loaded = load_packs<false>(a, base, reduced, steps, w, p, t.n_lanes, loaded);
    take_packs(given, loaded, n_loaded, n_taken, at, is_first, values);
  }
#pragma unroll
  for (int k = 0; k < WIDTH; k++) {
    states[k] = {total_of(values[k], k, at), !is_first};
    if (!COLUMNS && !FEW && !CUPLUG_IS_SUM && k && !is_first)
      add(given, states[0], states[k].value);
  }
  if (HAS_EDGE && edge >= 0) add(given, states[0], cuplug_element(given, at_edge, 0, edge));
  if (FEW && w.is_used) take_edges(a, given, base, w, t, n_columns, states);
}

CUPLUG_KERNEL_FOR(N_HELD) cuplug_kernel(CUPLUG_REDUCTION_PARAMETERS) {
  wait_for_kernel_ahead();
  __shared__ slots shared;
  const cuplug_numbers given = cuplug_read(read.of);
  const team t = team_of((int)period);
  const bool is_used = FEW ? t.lane < t.n_lanes : t.owner * OUTPUTS < n_outputs;
  int64_t base[N_ARRAYS] = {};
  state states[WIDTH];
  if (is_used) locate<KEPT>((index)(t.owner * (FEW ? n_columns : 1)), kept, kept_steps, base);
  const bool has_parts = !ALONE && n_parts > 1;
  const path w = path_of(a, base, t, n_reduced, part, ALONE ? 1 : n_parts, is_used);
  walk_packs(a, given, base, reduced, reduced_steps, w, t, (int)n_columns, states);
  const auto put = [&](int64_t number, const cuplug_value &value) {
    if (has_parts)
      partials[blockIdx.y * n_outputs + number] = value;
    else
      store_output(a, given, number, CUPLUG_SETTLED(number, value), kept, kept_steps, n);
  };
  if constexpr (FEW) {
    const int first = (int)((w.begin * WIDTH - w.lead + WIDTH * n_columns) % n_columns);
    const cuplug_value value = share_columns(given, shared, t, (int)n_columns, first, states);
    if (threadIdx.x < n_columns) put(t.owner * n_columns + threadIdx.x, value);
  } else if constexpr (COLUMNS && !ALONE) {
    const int64_t first = (int64_t)blockIdx.x * blockDim.x * WIDTH;
    summed values[WIDTH];
#pragma unroll
    for (int k = 0; k < WIDTH; k++) values[k] = (summed)states[k].value;
    share_block(
        values, w.end - w.begin < t.n_lanes ? (int)(w.end - w.begin) : t.n_lanes,
        [&](const summed &x, const summed &y) { return (summed)cuplug_reduce(given, x, y); },
        [&](int column, const summed &value) {
          if (first + column < n_outputs) put(first + column, value);
        });
  } else {
    if constexpr (!ALONE) share(given, shared, t, 1, states);
    if (!is_used || t.sharer) return;
    if (STORES_PACKS && !has_parts) {
#pragma unroll
      for (int k = 0; k < OUTPUTS; k++)
        states[k].value = CUPLUG_SETTLED(t.owner * OUTPUTS + k, states[k].value);
      return store_pack(a, given, base, states, n);
    }
#pragma unroll
    for (int k = 0; k < OUTPUTS; k++) put(t.owner * OUTPUTS + k, states[k].value);
  }
}

/* Adjacent threads have one output each. Threads with the same threadIdx.x share its parts. */
CUPLUG_KERNEL_FOR(1) cuplug_finish(CUPLUG_REDUCTION_PARAMETERS) {
  wait_for_kernel_ahead();
  __shared__ slots shared;
  const cuplug_numbers given = cuplug_read(read.of);
  const int x = threadIdx.x, y = threadIdx.y, width = blockDim.x, height = blockDim.y;
  const int64_t number = (int64_t)blockIdx.x * width + x;
  state s[1] = {};
  for (int64_t p = y; number < n_outputs && p < n_parts; p += PARTS_AHEAD * height) {
    cuplug_value loaded[PARTS_AHEAD];
#pragma unroll
    for (int u = 0; u < PARTS_AHEAD; u++) { /* as in load_packs */
      const int64_t next = p + u * height;
      loaded[u] = partials[(next < n_parts ? next : p) * n_outputs + number];
    }
    add(given, s[0], loaded[0]);
#pragma unroll
    for (int u = 1; u < PARTS_AHEAD; u++)
      if (p + u * height < n_parts) s[0].value = cuplug_reduce(given, s[0].value, loaded[u]);
  }
  share(given, shared, {number, y, height, y, height, x, width}, 1, s);
  /* a reduction of no elements has no parts, and the identity is its value */
  if (!n_parts) s[0].value = cuplug_identity(given);
  if (number < n_outputs && !y)
    store_output(a, given, number, CUPLUG_SETTLED(number, s[0].value), kept, kept_steps, n);
}
} // namespace cuplug
