/* SPDX-License-Identifier: Apache-2.0 */
/* A row of a reduction that chooses an element, by `cuplug_better`. Included after reduction.h.
 * Only values are compared, many at once. The number of the element is found at the end. */
#define CUPLUG_VALUE_AT(at) cuplug_element(given, p, at, 0).value
typedef __typeof__(((cuplug_value *)0)->value) cuplug_chosen;

static inline int has_better(const cuplug_numbers given, const cuplug_places p, int64_t n,
                             cuplug_chosen than) {
  cuplug_flag found = 0;
  CUPLUG_SIMD
  for (int64_t at = 0; at < n; at++)
    found |= (cuplug_flag)cuplug_better(given, than, CUPLUG_VALUE_AT(at));
  return found != 0;
}

/* For relations that are true for equal values, such as "b >= a": compares values one by one. */
static __attribute__((noinline)) int64_t place_in_order(const cuplug_numbers given,
                                                        const cuplug_places p, int64_t n) {
  int64_t best = 0;
  for (int64_t at = 1; at < n; at++)
    if (cuplug_better(given, CUPLUG_VALUE_AT(best), CUPLUG_VALUE_AT(at))) best = at;
  return best;
}

enum { FLAT_CHUNK = 1024 }; /* elements that need no block */

/* The position of the first of n >= n_lanes values than which none is better. Each lane keeps its
 * first best value and the step in which it was found. If the compiler knows the number of lanes,
 * they stay in registers. The last step takes the last elements, which may overlap earlier ones. */
static inline __attribute__((always_inline)) int64_t
place_of_best(const cuplug_numbers given, const cuplug_places p, int64_t n, const int64_t n_lanes) {
  cuplug_chosen lanes[LANES] __attribute__((aligned(64))), best[LANES] __attribute__((aligned(64)));
  cuplug_flag steps[LANES] __attribute__((aligned(64))), step = 1;
  cuplug_flag is_worse[LANES] __attribute__((aligned(64)));
  const uint32_t last = (uint32_t)(n - n_lanes);
  CUPLUG_SIMD
  for (int64_t at = 0; at < n_lanes; at++) lanes[at] = CUPLUG_VALUE_AT(at), steps[at] = 0;
  for (int64_t begin = n_lanes; begin < n; begin += n_lanes, step++) {
    begin = cuplug_min_i64(begin, last);
    CUPLUG_SIMD
    for (int64_t at = 0; at < n_lanes; at++) {
      const cuplug_chosen value = CUPLUG_VALUE_AT(begin + at);
      const int is_better = cuplug_better(given, lanes[at], value) != 0;
      lanes[at] = is_better ? value : lanes[at];
      steps[at] = is_better ? step : steps[at];
    }
  }
  memcpy(best, lanes, (size_t)n_lanes * sizeof(*best));
#define CUPLUG_BEST_AT(best, n, half)     \
  CUPLUG_SIMD_ONCE                        \
  for (int64_t at = 0; at < (half); at++) \
    best[at] = cuplug_better(given, best[at], best[half + at]) ? best[half + at] : best[at];
  CUPLUG_EACH_HALF(CUPLUG_BEST_AT, best, n_lanes, 1)
  CUPLUG_SIMD
  for (int64_t at = 0; at < n_lanes; at++)
    is_worse[at] = (cuplug_flag)(cuplug_better(given, lanes[at], best[0]) != 0);
  uint32_t first = UINT32_MAX;
  CUPLUG_SIMD
  for (uint32_t at = 0; at < n_lanes; at++) {
    const uint32_t from = (uint32_t)steps[at] * (uint32_t)n_lanes,
                   before = from < last ? from : last;
    const uint32_t here = (before + at) | -(uint32_t)is_worse[at];
    first = here < first ? here : first;
  }
  return first;
}

/* The same for any number of values. More lanes at once save time if there are many steps. For a
 * single step, the compiler removes the counting. */
static inline int64_t place_in_chunk(const cuplug_numbers given, const cuplug_places p, int64_t n) {
  const int64_t first = n == LANES / 2   ? place_of_best(given, p, LANES / 2, LANES / 2)
                        : n >= 4 * LANES ? place_of_best(given, p, n, LANES)
                        : n >= LANES / 2 ? place_of_best(given, p, n, LANES / 2)
                                         : n;
  return first < n ? first : place_in_order(given, p, n);
}

/* The first of the best elements. A chunk is searched if it has a better one than the chunks
 * before. */
static cuplug_value row(cuplug_task *task, const int64_t *offsets, int64_t at_row, int64_t end,
                        unsigned char *stopped) {
  const cuplug_numbers given = task->given;
  const int64_t chunk = task->uses_blocks ? CHUNK : FLAT_CHUNK;
  cuplug_value best;
  (void)stopped;
  for (int64_t n, is_first = 1; at_row < end; at_row += n, is_first = 0) {
    n = cuplug_min_i64(chunk, end - at_row);
    const cuplug_places p = row_places(task, offsets, at_row, n);
    if (!is_first && !has_better(given, p, n, best.value)) continue;
    const int64_t at = place_in_chunk(given, p, n);
    const cuplug_value found = cuplug_element(given, p, at, at_row + at);
    best = is_first ? found : cuplug_follow(given, best, found);
  }
  return best;
}
