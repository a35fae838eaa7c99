/* SPDX-License-Identifier: Apache-2.0 */
/* A row of a reduction by `cuplug_reduce`. Included after reduction.h. */
enum { IS_NARROW = sizeof(cuplug_lanes) < sizeof(CUPLUG_VALUES(LANES)) };

/* Combines a lane's value with one of the last elements, fewer than n_lanes. These are also read as
 * complete vectors, because parts that were just stored cannot be loaded as a vector without a
 * delay: together with preceding elements, if that does not change the result, or through a mask.
 */
static inline __attribute__((always_inline)) cuplug_value
with_rest(const cuplug_numbers given, const cuplug_places p, int64_t n, int64_t i,
          const int n_lanes, int64_t lane, const cuplug_value value) {
  const int rest = (int)(n % n_lanes);
  const int64_t at = n - (IS_IDEMPOTENT ? n_lanes : rest) + lane;
  if (IS_IDEMPOTENT || (cuplug_flag)lane < (cuplug_flag)rest)
    return cuplug_reduce(given, value, cuplug_element(given, p, at, i + at));
  return value;
}

/* Runs code for each of n lanes, a number known to the compiler. */
#define CUPLUG_OVER_LANES(n, body)            \
  if ((n) > FEW) {                            \
    CUPLUG_SIMD                               \
    for (int64_t at = 0; at < (n); at++) body \
  } else {                                    \
    CUPLUG_SIMD_ONCE                          \
    for (int64_t at = 0; at < (n); at++) body \
  }
#define CUPLUG_FIRST CUPLUG_SET(lanes, at, cuplug_element(given, p, at, i + at));
#define CUPLUG_NEXT                                    \
  CUPLUG_SET_REDUCED(lanes, at, CUPLUG_GET(lanes, at), \
                     cuplug_element(given, p, from + at, i + from + at));
#define CUPLUG_REST \
  CUPLUG_SET(lanes, at, with_rest(given, p, n, i, n_lanes, at, CUPLUG_GET(lanes, at)));

/* Reduces n >= n_lanes elements, the first with number i, to `to` values. With is_twice, n is 2 *
 * n_lanes or more. If no branch skips the loop, compilers keep the lanes in registers. */
static inline __attribute__((always_inline)) void
by_lanes(const cuplug_numbers given, const cuplug_places p, int64_t n, int64_t i, const int n_lanes,
         const int to, const int is_twice, const int has_rest, cuplug_few *few) {
  cuplug_lanes lanes __attribute__((aligned(64)));
  int64_t from = n_lanes;
  CUPLUG_OVER_LANES(n_lanes, CUPLUG_FIRST)
  if (is_twice) do {
      CUPLUG_OVER_LANES(n_lanes, CUPLUG_NEXT)
      from += n_lanes;
    } while (from + n_lanes <= n);
  if (has_rest) CUPLUG_OVER_LANES(n_lanes, CUPLUG_REST)
  if (IS_NARROW) {
    CUPLUG_SIMD
    for (int64_t at = 0; at < n - from; at++) CUPLUG_NEXT
  }
  CUPLUG_EACH_HALF(CUPLUG_FOLD_AT, lanes, n_lanes, to)
  for (int64_t at = 0; at < to; at++) CUPLUG_SET(*few, at, CUPLUG_GET(lanes, at));
}

/* Reduces n >= n_lanes elements to `to` values. */
static inline __attribute__((always_inline)) void fold_row(const cuplug_numbers given,
                                                           const cuplug_places p, int64_t n,
                                                           int64_t i, const int n_lanes,
                                                           const int to, cuplug_few *few) {
  const int is_twice = n >= 2 * n_lanes, has_rest = !IS_NARROW && n % n_lanes;
  if (is_twice && has_rest)
    by_lanes(given, p, n, i, n_lanes, to, 1, 1, few);
  else if (is_twice)
    by_lanes(given, p, n, i, n_lanes, to, 1, 0, few);
  else if (has_rest)
    by_lanes(given, p, n, i, n_lanes, to, 0, 1, few);
  else
    by_lanes(given, p, n, i, n_lanes, to, 0, 0, few);
}

static inline __attribute__((always_inline)) cuplug_value value_of(const cuplug_numbers given,
                                                                   cuplug_few *few) {
  CUPLUG_EACH_HALF(CUPLUG_FOLD_FEW_AT, *few, FEW, 1)
  return CUPLUG_GET(*few, 0);
}

/* Fewer than SHORT elements. */
enum { SHORT = IS_NARROW ? LANES : CHUNK };
static inline cuplug_value short_row(const cuplug_numbers given, const cuplug_places p, int64_t n,
                                     int64_t i) {
  enum { FEWER = FEW >= 64 ? FEW / 4 : FEW }; /* for narrow values, many fill a vector */
  cuplug_few few;
  if (n >= FEWER) {
    if (n >= FEW)
      fold_row(given, p, n, i, FEW, 1, &few);
    else
      fold_row(given, p, n, i, FEWER, 1, &few);
    return CUPLUG_GET(few, 0);
  }
  CUPLUG_SIMD
  for (int64_t at = 0; at < n; at++) CUPLUG_SET(few, at, cuplug_element(given, p, at, i + at));
  CUPLUG_FOLD(few, n, 1)
  return CUPLUG_GET(few, 0);
}

/* Reduces n >= LANES elements to FEW values. */
static __attribute__((noinline)) void row_chunk(const cuplug_numbers given, const cuplug_places p,
                                                int64_t n, int64_t i, cuplug_few *few) {
  fold_row(given, p, n, i, LANES, FEW, few);
}

/* Returns whether a value is final. */
static inline int few_stop(const cuplug_numbers given, const cuplug_few *few) {
  int stops = 0;
  for (int64_t at = 0; at < FEW; at++) stops |= cuplug_stops(given, CUPLUG_GET(*few, at));
  return stops;
}

/* The number of elements that are combined before pairs are, which takes as long as some hundreds
 * of elements: as many as a block holds, and more if that is exact. */
static inline int64_t chunk_of(const cuplug_task *task) {
  if (CAN_STOP) return CHUNK;
  return IS_NARROW && !task->uses_blocks ? 2 * BLOCK : BLOCK;
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
    if (!n_chunks && at_row + n >= end) return value_of(given, &few); /* no pairs exist */
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
