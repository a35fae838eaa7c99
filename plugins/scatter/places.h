/* SPDX-License-Identifier: Apache-2.0 */
/* What the host and the CUDA entries of this plugin share: which element an index means. */
#ifndef CUPLUG_PLUGINS_SCATTER_PLACES_H
#define CUPLUG_PLUGINS_SCATTER_PLACES_H

#include "elements.h"

/* Indices along an axis of x. Element number e of the values goes with index number e, or, with
 * rows, with number e / width. */
typedef struct places {
  const void *indices;
  elements_axis x;
  int64_t n_along, n; /* values along the axis, and in all */
  uint32_t type;
  int has_rows;
} places;

/* With has_rows: `indices` has one dimension, that of the rows of x. */
static inline places places_of(const cuplug_tensor *indices, const cuplug_tensor *x, int64_t axis,
                               int has_rows) {
  places p = {
      indices->data, elements_around(x, axis), 0, cuplug_n_elements(indices), cuplug_type(indices),
      has_rows};
  p.n_along = has_rows ? p.n : elements_around(indices, axis).m;
  if (has_rows) p.n *= p.x.width;
  return p;
}

/* What no int64 holds becomes an index that is out of bounds, too. */
ELEMENTS_INLINE int64_t places_index(const places *p, int64_t i) {
  switch (p->type) {
  case CUPLUG_INT8:
    return ((const int8_t *)p->indices)[i];
  case CUPLUG_INT16:
    return ((const int16_t *)p->indices)[i];
  case CUPLUG_INT32:
    return ((const int32_t *)p->indices)[i];
  case CUPLUG_UINT8:
    return ((const uint8_t *)p->indices)[i];
  case CUPLUG_UINT16:
    return ((const uint16_t *)p->indices)[i];
  case CUPLUG_UINT32:
    return ((const uint32_t *)p->indices)[i];
  case CUPLUG_UINT64: {
    const uint64_t u = ((const uint64_t *)p->indices)[i];
    return u <= INT64_MAX ? (int64_t)u : INT64_MAX;
  }
  default:
    return ((const int64_t *)p->indices)[i];
  }
}

/* The number of the index that goes with value e, and the element of x that it means, or -1. */
ELEMENTS_INLINE int64_t places_number(const places *p, int64_t e) {
  return p->has_rows ? e / p->x.width : e;
}
ELEMENTS_INLINE int64_t places_at(const places *p, int64_t e) {
  const int64_t outer = e / (p->n_along * p->x.width);
  const int64_t column = p->x.width == 1 ? 0 : e % p->x.width;
  int64_t index = places_index(p, places_number(p, e));
  index += index < 0 ? p->x.m : 0;
  if ((uint64_t)index >= (uint64_t)p->x.m) return -1;
  return (outer * p->x.m + index) * p->x.width + column;
}

#endif
