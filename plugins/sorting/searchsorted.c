/* SPDX-License-Identifier: Apache-2.0 */
/* searchsorted(x, values, side): where values would be inserted into x so that it stays sorted.
 *   x T[m], ascending; values T[*n]; out int64[*n]: the number of elements of x below each value
 *   or, with side "right", not above it
 * NaN is larger than all numbers. T: bool, integers, floating dtypes. Bytes moved: values and out
 * once, and log2(m) elements of x for each. */
#include "sorting/host/radix.h"
#include "sorting/search.h"

#include <string.h>

CUPLUG_ENTRY int searchsorted_cuda(const cuplug_call *call);

#define LEAST (1 << 12) /* elements to search that are worth a thread */
#define MANY (1 << 9)   /* bytes from which searching each possible value saves time */

typedef struct job {
  order order;
  const void *x, *values;
  int64_t m, *out;
  int is_right;
  const int64_t *of_bytes; /* the position of each */
} job;

#define NEAR 16    /* elements that are compared first */
#define AT_ONCE 16 /* concurrent searches, because each step waits for the one before */

/* is_near: whether a value is found near the one before, as it is if values also ascend.
 * search_some: values i to i + AT_ONCE. Returns the position of the last one. */
#define SEARCHES(width)                                                                            \
  ELEMENTS_INLINE int is_near##width(const order *o, const job *j, int64_t at,                     \
                                     uint##width##_t key) {                                        \
    if (at + NEAR > j->m) return 0;                                                                \
    const int ends = search_is_behind##width(o, j->x, at + NEAR - 1, key, j->is_right) == 0;       \
    return ends & ((at == 0) | search_is_behind##width(o, j->x, at - (at > 0), key, j->is_right)); \
  }                                                                                                \
  ELEMENTS_INLINE int64_t search_one##width(const order *o, const job *j, int64_t at,              \
                                            uint##width##_t key) {                                 \
    if (is_near##width(o, j, at, key))                                                             \
      return search_from##width(o, j->x, at, NEAR, key, j->is_right);                              \
    return search_in##width(o, j->x, j->m, key, j->is_right);                                      \
  }                                                                                                \
  ELEMENTS_INLINE int64_t search_some##width(const order *o, const job *j, int64_t i) {            \
    uint##width##_t keys[AT_ONCE];                                                                 \
    int64_t first[AT_ONCE] = {0}, m = j->m;                                                        \
    for (int k = 0; k < AT_ONCE; k++) keys[k] = search_key##width(o, j->values, i + k);            \
    for (int64_t half; m > 1; m -= half) {                                                         \
      half = m / 2;                                                                                \
      for (int k = 0; k < AT_ONCE; k++)                                                            \
        first[k] += half & -(int64_t)search_is_behind##width(o, j->x, first[k] + half - 1,         \
                                                             keys[k], j->is_right);                \
    }                                                                                              \
    for (int k = 0; k < AT_ONCE; k++)                                                              \
      j->out[i + k] = first[k] +=                                                                  \
          search_is_behind##width(o, j->x, first[k], keys[k], j->is_right);                        \
    return first[AT_ONCE - 1];                                                                     \
  }
SEARCHES(32)
SEARCHES(64)

/* The same for values that are compared without keys, which takes a third of the instructions: NaN
 * in x is neither below nor equal to any of them. If a value is NaN, keys are compared. */
#define SEARCHES_OF(T, width)                                                                 \
  ELEMENTS_INLINE int64_t search_##T(const order *o, const job *j, int64_t i, int is_right) { \
    const T *x = j->x;                                                                        \
    T values[AT_ONCE];                                                                        \
    int64_t first[AT_ONCE] = {0}, m = j->m;                                                   \
    int has_nan = 0;                                                                          \
    memcpy(values, (const T *)j->values + i, sizeof values);                                  \
    for (int k = 0; k < AT_ONCE; k++) has_nan |= values[k] != values[k];                      \
    if (has_nan) return search_some##width(o, j, i);                                          \
    for (int64_t half; m > 1; m -= half) {                                                    \
      half = m / 2;                                                                           \
      for (int k = 0; k < AT_ONCE; k++)                                                       \
        first[k] += half & -(int64_t)IS_BEHIND(x[first[k] + half - 1], values[k]);            \
    }                                                                                         \
    for (int k = 0; k < AT_ONCE; k++)                                                         \
      j->out[i + k] = first[k] += IS_BEHIND(x[first[k]], values[k]);                          \
    return first[AT_ONCE - 1];                                                                \
  }                                                                                           \
  ELEMENTS_INLINE int64_t search_some_##T(const order *o, const job *j, int64_t i) {          \
    if (!o->infinity) return search_some##width(o, j, i);                                     \
    return j->is_right ? search_##T(o, j, i, 1) : search_##T(o, j, i, 0);                     \
  }
