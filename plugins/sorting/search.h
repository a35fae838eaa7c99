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

/* Whether element i of x is below a key, or, with is_right, not above it. */
ELEMENTS_INLINE int search_is_behind(const order *o, const void *x, int64_t i, uint64_t key,
                                     int is_right) {
  const uint64_t seen = search_key(o, x, i);
  return is_right ? seen <= key : seen < key;
}

/* How many of the m ascending elements of x are so, from `first` on, plus `first`: without jumps
 * that cannot be foreseen. */
ELEMENTS_INLINE int64_t search_from(const order *o, const void *x, int64_t first, int64_t m,
                                    uint64_t key, int is_right) {
  if (m <= 0) return first;
  for (int64_t half; m > 1; m -= half) {
    half = m / 2;
    first += half & -(int64_t)search_is_behind(o, x, first + half - 1, key, is_right);
  }
  return first + search_is_behind(o, x, first, key, is_right);
}

/* Of all m. */
ELEMENTS_INLINE int64_t search_in(const order *o, const void *x, int64_t m, uint64_t key,
                                  int is_right) {
  return search_from(o, x, 0, m, key, is_right);
}

#endif
