/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of scans on the host, behind reduction_places.h. Lines along the scanned axis are cut
 * into parts by their length alone. What comes before a part is put together first, so that parts
 * need not wait for each other: each value is that of what came before the part, with the part's
 * elements one after the other. */

typedef CUPLUG_VALUES(BLOCK) cuplug_values;

/* Stores the value at element r of line `begin` + at. */
#define CUPLUG_PUT(k, name, type) \
  ((type *)call->data[k])[r * call->reduced->strides[0][k] + places[k - N_INPUTS]] = results.name;

static inline void put(const cuplug_loop_call *call, const cuplug_numbers given,
                       const int64_t *places, int64_t r, cuplug_value value) {
  const cuplug_results results = cuplug_results_of(given, value, EXCLUSIVE ? r : r + 1);
  CUPLUG_EACH_OUTPUT(CUPLUG_PUT)
}

/* Goes on from `value`, if there is one, by n elements of a line; with places they are stored. */
static inline int take(const cuplug_task *task, const cuplug_places p, int64_t n, int64_t r,
                       const int64_t *places, int has_value, cuplug_value *value) {
  const cuplug_numbers given = task->given;
  cuplug_value now = *value;
  for (int64_t at = 0; at < n; at++) {
    const cuplug_value element = cuplug_element(given, p, at, r + at);
    if (EXCLUSIVE && places)
      put(task->call, given, places, r + at, has_value ? now : cuplug_identity(given));
    now = has_value ? cuplug_reduce(given, now, element) : element;
    has_value = 1;
    if (!EXCLUSIVE && places) put(task->call, given, places, r + at, now);
  }
  *value = now;
  return has_value;
}

/* One part of a line; `value` is that of all parts before it. */
static cuplug_value scan_row(cuplug_task *task, int64_t line, int64_t part, int has_value,
                             cuplug_value value, int stores) {
  const cuplug_loop_call *call = task->call;
  int64_t offsets[N_INPUTS], places[N_OUTPUTS];
  row_offsets(call, line, offsets);
  for (unsigned k = 0; k < N_OUTPUTS; k++)
    places[k] = cuplug_offset(call->loop, N_INPUTS + k, line);
  for (int64_t r = part * call->part, n, end = end_of(call, part); r < end; r += n) {
    n = cuplug_least(BLOCK, end - r);
    const cuplug_places p = row_places(task, offsets, r, n);
    has_value = take(task, p, n, r, stores ? places : NULL, has_value, &value);
  }
  return value;
}

/* Row r of m lines from `begin` on, all of whose outputs lie side by side. */
static inline void put_row(const cuplug_loop_call *call, const cuplug_numbers given, int64_t begin,
                           int64_t m, int64_t r, const cuplug_values *values) {
#define CUPLUG_TARGET(k, name, type) \
  type *to_##name = (type *)call->data[k] + begin + r * call->reduced->strides[0][k];
#define CUPLUG_STORE(k, name, type) to_##name[at] = results.name;
  CUPLUG_EACH_OUTPUT(CUPLUG_TARGET)
  CUPLUG_SIMD
  for (int64_t at = 0; at < m; at++) {
    const cuplug_results results =
        cuplug_results_of(given, CUPLUG_GET(*values, at), EXCLUSIVE ? r : r + 1);
    CUPLUG_EACH_OUTPUT(CUPLUG_STORE)
  }
}

/* One part of up to BLOCK lines, whose values are those of all parts before it. */
static void scan_columns(cuplug_task *task, int64_t begin, int64_t m, int64_t part, int has_value,
                         cuplug_values *values, int stores) {
  const cuplug_loop_call *call = task->call;
  const cuplug_numbers given = task->given;
  cuplug_values first;
  for (int64_t at = 0; EXCLUSIVE && at < m; at++) CUPLUG_SET(first, at, cuplug_identity(given));
  for (int64_t r = part * call->part, end = end_of(call, part); r < end; r++, has_value = 1) {
    const cuplug_places p = column_places(task, begin, m, r, 1);
    if (EXCLUSIVE && stores) put_row(call, given, begin, m, r, has_value ? values : &first);
    if (has_value) {
      CUPLUG_SIMD
      for (int64_t at = 0; at < m; at++)
        CUPLUG_SET(*values, at,
                   cuplug_reduce(given, CUPLUG_GET(*values, at), cuplug_element(given, p, at, r)));
    } else {
      CUPLUG_SIMD
      for (int64_t at = 0; at < m; at++) CUPLUG_SET(*values, at, cuplug_element(given, p, at, r));
    }
    if (!EXCLUSIVE && stores) put_row(call, given, begin, m, r, values);
  }
}

/* An item is one part of a line, or of BLOCK lines side by side. */
static int64_t lines_of(const cuplug_loop_call *call) { return call->by_columns ? BLOCK : 1; }
static int64_t items_of(const cuplug_loop_call *call) {
  return (call->loop->n + lines_of(call) - 1) / lines_of(call);
}

static void run_items(const cuplug_loop_call *call, long long from, long long to, int stores) {
  const int64_t n = call->loop->n, n_items = items_of(call);
  cuplug_task task;
  cuplug_values values;
  start_task(&task, call);
  for (int64_t item = from; item < to; item++) {
    const int64_t begin = item % n_items * lines_of(call), part = item / n_items;
    const int64_t m = cuplug_least(lines_of(call), n - begin);
    cuplug_value *partials = (cuplug_value *)call->partials + part * n + begin;
    const int has_value = stores && part > 0;
    for (int64_t at = 0; has_value && at < m; at++) CUPLUG_SET(values, at, partials[at - n]);
    if (call->by_columns)
      scan_columns(&task, begin, m, part, has_value, &values, stores);
    else
      CUPLUG_SET(values, 0, scan_row(&task, begin, part, has_value, CUPLUG_GET(values, 0), stores));
    for (int64_t at = 0; !stores && at < m; at++) partials[at] = CUPLUG_GET(values, at);
  }
}

CUPLUG_PART sum_items(const cuplug_loop_call *call, long long from, long long to) {
  run_items(call, from, to, 0);
}
CUPLUG_PART scan_items(const cuplug_loop_call *call, long long from, long long to) {
  run_items(call, from, to, 1);
}

/* Makes of the values of parts those of all parts up to each. */
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
  const int64_t n_lines = items_of(call), of_item = lines_of(call) * call->part;
  const int64_t grain = of_item < CUPLUG_GRAIN ? CUPLUG_GRAIN / of_item : 1;
  if (call->n_parts > 1) {
    call->parallel(call, sum_range, n_lines * (call->n_parts - 1), grain);
    cuplug_run_part(put_together, call, 0, call->loop->n);
  }
  if (call->loop->n * call->reduced->n < CUPLUG_PARALLEL_FROM)
    scan_range(call, 0, n_lines * call->n_parts);
  else
    call->parallel(call, scan_range, n_lines * call->n_parts, grain);
}
