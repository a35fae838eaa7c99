/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the host and CUDA entries of this plugin: the element that an index selects. */
#ifndef CUPLUG_PLUGINS_SCATTER_PLACES_H
#define CUPLUG_PLUGINS_SCATTER_PLACES_H

#include "elements.h"

/* Indices along an axis of x. Element number e of the values belongs to index number e or, with
 * rows, to number e / width. */
typedef struct places {
  const void *indices;
  elements_axis x;
  int64_t n_along, n; /* number of values along the axis, and in total */
  uint32_t type;
  int has_rows;
} places;

/* With has_rows, `indices` has one dimension, along the rows of x. */
static inline places places_of(const cuplug_tensor *indices, const cuplug_tensor *x, int64_t axis,
                               int has_rows) {
  places p = {
      indices->data, elements_around(x, axis), 0, cuplug_n_elements(indices), cuplug_type(indices),
      has_rows};
  p.n_along = has_rows ? p.n : elements_around(indices, axis).m;
  if (has_rows) p.n *= p.x.width;
  return p;
}

ELEMENTS_INLINE int64_t places_index(const places *p, int64_t i) {
  return p->type == CUPLUG_INT32 ? ((const int32_t *)p->indices)[i]
                                 : ((const int64_t *)p->indices)[i];
}

/* The number of the index for value e. */
ELEMENTS_INLINE int64_t places_number(const places *p, int64_t e) {
  return p->has_rows ? e / p->x.width : e;
}

#endif
