/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of scans on the host. reduction.h lists the definitions that they require. Lines along
 * the scanned axis are split into parts by their length only. The elements before a part are
 * combined first, so that parts need not wait for each other. Each value then combines the value
 * before the part with the part's elements in order. */

typedef CUPLUG_VALUES(BLOCK) cuplug_values;

/* A position in each array, and the distances to another one. */
#define CUPLUG_STEP(k, name, type) int64_t name;
#define CUPLUG_TARGET(k, name, type) type *name;
typedef struct cuplug_spot {
  cuplug_places from;
  struct {
    CUPLUG_EACH_OUTPUT(CUPLUG_TARGET)
  } to;
} cuplug_spot;
typedef struct cuplug_steps {
  CUPLUG_EACH_INPUT(CUPLUG_STEP)
  CUPLUG_EACH_OUTPUT(CUPLUG_STEP)
} cuplug_steps;

static inline cuplug_spot onward(cuplug_spot spot, const cuplug_steps steps, int64_t n) {
#define CUPLUG_READ(k, name, type) spot.from.name += n * steps.name;
#define CUPLUG_WRITE(k, name, type) spot.to.name += n * steps.name;
  CUPLUG_EACH_INPUT(CUPLUG_READ)
  CUPLUG_EACH_OUTPUT(CUPLUG_WRITE)
#undef CUPLUG_READ
#undef CUPLUG_WRITE
  return spot;
}

/* The steps along the last dimension of a loop. */
static inline cuplug_steps steps_of(const cuplug_loop *loop) {
  const long long *strides = loop->ndim ? loop->strides[loop->ndim - 1] : NULL;
  cuplug_steps steps;
#define CUPLUG_READ(k, name, type) steps.name = strides ? strides[k] : 0;
  CUPLUG_EACH_INPUT(CUPLUG_READ)
  CUPLUG_EACH_OUTPUT(CUPLUG_READ)
#undef CUPLUG_READ
  return steps;
}

#define CUPLUG_ONE(k, name, type) .name = 1,
static const cuplug_steps ones = {CUPLUG_EACH_INPUT(CUPLUG_ONE) CUPLUG_EACH_OUTPUT(CUPLUG_ONE)};

#define CUPLUG_IS_ONE(k, name, type) &&steps.name == 1
static int are_written_beside(const cuplug_steps steps) {
  return 1 CUPLUG_EACH_OUTPUT(CUPLUG_IS_ONE);
}
static int are_ones(const cuplug_steps steps) {
  return are_written_beside(steps) CUPLUG_EACH_INPUT(CUPLUG_IS_ONE);
}

/* The position of element r of a line. */
static inline cuplug_spot spot_of(const cuplug_loop_call *call, int64_t line, int64_t r) {
  cuplug_spot spot;
#define CUPLUG_READ(k, name, type) \
  spot.from.name = (const type *)call->data[k] + cuplug_offset(call->loop, k, line);
#define CUPLUG_WRITE(k, name, type) \
  spot.to.name = (type *)call->data[k] + cuplug_offset(call->loop, k, line);
  CUPLUG_EACH_INPUT(CUPLUG_READ)
  CUPLUG_EACH_OUTPUT(CUPLUG_WRITE)
#undef CUPLUG_READ
#undef CUPLUG_WRITE
  return onward(spot, steps_of(call->reduced), r);
}

/* Combines element r with the value before it, unless it is the first; returns the result. */
static inline __attribute__((always_inline)) cuplug_value take(const cuplug_numbers given,
                                                               const cuplug_spot spot, int64_t r,
                                                               int is_first, cuplug_value before,
                                                               int stores) {
  const cuplug_value element = cuplug_element(given, spot.from, 0, r);
  const cuplug_value now = is_first ? element : cuplug_reduce(given, before, element);
  if (!stores) return now;
  const cuplug_results results =
      EXCLUSIVE ? cuplug_results_of(given, is_first ? cuplug_identity(given) : before, r)
                : cuplug_results_of(given, now, r + 1);
#define CUPLUG_STORE(k, name, type) *spot.to.name = results.name;
  CUPLUG_EACH_OUTPUT(CUPLUG_STORE)
  return now;
}

/* ---- By rows: several parts of lines at once, since each of their elements waits for another --
 */

typedef struct cuplug_chain { /* a part of a line, whose next element is r */
  cuplug_spot spot;
  int64_t r, end;
  cuplug_value value;
} cuplug_chain;

