/* SPDX-License-Identifier: Apache-2.0 */
/* unique(x): the unique elements, sorted, as the Python array API standard's unique_all.
 *   x T[*s]; values T[?]; indices int64[?]: the first position of each; inverse_indices int64[*s]:
 *   the number of the value for each element of x; counts int64[?]: the count of each
 * unique_values(x): only the values.
 *
 * Zeros are equal: the first one, with its sign, represents all. NaNs are not, and each keeps its
 * bits. T: bool, integers, floating dtypes. */
#include "sorting/host/radix.h"

#include <string.h>

CUPLUG_ENTRY int unique_cuda(const cuplug_call *call);
CUPLUG_ENTRY int unique_values_cuda(const cuplug_call *call);

static uint64_t key_at(const sorting *s, int64_t i) {
  const void *keys = s->keys;
  if (s->width == 4) return ((const uint32_t *)keys)[i];
  if (s->width == 8) return ((const uint64_t *)keys)[i];
  return s->width == 2 ? ((const uint16_t *)keys)[i] : ((const uint8_t *)keys)[i];
}

/* Returns whether sorted key number i differs from the one before it. */
static int is_first(const sorting *s, const order *o, int64_t i) {
  const uint64_t key = key_at(s, i);
  return i == 0 || key != key_at(s, i - 1) || order_is_nan(o, key);
}

/* Sorts x, and counts the unique keys. */
static int sort_all(const cuplug_call *call, sorting *s, const order *o, int has_index,
                    int64_t *n_found) {
  const cuplug_tensor *x = &call->tensors[0];
  const elements_axis all = {1, cuplug_n_elements(x), 1};
  int status = sorting_begin(s, call, o->n_bytes, 1, all.m,
                             has_index ? SORTING_PLACES : SORTING_ALONE, NULL);
  s->wants_keys = 1;
  if (!status) status = sorting_load(s, x, &all, o);
  if (!status) status = sorting_run(s);
  *n_found = 0;
  for (int64_t i = 0; i < all.m && !status; i++) *n_found += is_first(s, o, i);
  return status;
}

/* Writes a number of o->n_bytes. */
static void write_number(const order *o, void *out, int64_t at, uint64_t bits) {
#define CASE(T) ((T *)out)[at] = (T)bits;
  switch (o->n_bytes) {
  case 1:
    CASE(uint8_t)
    break;
  case 2:
    CASE(uint16_t)
    break;
  case 4:
    CASE(uint32_t)
    break;
  default:
    CASE(uint64_t)
  }
#undef CASE
}

/* ---- Few values ------------------------------------------------------------------------------ */

#define FEW 256         /* unique values, which are found faster in a table than by sorting */
#define SLOT_BITS 10    /* slots of the table: most values are in their first slot */
#define LEAST (1 << 12) /* elements for which a table saves time */
#define RANGE (1 << 15) /* elements that are worth a thread */
#define MOST_PARTS 64

typedef struct table {
  int n; /* -1: there are more than FEW */
  uint8_t is_used[1 << SLOT_BITS];
  uint64_t bits[1 << SLOT_BITS];
} table;

typedef struct few {
  const void *x;
  int64_t n, n_bytes, n_parts;
  table *found; /* of each part */
} few;

/* 0: the table is full. */
ELEMENTS_INLINE int add_bits(table *t, uint64_t bits) {
  uint32_t at = (uint32_t)(bits * 0x9e3779b97f4a7c15u >> (64 - SLOT_BITS));
  for (; t->is_used[at]; at = (at + 1) % (1 << SLOT_BITS))
    if (t->bits[at] == bits) return 1;
  if (t->n == FEW) return 0;
  t->is_used[at] = 1;
  t->bits[at] = bits;
  t->n++;
  return 1;
}

static int add_table(table *to, const table *from) {
  for (int at = 0; at < 1 << SLOT_BITS; at++)
    if (from->is_used[at] && !add_bits(to, from->bits[at])) return 0;
  return 1;
}

#define ADD_ALL(T)                                    \
  for (int64_t i = begin; i < end; i++)               \
    if (!add_bits(t, ((const T *)f->x)[i])) return 0; \
  return 1;

static int add_elements(const few *f, table *t, int64_t begin, int64_t end) {
  switch (f->n_bytes) {
  case 1:
    ADD_ALL(uint8_t)
  case 2:
    ADD_ALL(uint16_t)
  case 4:
    ADD_ALL(uint32_t)
  default:
    ADD_ALL(uint64_t)
  }
}

static int collect_parts(void *context, int64_t begin, int64_t end) {
  const few *f = context;
  for (int64_t part = begin; part < end; part++) {
    table *t = f->found + part;
    t->n = 0;
    memset(t->is_used, 0, sizeof t->is_used);
    if (!add_elements(f, t, f->n * part / f->n_parts, f->n * (part + 1) / f->n_parts)) t->n = -1;
  }
  return CUPLUG_OK;
}

/* Inserts a key in order among n others, unless it exists. Returns their number. */
static int put_key(uint64_t *keys, int n, uint64_t key) {
  int k = n;
  while (k > 0 && keys[k - 1] > key) k--;
  if (k > 0 && keys[k - 1] == key) return n;
  memmove(keys + k + 1, keys + k, (size_t)(n - k) * sizeof(*keys));
  keys[k] = key;
  return n + 1;
}

