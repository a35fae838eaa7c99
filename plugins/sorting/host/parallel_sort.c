/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts lines of keys by vectors: short ones by one thread each, parts of long ones by all threads.
 */
#include "sorting/host/radix.h"
#include "vectors.h"

#define AT_ONCE (1 << 15) /* keys that are worth a thread */
#define LONG (1 << 16)    /* keys that are divided among threads */
#define NEAR (1 << 12)    /* bytes of lines that are converted to numbers together */

typedef struct part {
  const sorting *s;
  const order *order; /* or NULL */
  char *keys;
  int64_t n;
  int depth, is_done;
} part;

VECTORS static void to_numbers(const order *o, void *keys, int64_t n) {
  const struct order order = *o;
#define CASE(T, width) \
  for (int64_t i = 0; i < n; i++) ((T *)keys)[i] = order_bits##width(&order, ((T *)keys)[i]);
  switch (o->n_bytes) {
  case 1:
    CASE(uint8_t, 8)
    break;
  case 2:
    CASE(uint16_t, 16)
    break;
  case 4:
    CASE(uint32_t, 32)
    break;
  default:
    CASE(uint64_t, 64)
  }
#undef CASE
}

static int sort_parts(void *context, int64_t begin, int64_t end);

static int sort_few(const part *p) {
  if (!p->s->by || p->n > p->s->by->most)
    return sorting_count(p->s->call, (uint8_t *)p->keys, p->n);
  p->s->by->sort(p->keys, p->n, p->depth);
  return CUPLUG_OK;
}

/* The keys that are divided last are in the caches of the thread that continues with them. */
static int sort_part(const part *p) {
  if (p->n < LONG || p->is_done || p->s->n_bytes == 1) {
    const int status = p->is_done ? CUPLUG_OK : sort_few(p);
    if (p->order) to_numbers(p->order, p->keys, p->n);
    return status;
  }
  part parts[2] = {*p, *p};
  parts[0].n = p->s->by->split(p->keys, p->n, p->depth, &parts[0].is_done);
  parts[1].keys += parts[0].n * p->s->n_bytes;
  parts[1].n -= parts[0].n;
  parts[0].depth = parts[1].depth = p->depth - 1;
  return cuplug_parallel(p->s->call, 2, 1, sort_parts, parts);
}

static int sort_parts(void *context, int64_t begin, int64_t end) {
  const part *parts = context;
  int status = CUPLUG_OK;
  for (int64_t k = begin; k < end && !status; k++) status = sort_part(&parts[k]);
  return status;
}

/* Short lines are converted to numbers together. */
static int sort_lines(void *context, int64_t begin, int64_t end) {
  part p = *(const part *)context;
  const order *const order = p.order;
  const int64_t bytes = p.n * p.s->n_bytes, at_once = 1 + NEAR / (bytes + 1);
  char *const keys = p.keys;
  int status = CUPLUG_OK;
  if (at_once > 1) p.order = NULL;
  for (int64_t line = begin, n; line < end && !status; line += n) {
    n = end - line < at_once ? end - line : at_once;
    for (int64_t k = 0; k < n && !status; k++) {
      p.keys = keys + (line + k) * bytes;
      status = sort_part(&p);
    }
    if (order != p.order) to_numbers(order, keys + line * bytes, n * p.n);
  }
  return status;
}

int sorting_run_by_vectors(const sorting *s, const order *o) {
  part p = {s, o, s->keys, s->m, 0, 0};
  for (int64_t n = s->m; n; n /= 2) p.depth += 2;
  return cuplug_parallel(s->call, s->n_lines, 1 + AT_ONCE / (s->m + 1), sort_lines, &p);
}