static inline __attribute__((always_inline)) void start_chain(cuplug_chain *chain,
                                                              const cuplug_loop_call *call,
                                                              const cuplug_numbers given,
                                                              int64_t item, int stores) {
  const int64_t n = call->loop->n, line = item % n, part = item / n;
  chain->r = part * call->part;
  chain->end = cuplug_min_i64(call->reduced->n, chain->r + call->part);
  chain->spot = spot_of(call, line, chain->r);
  if (stores && part) {
    chain->value = ((cuplug_value *)call->partials)[item - n];
    return;
  }
  chain->value = take(given, chain->spot, chain->r++, 1, cuplug_identity(given), stores);
  chain->spot = onward(chain->spot, steps_of(call->reduced), 1);
}

static inline __attribute__((always_inline)) void
run_chain(cuplug_chain *chain, const cuplug_numbers given, const cuplug_steps along, int stores) {
  cuplug_value value = chain->value;
  for (int64_t at = 0; at < chain->end - chain->r; at++)
    value = take(given, onward(chain->spot, along, at), chain->r + at, 0, value, stores);
  chain->value = value;
}

#define CUPLUG_EACH_CHAIN(DO) DO(0) DO(1) DO(2) DO(3)
enum { CHAINS = 4 };

/* The arguments of all chains. */
static inline __attribute__((always_inline)) void
run_chains(cuplug_chain *chains, const cuplug_numbers given, const cuplug_steps along, int stores) {
  int64_t n = INT64_MAX;
#define CUPLUG_OPEN(c)                        \
  const cuplug_spot spot##c = chains[c].spot; \
  const int64_t r##c = chains[c].r;           \
  cuplug_value value##c = chains[c].value;    \
  n = cuplug_min_i64(n, chains[c].end - r##c);
#define CUPLUG_TAKE(c) \
  value##c = take(given, onward(spot##c, along, at), r##c + at, 0, value##c, stores);
#define CUPLUG_CLOSE(c)                       \
  chains[c].spot = onward(spot##c, along, n); \
  chains[c].r += n;                           \
  chains[c].value = value##c;
  CUPLUG_EACH_CHAIN(CUPLUG_OPEN)
  for (int64_t at = 0; at < n; at++) {
    CUPLUG_EACH_CHAIN(CUPLUG_TAKE)
  }
  CUPLUG_EACH_CHAIN(CUPLUG_CLOSE)
}

static inline __attribute__((always_inline)) void scan_rows(const cuplug_loop_call *call,
                                                            const cuplug_numbers given,
                                                            int64_t from, int64_t to, int stores) {
  const cuplug_steps along = steps_of(call->reduced);
  cuplug_chain chains[CHAINS];
  for (int64_t n; from < to; from += n) {
    n = cuplug_min_i64(CHAINS, to - from);
    for (int64_t c = 0; c < n; c++) start_chain(&chains[c], call, given, from + c, stores);
    const int is_vector = WHOLE && !stores && are_ones(along);
    if (n == CHAINS && !is_vector) run_chains(chains, given, along, stores);
    for (int64_t c = 0; c < n; c++) {
      if (is_vector)
        run_chain(&chains[c], given, ones, 0);
      else
        run_chain(&chains[c], given, along, stores);
      if (!stores) ((cuplug_value *)call->partials)[from + c] = chains[c].value;
    }
  }
}

/* ---- By columns: one element of each of many lines, then the next ---------------------------- */

/* Blocks of the last dimension of the loop over lines, each of up to BLOCK lines. */
static int64_t blocks_of(const cuplug_loop *loop) {
  return (loop->sizes[loop->ndim - 1] + BLOCK - 1) / BLOCK;
}

/* Scans one part of m lines from `begin` on. `across` is the distance between lines. */
static inline __attribute__((always_inline)) void
scan_columns(const cuplug_loop_call *call, const cuplug_numbers given, int64_t begin, int64_t m,
             int64_t part, const cuplug_steps across, int stores) {
  const cuplug_steps along = steps_of(call->reduced);
  cuplug_value *partials = (cuplug_value *)call->partials + part * call->loop->n + begin;
  cuplug_values values;
  int64_t r = part * call->part, end = cuplug_min_i64(call->reduced->n, r + call->part);
  cuplug_spot spot = spot_of(call, begin, r);
#define CUPLUG_READ(k, name, type) \
  if (across.name == 1) CUPLUG_ASK_FOR(spot.from.name + 2 * along.name, m);
#define CUPLUG_ROW(is_first, before)                                                              \
  {                                                                                               \
    CUPLUG_EACH_INPUT(CUPLUG_READ)                                                                \
    CUPLUG_SIMD                                                                                   \
    for (int64_t at = 0; at < m; at++)                                                            \
      CUPLUG_SET(values, at, take(given, onward(spot, across, at), r, is_first, before, stores)); \
  }
  if (stores && part) {
    for (int64_t at = 0; at < m; at++) CUPLUG_SET(values, at, partials[at - call->loop->n]);
  } else {
    CUPLUG_ROW(1, cuplug_identity(given))
    spot = onward(spot, along, 1), r++;
  }
  for (; r < end; spot = onward(spot, along, 1), r++) CUPLUG_ROW(0, CUPLUG_GET(values, at))
  for (int64_t at = 0; !stores && at < m; at++) partials[at] = CUPLUG_GET(values, at);
}

/* Scans short lines, each from its start to its end. */
static inline __attribute__((always_inline)) void
scan_lines(const cuplug_loop_call *call, const cuplug_numbers given, int64_t begin, int64_t m,
           const cuplug_steps across, const cuplug_steps along) {
  const int64_t n = call->reduced->n;
  const cuplug_spot first = spot_of(call, begin, 0);
  for (int64_t at = 0; at < m; at++) {
    const cuplug_spot spot = onward(first, across, at);
    cuplug_value value = take(given, spot, 0, 1, cuplug_identity(given), 1);
    for (int64_t r = 1; r < n; r++) value = take(given, onward(spot, along, r), r, 0, value, 1);
  }
}

/* ---- All lines ------------------------------------------------------------------------------- */

/* Scans one part of m lines from `begin` on. */
static inline __attribute__((always_inline)) void scan_block(const cuplug_loop_call *call,
                                                             const cuplug_numbers given,
                                                             int64_t begin, int64_t m, int64_t part,
                                                             int stores) {
  const cuplug_steps across = steps_of(call->loop), along = steps_of(call->reduced);
  if (are_ones(across))
    scan_columns(call, given, begin, m, part, ones, stores);
  else if (!stores || are_written_beside(across))
    scan_columns(call, given, begin, m, part, across, stores);
  else if (are_ones(along))
    scan_lines(call, given, begin, m, across, ones);
  else
    scan_lines(call, given, begin, m, across, along);
}

/* An item is one part of a line, or of a block of lines. */
static int64_t items_of(const cuplug_loop_call *call) {
  const cuplug_loop *lines = call->loop;
  return call->by_columns ? lines->n / lines->sizes[lines->ndim - 1] * blocks_of(lines) : lines->n;
}

static inline __attribute__((always_inline)) void run_items(const cuplug_loop_call *call,
                                                            int64_t from, int64_t to, int stores) {
  const cuplug_loop *lines = call->loop;
  const cuplug_numbers given = cuplug_read(call->scalars);
  if (!call->by_columns) {
    scan_rows(call, given, from, to, stores);
    return;
  }
  const int64_t n_items = items_of(call), last = lines->sizes[lines->ndim - 1];
  for (; from < to; from++) {
    const int64_t block = from % n_items, in_last = block % blocks_of(lines) * BLOCK;
    const int64_t begin = block / blocks_of(lines) * last + in_last, part = from / n_items;
    scan_block(call, given, begin, cuplug_min_i64(BLOCK, last - in_last), part, stores);
  }
}

CUPLUG_PART sum_items(const cuplug_loop_call *call, long long from, long long to) {
  run_items(call, from, to, 0);
}
CUPLUG_PART scan_items(const cuplug_loop_call *call, long long from, long long to) {
  run_items(call, from, to, 1);
}

/* Replaces the values of parts by the combined values up to each part. */
CUPLUG_PART put_together(const cuplug_loop_call *call, long long from, long long to) {
  const cuplug_numbers given = cuplug_read(call->scalars);
  const int64_t n = call->loop->n;
  cuplug_value *partials = call->partials;
  for (int64_t part = 1; part < call->n_parts - 1; part++)
    for (int64_t line = from; line < to; line++)
      partials[part * n + line] =
          cuplug_reduce(given, partials[(part - 1) * n + line], partials[part * n + line]);
}

static void sum_range(const cuplug_loop_call *call, long long from, long long to) {
  cuplug_run_part(sum_items, call, from, to);
}
static void scan_range(const cuplug_loop_call *call, long long from, long long to) {
  cuplug_run_part(scan_items, call, from, to);
}

void cuplug_function(const cuplug_loop_call *call) {
  const int64_t n_lines = items_of(call), of_item = call->loop->n / n_lines * call->part;
  const int64_t least = call->by_columns ? 1 : CHAINS, grain = CUPLUG_GRAIN / of_item;
  if (call->n_parts > 1) {
    call->parallel(call, sum_range, n_lines * (call->n_parts - 1), grain < least ? least : grain);
    cuplug_run_part(put_together, call, 0, call->loop->n);
  }
  if (call->loop->n * call->reduced->n < CUPLUG_PARALLEL_FROM)
    scan_range(call, 0, n_lines * call->n_parts);
  else
    call->parallel(call, scan_range, n_lines * call->n_parts, grain < least ? least : grain);
}