#define IS_BEHIND(seen, value) (is_right ? (seen) <= (value) : (seen) < (value))
SEARCHES_OF(float, 32)
SEARCHES_OF(double, 64)

/* In each branch, the width is a constant for the compiler. */
#define SEARCH(bytes, width, some)                                         \
  {                                                                        \
    order o = j->order;                                                    \
    o.n_bytes = bytes;                                                     \
    for (int64_t i = begin, at = 0; i < end;) {                            \
      const uint##width##_t key = search_key##width(&o, j->values, i);     \
      if (j->m && end - i >= AT_ONCE && !is_near##width(&o, j, at, key)) { \
        at = some(&o, j, i);                                               \
        i += AT_ONCE;                                                      \
      } else {                                                             \
        at = j->out[i++] = search_one##width(&o, j, at, key);              \
      }                                                                    \
    }                                                                      \
    break;                                                                 \
  }

static int search(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  switch (j->order.n_bytes) {
  case 1:
    SEARCH(1, 32, search_some32)
  case 2:
    SEARCH(2, 32, search_some32)
  case 4:
    SEARCH(4, 32, search_some_float)
  default:
    SEARCH(8, 64, search_some_double)
  }
  return CUPLUG_OK;
}

static int64_t steps(int64_t m) { return m ? 64 - __builtin_clzll((uint64_t)m) : 1; }

static int look_up(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  const uint8_t *values = j->values;
  for (int64_t i = begin; i < end; i++) j->out[i] = j->of_bytes[values[i]];
  return CUPLUG_OK;
}

/* Many bytes: each possible value is searched once. */
static int search_bytes(const cuplug_call *call, const job *given, int64_t n) {
  uint8_t values[256];
  int64_t found[256];
  job j = *given;
  for (int d = 0; d < 256; d++) values[d] = (uint8_t)d;
  j.values = values, j.out = found;
  search(&j, 0, 256);
  j.values = given->values, j.out = given->out, j.of_bytes = found;
  return cuplug_parallel(call, n, LEAST, look_up, &j);
}

/* The keys of an array instead of its elements, in the order of unsigned integers. */
static int read_keys(const cuplug_call *call, const cuplug_tensor *x, const order *o,
                     const void **keys) {
  const elements_axis all = {1, cuplug_n_elements(x), 1};
  sorting s;
  int status = sorting_begin(&s, call, o->n_bytes, 1, all.m, SORTING_ALONE, NULL);
  if (!status) status = sorting_load(&s, x, &all, o);
  *keys = s.keys;
  return status;
}

CUPLUG_ENTRY int searchsorted_host(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0], *values = &call->tensors[1];
  const int64_t n = cuplug_n_elements(values);
  const order o = order_of(x, 0);
  job j = {.order = o, .x = x->data, .values = values->data, .m = x->shape[0]};
  j.out = call->outputs[0].data;
  j.is_right = call->scalars[0].i != 0;
  if (o.n_bytes == 1 && n >= MANY) return search_bytes(call, &j, n);
  if (o.n_bytes == 2 && o.infinity && n >= j.m) {
    int status = read_keys(call, x, &o, &j.x);
    if (!status) status = read_keys(call, values, &o, &j.values);
    if (status) return status;
    j.order = (order){.all = o.all, .n_bytes = 2};
  }
  return cuplug_parallel(call, n, LEAST / steps(j.m), search, &j);
}

CUPLUG_OPERATOR(searchsorted_cuda, searchsorted_host,
                "searchsorted(x: T[m], values: T[*n], side: \"left\" | \"right\" = \"left\") -> "
                "int64[*n] where T: bool | integer | floating",
                "The positions at which values would be inserted into the ascending array "
                "x." CUPLUG_DETERMINISTIC CUPLUG_INDEPENDENT(n));
