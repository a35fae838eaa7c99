/* SPDX-License-Identifier: Apache-2.0 */
/* A row of a reduction by `cuplug_reduce`: behind reduction.h. */
/* n >= n_lanes elements, the first with number i, as FEW values. */
static inline __attribute__((always_inline)) void row_chunk(const cuplug_numbers given,
                                                            const cuplug_places p, int64_t n,
                                                            int64_t i, const int64_t n_lanes,
                                                            cuplug_few *few) {
  cuplug_lanes lanes __attribute__((aligned(64)));
  int64_t begin = n_lanes;
  CUPLUG_SIMD
  for (int64_t at = 0; at < n_lanes; at++)
    CUPLUG_SET(lanes, at, cuplug_element(given, p, at, i + at));
  for (; begin + n_lanes <= n; begin += n_lanes) {
    CUPLUG_SIMD
    for (int64_t at = 0; at < n_lanes; at++)
      CUPLUG_SET_REDUCED(lanes, at, CUPLUG_GET(lanes, at),
                         cuplug_element(given, p, begin + at, i + begin + at));
  }
  CUPLUG_SIMD
  for (int64_t at = 0; at < n - begin; at++)
    CUPLUG_SET_REDUCED(lanes, at, CUPLUG_GET(lanes, at),
                       cuplug_element(given, p, begin + at, i + begin + at));
  CUPLUG_EACH_HALF(CUPLUG_FOLD_AT, lanes, n_lanes, FEW)
  for (int64_t at = 0; at < FEW; at++) CUPLUG_SET(*few, at, CUPLUG_GET(lanes, at));
}

static inline __attribute__((always_inline)) cuplug_value value_of(const cuplug_numbers given,
                                                                   cuplug_few *few) {
  CUPLUG_EACH_HALF(CUPLUG_FOLD_FEW_AT, *few, FEW, 1)
  return CUPLUG_GET(*few, 0);
}

/* Fewer than LANES elements. */
static inline cuplug_value short_row(const cuplug_numbers given, const cuplug_places p, int64_t n,
                                     int64_t i) {
  cuplug_few lanes;
  if (n >= FEW) {
    row_chunk(given, p, n, i, FEW, &lanes);
    return value_of(given, &lanes);
  }
  CUPLUG_SIMD
  for (int64_t at = 0; at < n; at++) CUPLUG_SET(lanes, at, cuplug_element(given, p, at, i + at));
  CUPLUG_FOLD(lanes, n, 1)
  return CUPLUG_GET(lanes, 0);
}

/* Whether one of the values says that no further one matters. */
static inline int few_stop(const cuplug_numbers given, const cuplug_few *few) {
  int stops = 0;
  for (int64_t at = 0; at < FEW; at++) stops |= cuplug_stops(given, CUPLUG_GET(*few, at));
  return stops;
}

/* Elements that are put together before pairs are: where that is exact, more of them. */
static inline int64_t chunk_of(const cuplug_task *task) {
  const int is_exact = sizeof(cuplug_lanes) < sizeof(CUPLUG_VALUES(LANES));
  return is_exact && !task->uses_blocks ? 8 * CHUNK : CHUNK;
}

static cuplug_value row(cuplug_task *task, int64_t output, int64_t part) {
  const cuplug_loop_call *call = task->call;
  const int64_t chunk = chunk_of(task);
  const cuplug_numbers given = task->given;
  unsigned char *stopped = CAN_STOP && call->n_parts > 1 ? &call->stopped[output] : NULL;
  int64_t offsets[N_INPUTS], at_row = part * call->part, end = end_of(call, part), n_chunks = 0;
  cuplug_few pairs[N_PAIRS]; /* bit k of n_chunks: pairs[k] holds 2^k chunks */
  row_offsets(call, output, offsets);
  if (is_stopped(stopped)) end = at_row + 1;
  if (end - at_row < LANES)
    return short_row(given, row_places(task, offsets, at_row, end - at_row), end - at_row, at_row);
  for (int64_t n; at_row < end; at_row += n, n_chunks++) {
    n = end - at_row < chunk + LANES ? end - at_row : chunk;
    cuplug_few few;
    int k = 0;
    row_chunk(given, row_places(task, offsets, at_row, n), n, at_row, LANES, &few);
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
