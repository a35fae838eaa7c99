/* SPDX-License-Identifier: Apache-2.0 */
/* A row of a reduction by `cuplug_reduce`: behind reduction.h. */
enum { IS_NARROW = sizeof(cuplug_lanes) < sizeof(CUPLUG_VALUES(LANES)) };

/* A lane's value with one of the last elements, fewer than n_lanes. These, too, are taken as whole
 * vectors, since what is stored in parts cannot be loaded at once soon: together with those before
 * them, where that changes nothing, or through a mask. */
static inline __attribute__((always_inline)) cuplug_value
with_rest(const cuplug_numbers given, const cuplug_places p, int64_t n, int64_t i,
          const int n_lanes, int64_t lane, const cuplug_value value) {
  const int rest = (int)(n % n_lanes);
  const int64_t at = n - (IS_IDEMPOTENT ? n_lanes : rest) + lane;
  if (IS_IDEMPOTENT || (cuplug_flag)lane < (cuplug_flag)rest)
    return cuplug_reduce(given, value, cuplug_element(given, p, at, i + at));
  return value;
}

/* Elements `from` to from + m put to the first m lanes. */
#define CUPLUG_STEP(simd, lanes, m, from)                       \
  simd for (int64_t at = 0; at < (m); at++) CUPLUG_SET_REDUCED( \
      lanes, at, CUPLUG_GET(lanes, at), cuplug_element(given, p, (from) + at, i + (from) + at));

/* n_lanes values, `value` of lane `at`, with the elements from `begin` to n. */
#define CUPLUG_GO_ON(lanes, value, n_lanes, begin)                                               \
  if (n % (n_lanes) && !IS_NARROW) CUPLUG_SIMD_ONCE                                              \
  for (int64_t at = 0; at < (n_lanes); at++)                                                     \
    CUPLUG_SET(lanes, at, with_rest(given, p, n, i, n_lanes, at, value));                        \
  else CUPLUG_SIMD_ONCE for (int64_t at = 0; at < (n_lanes); at++) CUPLUG_SET(lanes, at, value); \
  int64_t from = (begin);                                                                        \
  for (; from + (n_lanes) <= n; from += (n_lanes))                                               \
    CUPLUG_STEP(CUPLUG_SIMD_ONCE, lanes, n_lanes, from)                                          \
  if (IS_NARROW) CUPLUG_STEP(CUPLUG_SIMD, lanes, n - from, from)

/* n >= LANES elements, the first with number i, as FEW values. Narrow lanes take all of them. */
static inline __attribute__((always_inline)) void row_chunk(const cuplug_numbers given,
                                                            const cuplug_places p, int64_t n,
                                                            int64_t i, cuplug_few *few) {
  cuplug_lanes lanes __attribute__((aligned(64)));
  int64_t begin = LANES;
  CUPLUG_SIMD
  for (int64_t at = 0; at < LANES; at++)
    CUPLUG_SET(lanes, at, cuplug_element(given, p, at, i + at));
  for (; begin + LANES <= n; begin += LANES) CUPLUG_STEP(CUPLUG_SIMD, lanes, LANES, begin)
  if (IS_NARROW) CUPLUG_STEP(CUPLUG_SIMD, lanes, n - begin, begin)
  CUPLUG_EACH_HALF(CUPLUG_FOLD_AT, lanes, LANES, FEW)
  if (IS_NARROW) {
    for (int64_t at = 0; at < FEW; at++) CUPLUG_SET(*few, at, CUPLUG_GET(lanes, at));
    return;
  }
  CUPLUG_GO_ON(*few, CUPLUG_GET(lanes, at), FEW, begin)
}

static inline __attribute__((always_inline)) cuplug_value value_of(const cuplug_numbers given,
                                                                   cuplug_few *few) {
  CUPLUG_EACH_HALF(CUPLUG_FOLD_FEW_AT, *few, FEW, 1)
  return CUPLUG_GET(*few, 0);
}

