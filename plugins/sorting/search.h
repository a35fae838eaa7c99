/* SPDX-License-Identifier: Apache-2.0 */
/* What the host and the CUDA entries of searches share. */
#ifndef CUPLUG_PLUGINS_SORTING_SEARCH_H
#define CUPLUG_PLUGINS_SORTING_SEARCH_H

#include "order.h"

/* Element i of an array of the dtype as a key. */
ELEMENTS_INLINE uint64_t search_key(const order *o, const void *x, int64_t i) {
  switch (o->n_bytes) {
  case 1:
    return order_key(o, ((const uint8_t *)x)[i]);
  case 2:
    return order_key(o, ((const uint16_t *)x)[i]);
  case 4:
    return order_key(o, ((const uint32_t *)x)[i]);
  default:
    return order_key(o, ((const uint64_t *)x)[i]);
  }
}

/* How many of the m ascending elements of x are below a key, or, with is_right, not above it. */
ELEMENTS_INLINE int64_t search_in(const order *o, const void *x, int64_t m, uint64_t key,
                                  int is_right) {
  int64_t first = 0;
  while (m > 0) {
    const int64_t half = m / 2;
    const uint64_t seen = search_key(o, x, first + half);
    const int is_behind = is_right ? seen <= key : seen < key;
    first = is_behind ? first + half + 1 : first;
    m = is_behind ? m - half - 1 : half;
  }
  return first;
}

#endif
