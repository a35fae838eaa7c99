/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of reductions on the host. Included after reduction_places.h. Both require these
 * definitions, for one variant:
 *
 *   cuplug_value                          the combined values: a number, or a struct of numbers
 *   cuplug_element(given, p, at, i)       the value of element `at` of the inputs `p`, number i
 *   cuplug_reduce(given, a, b), cuplug_identity(given), cuplug_results_of(given, value, n)
 *   cuplug_follow(given, a, b)            the same if b's elements come after a's elements
 *   cuplug_stops(given, a)                whether further values do not change a
 *   CUPLUG_EACH_INPUT(DO), _OUTPUT(DO)    DO(number of the array, name, type in memory)
 *   CUPLUG_VALUES(n)                      a struct of n values, with an array for each field;
 *                                         CUPLUG_GET(values, at), CUPLUG_SET(...)
 *   cuplug_better(given, a, b)            for choices: whether b replaces a; the value is then the
 *                                         { value, index } of one element
 *   cuplug_flag                           an unsigned integer as wide as a value
 *   cuplug_lanes                          LANES values, with the bits that values of a block need
 *   BLOCK, LANES, FEW, N_INPUTS, N_OUTPUTS, COUNTS, CAN_STOP
 *   HAS_CHOICES                           whether conditions choose between elements
 *   IS_IDEMPOTENT                         whether elements may be combined several times
 *
 * Values are combined in lanes: lane k combines each LANES-th element, which vector instructions do
 * for many lanes at once. The lanes of a chunk are folded in halves to FEW. Values of different
 * chunks are combined in pairs, pairs of pairs and so on, so that rounding errors grow with the
 * logarithm of the number of elements. */
enum { CHUNK = BLOCK / 4 < LANES ? LANES : BLOCK / 4, N_PAIRS = 48 };
enum { ROW_STEPS = CAN_STOP ? 16 : 128, AT_ONCE = 4 };
/* By columns: the number of values in a page. So many elements are read of several short rows at
 * once, and of each of a few long rows, since memory is then read at as many addresses. For more
 * rows, pieces are as long as a block allows: processors prefetch long pieces, and whole rows best.
 */
enum { FEW_ROWS = 8, OF_PAGE = 4096 / sizeof(cuplug_value) };
enum { PAGE = OF_PAGE < BLOCK ? OF_PAGE : BLOCK };

typedef CUPLUG_VALUES(FEW) cuplug_few;

#define CUPLUG_SET_REDUCED(values, at, a, b) CUPLUG_SET(values, at, cuplug_reduce(given, a, b))

/* Combines values from `half` on, up to n, with the first ones. */
#define CUPLUG_FOLD_BY(simd, values, n, half)        \
  simd for (int64_t at = 0; at < (n) - (half); at++) \
      CUPLUG_SET_REDUCED(values, at, CUPLUG_GET(values, at), CUPLUG_GET(values, at + (half)));
#define CUPLUG_FOLD_AT(values, n, half) CUPLUG_FOLD_BY(CUPLUG_SIMD, values, n, half)
#define CUPLUG_FOLD_FEW_AT(values, n, half) CUPLUG_FOLD_BY(CUPLUG_SIMD_ONCE, values, n, half)

/* Folds n values to at most `to`, in halves. */
#define CUPLUG_FOLD(values, n, to)                       \
  for (int64_t n_ = (n), half_; n_ > (to); n_ = half_) { \
    half_ = (n_ + 1) / 2;                                \
    CUPLUG_FOLD_AT(values, n_, half_)                    \
  }
/* DO(values, 2 * half, half) for each half of n values, a power of two known to the compiler, down
 * to `to`. No loop surrounds those over vectors. */
#define CUPLUG_IF_HALF(DO, values, n, to, half) \
  if ((to) <= (half) && (half) < (n)) DO(values, 2 * (half), half)
#define CUPLUG_EACH_HALF(DO, values, n, to) \
  CUPLUG_IF_HALF(DO, values, n, to, 256)    \
  CUPLUG_IF_HALF(DO, values, n, to, 128)    \
  CUPLUG_IF_HALF(DO, values, n, to, 64)     \
  CUPLUG_IF_HALF(DO, values, n, to, 32)     \
  CUPLUG_IF_HALF(DO, values, n, to, 16)     \
  CUPLUG_IF_HALF(DO, values, n, to, 8)      \
  CUPLUG_IF_HALF(DO, values, n, to, 4)      \
  CUPLUG_IF_HALF(DO, values, n, to, 2)      \
  CUPLUG_IF_HALF(DO, values, n, to, 1)
_Static_assert(LANES <= 512, "CUPLUG_EACH_HALF begins with 256");

/* Returns whether another part has found the final value. The remaining parts then read only one
 * element. */