/* n >= n_lanes elements by n_lanes, no more than FEW. */
static inline __attribute__((always_inline)) cuplug_value
by_few(const cuplug_numbers given, const cuplug_places p, int64_t n, int64_t i, const int n_lanes) {
  cuplug_lanes few;
  CUPLUG_GO_ON(few, cuplug_element(given, p, at, i + at), n_lanes, n_lanes)
  CUPLUG_EACH_HALF(CUPLUG_FOLD_FEW_AT, few, n_lanes, 1)
  return CUPLUG_GET(few, 0);
}

/* Fewer than SHORT elements. */
enum { SHORT = IS_NARROW ? LANES : CHUNK };
static inline cuplug_value short_row(const cuplug_numbers given, const cuplug_places p, int64_t n,
                                     int64_t i) {
  enum { FEWER = FEW >= 64 ? FEW / 4 : FEW }; /* of narrow values, many fill a vector */
  cuplug_few few;
  if (n >= FEW) return by_few(given, p, n, i, FEW);
  if (n >= FEWER) return by_few(given, p, n, i, FEWER);
  CUPLUG_SIMD
  for (int64_t at = 0; at < n; at++) CUPLUG_SET(few, at, cuplug_element(given, p, at, i + at));
  CUPLUG_FOLD(few, n, 1)
  return CUPLUG_GET(few, 0);
}

/* Whether one of the values says that no further one matters. */
static inline int few_stop(const cuplug_numbers given, const cuplug_few *few) {
  int stops = 0;
  for (int64_t at = 0; at < FEW; at++) stops |= cuplug_stops(given, CUPLUG_GET(*few, at));
  return stops;
}

/* Elements that are put together before pairs are, which takes as long as some hundreds: more of
 * them where they need no block, and most where that is exact. */
static inline int64_t chunk_of(const cuplug_task *task) {
  return task->uses_blocks || CAN_STOP ? CHUNK : IS_NARROW ? 8 * CHUNK : 4 * CHUNK;
}

static __attribute__((noinline)) cuplug_value long_row(cuplug_task *task, const int64_t *offsets,
                                                       int64_t at_row, int64_t end,
                                                       unsigned char *stopped) {
  const cuplug_numbers given = task->given;
  const int64_t chunk = chunk_of(task);
  int64_t n_chunks = 0;
  cuplug_few pairs[N_PAIRS]; /* bit k of n_chunks: pairs[k] holds 2^k chunks */
  for (int64_t n; at_row < end; at_row += n, n_chunks++) {
    n = end - at_row < chunk + LANES ? end - at_row : chunk;
    cuplug_few few;
    int k = 0;
    row_chunk(given, row_places(task, offsets, at_row, n), n, at_row, &few);
    if (CAN_STOP && few_stop(given, &few)) {
      stop(stopped);
      end = 0;
    }
    if (!n_chunks && at_row + n >= end) return value_of(given, &few); /* there are no pairs */
    for (; n_chunks >> k & 1; k++)
      for (int64_t at = 0; at < FEW; at++)
        CUPLUG_SET_REDUCED(few, at, CUPLUG_GET(pairs[k], at), CUPLUG_GET(few, at));
    pairs[k] = few;
  }
  cuplug_few all = pairs[__builtin_ctzll((uint64_t)n_chunks)];
  for (int k = __builtin_ctzll((uint64_t)n_chunks) + 1; n_chunks >> k; k++)
    if (n_chunks >> k & 1)
      for (int64_t at = 0; at < FEW; at++)
        CUPLUG_SET_REDUCED(all, at, CUPLUG_GET(pairs[k], at), CUPLUG_GET(all, at));
  return value_of(given, &all);
}

static inline cuplug_value row(cuplug_task *task, const int64_t *offsets, int64_t begin,
                               int64_t end, unsigned char *stopped) {
  if (is_stopped(stopped)) end = begin + 1;
  const int64_t n = end - begin;
  if (n < SHORT) return short_row(task->given, row_places(task, offsets, begin, n), n, begin);
  return long_row(task, offsets, begin, end, stopped);
}