/* The keys of bytes, all of which can be searched. */
static int keys_of_bytes(const uint8_t *x, int64_t n, const order *o, uint64_t *keys) {
  uint8_t is_there[256] = {0}, is_key[256] = {0};
  int n_keys = 0;
  for (int64_t i = 0; i < n; i++) is_there[x[i]] = 1;
  for (uint64_t byte = 0; byte < 256; byte++) is_key[order_key(o, byte)] |= is_there[byte];
  for (uint64_t key = 0; key < 256; key++)
    if (is_key[key]) keys[n_keys++] = key;
  return n_keys;
}

/* Inserts the unique keys into `keys`, sorted, and returns their number; -1: more than FEW, or NaNs
 * exist, each of which is unique. */
static int64_t few_keys(const cuplug_call *call, const order *o, uint64_t *keys) {
  const cuplug_tensor *x = &call->tensors[0];
  const int64_t n = cuplug_n_elements(x);
  few f = {x->data, n, o->n_bytes, n / RANGE, NULL};
  if (o->n_bytes == 1 && n <= RANGE) return keys_of_bytes(x->data, n, o, keys);
  if (n < LEAST) return -1;
  if (f.n_parts > MOST_PARTS) f.n_parts = MOST_PARTS;
  if (f.n_parts < 1) f.n_parts = 1;
  f.found = cuplug_workspace(call, (uint64_t)f.n_parts * sizeof *f.found);
  if (!f.found || cuplug_parallel(call, f.n_parts, 1, collect_parts, &f)) return -1;
  table *all = f.found;
  for (int64_t part = 0; part < f.n_parts; part++)
    if (f.found[part].n < 0 || !add_table(all, f.found + part)) return -1;
  int n_keys = 0;
  for (int at = 0; at < 1 << SLOT_BITS; at++) {
    if (!all->is_used[at]) continue;
    const uint64_t key = order_key(o, all->bits[at]);
    if (order_is_nan(o, key)) return -1;
    n_keys = put_key(keys, n_keys, key);
  }
  return n_keys;
}

/* The sorted values get the first zero of x, and its NaNs. */
static int restore(const cuplug_call *call, const order *o, int64_t n_found) {
  const cuplug_tensor *x = &call->tensors[0];
  sorting_restore(o, x->data, 1, cuplug_n_elements(x), call->outputs[0].data, n_found);
  return CUPLUG_OK;
}

/* ---- The entries ----------------------------------------------------------------------------- */

CUPLUG_ENTRY int unique_values_host(const cuplug_call *call) {
  const order o = order_of(&call->tensors[0], 0);
  uint64_t keys[FEW];
  sorting s;
  int64_t n_found = few_keys(call, &o, keys);
  if (n_found >= 0) {
    int status = cuplug_output(call, 1, &n_found);
    for (int64_t k = 0; k < n_found && !status; k++)
      write_number(&o, call->outputs[0].data, k, order_bits(&o, keys[k]));
    return status ? status : restore(call, &o, n_found);
  }
  int status = sort_all(call, &s, &o, 0, &n_found);
  if (!status) status = cuplug_output(call, 1, &n_found);
  if (status) return status;
  for (int64_t i = 0, at = 0; i < s.m; i++)
    if (is_first(&s, &o, i))
      write_number(&o, call->outputs[0].data, at++, order_bits(&o, key_at(&s, i)));
  return restore(call, &o, n_found);
}

CUPLUG_ENTRY int unique_host(const cuplug_call *call) {
  static const uint32_t sized[] = {1, 2, 4};
  const order o = order_of(&call->tensors[0], 0);
  sorting s;
  int64_t n_found, at = -1;
  int status = sort_all(call, &s, &o, 1, &n_found);
  for (int k = 0; k < 3 && !status; k++) status = cuplug_output(call, sized[k], &n_found);
  if (status) return status;
  int64_t *indices = call->outputs[1].data, *inverse = call->outputs[2].data;
  int64_t *counts = call->outputs[3].data;
  for (int64_t i = 0; i < s.m; i++) {
    if (is_first(&s, &o, i)) {
      at++;
      write_number(&o, call->outputs[0].data, at, order_bits(&o, key_at(&s, i)));
      indices[at] = s.index[i];
      counts[at] = 0;
    }
    inverse[s.index[i]] = at;
    counts[at]++;
  }
  return restore(call, &o, n_found);
}

#define SORTABLE " where T: bool | integer | floating"

CUPLUG_OPERATOR(unique_cuda, unique_host,
                "unique(x: T[*s]) -> (values: T[?], indices: int64[?], inverse_indices: int64[*s], "
                "counts: int64[?])" SORTABLE,
                "The distinct elements in order, the first position of each, the number of its "
                "value for each element, and the counts." CUPLUG_DETERMINISTIC);
CUPLUG_OPERATOR(unique_values_cuda, unique_values_host, "unique_values(x: T[*s]) -> T[?]" SORTABLE,
                "The distinct elements in order." CUPLUG_DETERMINISTIC);