static inline int is_stopped(const unsigned char *stopped) {
  return stopped && __atomic_load_n(stopped, __ATOMIC_RELAXED);
}
static inline void stop(unsigned char *stopped) {
  if (stopped) __atomic_store_n(stopped, 1, __ATOMIC_RELAXED);
}

/* Reduces elements `begin` to `end` of one output, from its start in each input. In
 * reduction_rows.h or reduction_choose.h. */
static cuplug_value row(cuplug_task *task, const int64_t *offsets, int64_t begin, int64_t end,
                        unsigned char *stopped);

/* Reduces one part of m outputs, one after the other. */
static inline void rows(cuplug_task *task, int64_t begin, int64_t m, int64_t part) {
  const cuplug_loop_call *call = task->call;
  cuplug_values *const values = &task->room->values;
  const int64_t from = part * call->part, to = end_of(call, part);
  const int has_stops = CAN_STOP && call->n_parts > 1;
  int64_t offsets[N_INPUTS];
  row_offsets(call, begin, offsets);
  for (int64_t at = 0; at < m; at++) {
    CUPLUG_SET(*values, at,
               row(task, offsets, from, to, has_stops ? &call->stopped[begin + at] : NULL));
    next_row(call, begin + at + 1, offsets);
  }
}

/* ---- By columns ------------------------------------------------------------------------------ */

/* Reduces m values, 16 or 1, with AT_ONCE elements of each. 16-bit floats are converted in
 * registers. */
#define CUPLUG_ROOM(k, name, type) cuplug_held_##type room_##name[16];
#define CUPLUG_NEAR(k, name, type) \
  near.name = cuplug_near_##type(room_##name, p->name + at + step * apart, m);
static inline __attribute__((always_inline)) void follow_near(const cuplug_numbers given,
                                                              const cuplug_stored *p, int64_t at,
                                                              const int m, int64_t apart, int64_t r,
                                                              cuplug_values *values) {
  for (int step = 0; step < AT_ONCE; step++) {
    cuplug_places near;
    CUPLUG_EACH_INPUT(CUPLUG_ROOM)
    CUPLUG_EACH_INPUT(CUPLUG_NEAR)
    CUPLUG_SIMD_ONCE
    for (int64_t lane = 0; lane < m; lane++)
      CUPLUG_SET(*values, at + lane,
                 cuplug_follow(given, CUPLUG_GET(*values, at + lane),
                               cuplug_element(given, near, lane, r)));
  }
}

#define CUPLUG_DIRECT(k, name, type) .name = (const void *)p->name,
/* The same for n values, and elements from number r on, at distances of `apart`. */
static inline void follow_at_once(const cuplug_task *task, const cuplug_columns *c, int64_t n,
                                  int64_t apart, int64_t r, cuplug_values *values) {
  const cuplug_numbers given = task->given;
  const cuplug_stored stored = stored_places(task, c, r), *const p = &stored;
  int64_t at = 0;
  if (HAS_HALVES) {
    for (; at + 16 <= n; at += 16) follow_near(given, p, at, 16, apart, r, values);
    for (; at < n; at++) follow_near(given, p, at, 1, apart, r, values);
    return;
  }
  const cuplug_places direct = {CUPLUG_EACH_INPUT(CUPLUG_DIRECT)};
  CUPLUG_SIMD
  for (; at < n; at++) {
    cuplug_value value = CUPLUG_GET(*values, at);
    for (int step = 0; step < AT_ONCE; step++)
      value = cuplug_follow(given, value, cuplug_element(given, direct, at + step * apart, r));
    CUPLUG_SET(*values, at, value);
  }
}

/* Reduces elements r to `end` of some outputs, `rows` at once. Returns the number of values. */
static inline int64_t column_chunk(cuplug_task *task, const cuplug_columns *c, int64_t r,
                                   int64_t end, int64_t rows, cuplug_values *values) {
  const cuplug_numbers given = task->given;
  const int64_t m = c->m, n = cuplug_min_i64(rows, end - r) * m;
  int64_t *const numbers = task->room->numbers;
  for (int64_t at = 0; COUNTS && at < n; at++) numbers[at] = at / m;
  cuplug_places p = column_places(task, c, r, n / m);
  CUPLUG_SIMD
  for (int64_t at = 0; at < n; at++)
    CUPLUG_SET(*values, at, cuplug_element(given, p, at, r + numbers[COUNTS ? at : 0]));
  r += rows;
  const int is_steady = task->apart == m || (rows == 1 && !ASKS);
  const int64_t apart = is_steady ? rows * task->apart : 0;
  for (; !COUNTS && apart && r + AT_ONCE * rows <= end; r += AT_ONCE * rows)
    follow_at_once(task, c, n, apart, r, values);
  for (; r < end; r += rows) {
    const int64_t n_here = cuplug_min_i64(rows, end - r) * m;
    p = column_places(task, c, r, n_here / m);
    CUPLUG_SIMD
    for (int64_t at = 0; at < n_here; at++)
      CUPLUG_SET(*values, at,
                 cuplug_follow(given, CUPLUG_GET(*values, at),
                               cuplug_element(given, p, at, r + numbers[COUNTS ? at : 0])));
  }
  return n;
}

