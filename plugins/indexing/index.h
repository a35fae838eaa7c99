/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the host and CUDA entries of index and related operators: positions along several axes,
 * which become row numbers. */
#ifndef CUPLUG_PLUGINS_INDEXING_INDEX_H
#define CUPLUG_PLUGINS_INDEXING_INDEX_H

#include "indexing/positions.h"

#define INDEX_MOST 64 /* axes, the maximum for arrays */

/* n positions along each of the first n_axes axes of x. A position counts `steps` rows of `width`
 * elements. */
typedef struct index_axes {
  const void *indices[INDEX_MOST];
  int64_t sizes[INDEX_MOST], steps[INDEX_MOST];
  int64_t n, n_rows, width;
  int32_t n_axes;
  uint32_t type, first; /* number of the first one in call->tensors */
} index_axes;

/* The signature bounds the number of lists. `values` are written to x or read from it. One value
 * may be for all positions. Fails if the number of values differs from the number of positions and
 * rows. */
static inline int index_axes_of(const cuplug_call *call, const cuplug_tensor *x,
                                const cuplug_tensor *values, int is_one_for_all, index_axes *a) {
  const cuplug_items *list = &call->scalars[0].list;
  const cuplug_tensor *indices = (const cuplug_tensor *)list->items;
  int64_t n_values;
  a->n_axes = (int32_t)list->n;
  a->first = (uint32_t)(call->outputs - call->tensors - list->n);
  a->n = cuplug_n_elements(indices);
  a->type = cuplug_type(indices);
  uint64_t n_rows = 1, width = 1; /* unsigned: the product may be any number for an empty array */
  for (int32_t k = x->ndim - 1; k >= a->n_axes; k--) width *= (uint64_t)x->shape[k];
  for (int32_t k = a->n_axes - 1; k >= 0; k--) {
    a->indices[k] = indices[k].data;
    a->sizes[k] = x->shape[k];
    a->steps[k] = (int64_t)n_rows;
    n_rows *= (uint64_t)a->sizes[k];
  }
  a->n_rows = (int64_t)n_rows;
  a->width = (int64_t)width;
  const int64_t n_seen = cuplug_n_elements(values);
  const int is_counted = !__builtin_mul_overflow(a->n, a->width, &n_values);
  if (is_counted && (n_seen == n_values || (n_seen == 1 && is_one_for_all))) return CUPLUG_OK;
  return cuplug_failf(call, CUPLUG_ERROR_VALUE,
                      "values: got %lld elements, expected %lld for each of %lld positions",
                      (long long)n_seen, (long long)a->width, (long long)a->n);
}

/* The positions of values whose rows of x have these numbers, of a dtype. */
static inline places index_places(const index_axes *a, const void *numbers, uint32_t type) {
  places p = {numbers, {1, a->n_rows, a->width}, a->n, a->n * a->width, type, 1};
  p.has_rows = a->width != 1; /* rows of one element are one line */
  return p;
}

#endif
