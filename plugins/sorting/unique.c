/* SPDX-License-Identifier: Apache-2.0 */
/* unique(x): the elements that differ, in order, as the Python array API standard's unique_all.
 *   x T[*s]; values T[?]; indices int64[?]: where each stands first; inverse_indices int64[*s]:
 * which of the values each element of x is; counts int64[?]: how often each is there
 * unique_values(x): the values alone, zeros without their sign, NaNs without what they carry.
 *
 * Zeros are equal, NaNs are not: each stands for itself. T: bool, integers, floating dtypes. */
#include "sorting/radix.h"

CUPLUG_ENTRY int unique_cuda(const cuplug_call *call);
CUPLUG_ENTRY int unique_values_cuda(const cuplug_call *call);

static uint64_t key_at(const sorting *s, int64_t i) {
  return s->n_bytes == 8 ? ((const uint64_t *)s->keys)[i] : ((const uint32_t *)s->keys)[i];
}

/* Is sorted key number i another than the one before it? */
static int is_first(const sorting *s, const order *o, int64_t i) {
  const uint64_t key = key_at(s, i);
  return i == 0 || key != key_at(s, i - 1) || order_is_nan(o, key);
}

/* Sorts x, and counts the keys that differ. */
static int sort_all(const cuplug_call *call, sorting *s, const order *o, int has_index,
                    int64_t *n_found) {
  const cuplug_tensor *x = &call->tensors[0];
  const elements_axis all = {1, cuplug_n_elements(x), 1};
  int status = sorting_begin(s, call, o->n_bytes, 1, all.m, has_index, NULL);
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

CUPLUG_ENTRY int unique_values_host(const cuplug_call *call) {
  const order o = order_of(&call->tensors[0], 0);
  sorting s;
  int64_t n_found;
  int status = sort_all(call, &s, &o, 0, &n_found);
  if (!status) status = cuplug_output(call, 1, &n_found);
  if (status) return status;
  for (int64_t i = 0, at = 0; i < s.m; i++)
    if (is_first(&s, &o, i))
      write_number(&o, call->outputs[0].data, at++, order_bits(&o, key_at(&s, i)));
  return CUPLUG_OK;
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
  return CUPLUG_OK;
}

#define SORTABLE " where T: bool | integer | floating"

CUPLUG_OPERATOR(unique_cuda, unique_host,
                "unique(x: T[*s]) -> (values: T[?], indices: int64[?], inverse_indices: int64[*s], "
                "counts: int64[?])" SORTABLE,
                "The elements that differ, in order; where each is first, which of them each "
                "element is, and how often each is there." CUPLUG_DETERMINISTIC);
CUPLUG_OPERATOR(unique_values_cuda, unique_values_host, "unique_values(x: T[*s]) -> T[?]" SORTABLE,
                "The elements that differ, in order." CUPLUG_DETERMINISTIC);