/* Returns whether each of m outputs has a final value among n values. */
static int all_stop(const cuplug_numbers given, const cuplug_values *values, int64_t n, int64_t m) {
  for (int64_t output = 0, stops; output < m; output++) {
    stops = 0;
    for (int64_t at = output; at < n; at += m)
      stops |= cuplug_stops(given, CUPLUG_GET(*values, at));
    if (!stops) return 0;
  }
  return 1;
}

/* Reduces one part of up to `most` outputs from `begin` on. Returns their number. For few outputs,
 * several rows are processed at once, except for short rows, whose order does not depend on others.
 */
static int64_t columns(cuplug_task *task, int64_t begin, int64_t most, int64_t part) {
  const cuplug_loop_call *call = task->call;
  const cuplug_numbers given = task->given;
  cuplug_values *const values = &task->room->values, *const more = &task->room->more;
  const int64_t m = cuplug_min_i64(most, task->run - begin % task->run);
  const int64_t rows = call->by_columns == 1 && m == task->run && m < PAGE ? PAGE / m : 1;
  cuplug_columns c = {.begin = begin, .m = m};
  row_offsets(call, begin, c.offsets);
  const int64_t step = rows * ROW_STEPS;
  unsigned char *stopped = CAN_STOP && call->n_parts > 1 ? &call->stopped[begin] : NULL;
  int64_t r = part * call->part, end = end_of(call, part);
  if (is_stopped(stopped)) end = r + 1;
  const int64_t n = column_chunk(task, &c, r, cuplug_min_i64(end, r + step), rows, values);
  for (r += step; r < end; r += step) {
    if (CAN_STOP && all_stop(given, values, n, m)) {
      stop(stopped);
      break;
    }
    const int64_t n_more = column_chunk(task, &c, r, cuplug_min_i64(end, r + step), rows, more);
    CUPLUG_SIMD
    for (int64_t at = 0; at < n_more; at++)
      CUPLUG_SET_REDUCED(*values, at, CUPLUG_GET(*values, at), CUPLUG_GET(*more, at));
  }
  for (int64_t n_rows = n / m, half; n_rows > 1; n_rows = half) {
    half = (n_rows + 1) / 2;
    CUPLUG_SIMD
    for (int64_t at = 0; at < (n_rows - half) * m; at++)
      CUPLUG_SET_REDUCED(*values, at, CUPLUG_GET(*values, at), CUPLUG_GET(*values, half * m + at));
  }
  return m;
}

/* ---- All outputs ----------------------------------------------------------------------------- */

static void store_outputs(const cuplug_task *task, int64_t begin, int64_t m,
                          cuplug_values *values) {
  const cuplug_loop_call *call = task->call;
  const cuplug_loop *kept = call->loop;
  const cuplug_numbers given = task->given;
  const int64_t n = call->reduced->n;
  int is_flat = 1;
#if CUPLUG_IS_AGAIN
  replace_doubtful(task, begin, m, values);
#endif
  for (unsigned k = N_INPUTS; k < N_INPUTS + N_OUTPUTS; k++)
    is_flat = is_flat && cuplug_is_flat(kept, k);
#define CUPLUG_TARGET(k, name, type) \
  type *to_##name = (type *)call->data[k] + (is_flat ? begin : 0);
#define CUPLUG_STORE(k, name, type) to_##name[at] = results.name;
#define CUPLUG_SCATTER(k, name, type) to_##name[cuplug_offset(kept, k, begin + at)] = results.name;
  CUPLUG_EACH_OUTPUT(CUPLUG_TARGET)
  if (is_flat) {
    CUPLUG_SIMD
    for (int64_t at = 0; at < m; at++) {
      const cuplug_results results = cuplug_results_of(given, CUPLUG_GET(*values, at), n);
      CUPLUG_EACH_OUTPUT(CUPLUG_STORE)
    }
    return;
  }
  for (int64_t at = 0; at < m; at++) {
    const cuplug_results results = cuplug_results_of(given, CUPLUG_GET(*values, at), n);
    CUPLUG_EACH_OUTPUT(CUPLUG_SCATTER)
  }
}

static void keep_values(cuplug_value *partials, int64_t m, const cuplug_values *values) {
  CUPLUG_SIMD
  for (int64_t at = 0; at < m; at++) partials[at] = CUPLUG_GET(*values, at);
}

