/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are long rows. Each is copied as a whole, or filled, to its position or from there.
 * Also complete outputs. */
#include "indexing/scatter.h"

#include <string.h>

#define LONG 64         /* bytes of a row */
#define LEAST (1 << 16) /* bytes that are worth a thread */
#define N_PARTS 2       /* bytes of x for each thread */
#define SLAB (1 << 18)  /* bytes of an output that one thread fills */

#define REPEAT(T)                                       \
  {                                                     \
    const T one = *(const T *)value;                    \
    for (int64_t k = 0; k < n; k++) ((T *)to)[k] = one; \
  }

void repeat_value(void *to, const void *value, int64_t n, int64_t bytes) {
  ELEMENTS_BY_WIDTH(bytes, REPEAT)
}

/* Row r of the values, whose position is row `index` of x. */
static void move_row(const job *j, int64_t r, int64_t index) {
  const int64_t width = j->places.x.width, bytes = width * j->element_bytes;
  char *there = (char *)j->x + index * bytes, *value = (char *)j->values + r * bytes;
  if (j->move == take)
    memcpy(value, there, (size_t)bytes);
  else if (j->move == put)
    memcpy(there, value, (size_t)bytes);
  else
    repeat_value(there, j->values, width, j->element_bytes);
}

/* Rows `first` to `last` - 1 whose positions are rows `from` to `to` - 1. */
static int move_some(const job *j, int64_t first, int64_t last, uint64_t from, uint64_t to) {
  const places *p = &j->places;
  for (int64_t r = first; r < last; r++) {
    int64_t index = places_index(p, r); /* read once, since others may change it */
    index += index < 0 ? p->x.m : 0;
    if ((uint64_t)index >= (uint64_t)p->x.m) return fail_index(j, r * p->x.width);
    if ((uint64_t)index - from < to - from) move_row(j, r, index);
  }
  return CUPLUG_OK;
}

static int move_values(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  return move_some(j, begin, end, 0, (uint64_t)j->places.x.m);
}

/* One thread has all values for a part of x, in their order: the last one for a position remains.
 */
static int move_to_parts(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  const int64_t m = j->places.x.m, first = begin * j->n_each, last = end * j->n_each;
  if (first >= m) return CUPLUG_OK;
  return move_some(j, 0, j->places.n_along, (uint64_t)first, (uint64_t)(last < m ? last : m));
}

int can_move_rows(const job *j) {
  const int is_plain = j->move == take || j->move == put || j->move == put_one;
  return is_plain && j->places.has_rows && j->places.x.width * j->element_bytes >= LONG;
}

int move_rows(const job *given) {
  job j = *given;
  const int64_t bytes = j.places.x.width * j.element_bytes, n_rows = j.places.n_along;
  if (j.move == take) return cuplug_parallel(j.call, n_rows, 1 + LEAST / bytes, move_values, &j);
  const int64_t n_most = N_PARTS * cuplug_n_threads(j.call);
  const int64_t n_parts = n_rows * bytes < 2 * LEAST || n_most == N_PARTS ? 1 : n_most;
  j.n_each = (j.places.x.m + n_parts - 1) / n_parts;
  return cuplug_parallel(j.call, n_parts, 1, move_to_parts, &j);
}

/* ---- Outputs that are initialized with zeros or a copy ---- */

/* The bytes of an output; without `from` they are zeros. */
typedef struct filling {
  char *to;
  const char *from;
  int64_t n;
} filling;

static int fill_slabs(void *context, int64_t begin, int64_t end) {
  const filling *f = context;
  const int64_t first = begin * SLAB, last = end * SLAB < f->n ? end * SLAB : f->n;
  if (f->from)
    memcpy(f->to + first, f->from + first, (size_t)(last - first));
  else
    memset(f->to + first, 0, (size_t)(last - first));
  return CUPLUG_OK;
}

int fill(const cuplug_call *call, const void *from) {
  const cuplug_tensor *out = &call->outputs[0];
  filling f = {out->data, from, cuplug_n_elements(out) * cuplug_element_bytes(out)};
  return f.n ? cuplug_parallel(call, (f.n + SLAB - 1) / SLAB, 1, fill_slabs, &f) : CUPLUG_OK;
}
