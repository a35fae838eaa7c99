/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of keys by vectors: short ones each by one thread, parts of long ones by all. */
#include "sorting/radix.h"
#include "vectors.h"

#define AT_ONCE (1 << 15) /* keys that are worth a thread */
#define LONG (1 << 16)    /* keys that are divided between threads */

typedef struct part {
  const sorting *s;
  const order *order; /* or NULL */
  char *keys;
  int64_t n;
  int depth, is_done;
} part;

VECTORS static void to_numbers(const order *o, void *keys, int64_t n) {
  const struct order order = *o;
  uint32_t *narrow = keys;
  uint64_t *wide = keys;
  if (o->n_bytes == 4)
    for (int64_t i = 0; i < n; i++) narrow[i] = order_bits32(&order, narrow[i]);
  else
    for (int64_t i = 0; i < n; i++) wide[i] = order_bits64(&order, wide[i]);
}

static int sort_parts(void *context, int64_t begin, int64_t end);

/* The keys that are divided last are in the caches of the thread that goes on with them. */
static int sort_part(const part *p) {
  if (p->n < LONG || p->is_done) {
    if (!p->is_done) p->s->by->sort(p->keys, p->n, p->depth);
    if (p->order) to_numbers(p->order, p->keys, p->n);
    return CUPLUG_OK;
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

static int sort_lines(void *context, int64_t begin, int64_t end) {
  part p = *(const part *)context;
  int status = CUPLUG_OK;
  char *const keys = p.keys;
  for (int64_t line = begin; line < end && !status; line++) {
    p.keys = keys + line * p.n * p.s->n_bytes;
    status = sort_part(&p);
  }
  return status;
}

int sorting_run_by_vectors(const sorting *s, const order *o) {
  part p = {s, o, s->keys, s->m, 0, 0};
  for (int64_t n = s->m; n; n /= 2) p.depth += 2;
  return cuplug_parallel(s->call, s->n_lines, 1 + AT_ONCE / (s->m + 1), sort_lines, &p);
}