/* An item is one part of some outputs: of one output if rows are long or split into parts. So many
 * elements justify the cost of starting a range of items. */
enum { OF_RANGE = 4 * CUPLUG_GRAIN };
static int64_t outputs_of(const cuplug_loop_call *call) {
  if (call->by_columns) return call->reduced->n < FEW_ROWS ? PAGE : BLOCK;
  const int64_t rows = call->n_parts == 1 ? OF_RANGE / call->part : 1;
  return rows < 1 ? 1 : cuplug_min_i64(rows, BLOCK);
}
static int64_t items_of(const cuplug_loop_call *call) {
  return (call->loop->n + outputs_of(call) - 1) / outputs_of(call);
}

CUPLUG_PART run_items(const cuplug_loop_call *call, long long from, long long to) {
  const int64_t n = call->loop->n, n_items = items_of(call), step = outputs_of(call);
  cuplug_task task;
  start_task(&task, call);
  cuplug_values *const values = &task.room->values;
  for (int64_t item = from; item < to; item++) {
    const int64_t first = item % n_items * step, part = item / n_items;
    const int64_t end = cuplug_min_i64(first + step, n);
    for (int64_t begin = first, m = end - first; begin < end; begin += m) {
      if (call->by_columns)
        m = columns(&task, begin, end - begin, part);
      else
        rows(&task, begin, m, part);
      if (call->n_parts == 1)
        store_outputs(&task, begin, m, values);
      else
        keep_values((cuplug_value *)call->partials + part * n + begin, m, values);
    }
  }
}

/* Stores outputs with no part or several, which are combined in halves. */
CUPLUG_PART put_together(const cuplug_loop_call *call, long long begin, long long end) {
  const int64_t n = call->loop->n, m = end - begin;
  cuplug_value *partials = (cuplug_value *)call->partials + begin;
  cuplug_task task;
  start_task(&task, call);
  cuplug_values *const values = &task.room->values;
  const cuplug_numbers given = task.given;
  for (int64_t n_parts = call->n_parts, half; n_parts > 1; n_parts = half) {
    half = (n_parts + 1) / 2;
    for (int64_t part = 0; part < n_parts - half; part++) {
      CUPLUG_SIMD
      for (int64_t at = 0; at < m; at++)
        partials[part * n + at] =
            cuplug_reduce(given, partials[part * n + at], partials[(part + half) * n + at]);
    }
  }
  for (int64_t at = 0; at < m; at++)
    CUPLUG_SET(*values, at, call->n_parts ? partials[at] : cuplug_identity(given));
  store_outputs(&task, begin, m, values);
}

static void run_in_room(const cuplug_loop_call *call, long long from, long long to) {
  cuplug_run_part(run_items, call, from, to);
}
static void put_in_room(const cuplug_loop_call *call, long long from, long long to) {
  for (; from < to; from += BLOCK)
    cuplug_run_part(put_together, call, from, cuplug_min_i64(to, from + BLOCK));
}
static void run_range(const cuplug_loop_call *call, long long from, long long to) {
  call->with_room(call, sizeof(cuplug_room), run_in_room, from, to);
}
static void put_range(const cuplug_loop_call *call, long long from, long long to) {
  call->with_room(call, sizeof(cuplug_room), put_in_room, from, to);
}

/* Returns whether the first elements of rows decide all outputs, which are then written, before
 * threads wake up. */
static int is_decided(const cuplug_loop_call *call) {
  cuplug_loop_call few = *call;
  const int64_t n = call->loop->n;
  int64_t n_stopped = 0;
  if (!CAN_STOP || call->n_parts < 2 || call->by_columns) return 0;
  few.part = cuplug_min_i64(call->part, 8 * LANES);
  run_range(&few, 0, n);
  for (int64_t at = 0; at < n; at++) n_stopped += call->stopped[at];
  few.n_parts = 1;
  if (n_stopped == n) put_range(&few, 0, n);
  memset(call->stopped, 0, (size_t)n);
  return n_stopped == n;
}

void cuplug_function(const cuplug_loop_call *call) {
  const int64_t n = call->loop->n, n_items = items_of(call) * call->n_parts;
  const int64_t of_item = cuplug_min_i64(outputs_of(call), n) * call->part;
  if (n * call->reduced->n < CUPLUG_PARALLEL_FROM)
    run_range(call, 0, n_items);
  else if (is_decided(call))
    return;
  else
    call->parallel(call, run_range, n_items, of_item < OF_RANGE ? OF_RANGE / of_item : 1);
  if (call->n_parts != 1)
    call->parallel(call, put_range, n, CUPLUG_GRAIN / (call->n_parts + 1) + 1);
}
