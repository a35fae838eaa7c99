/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the host and CUDA entries of searches. */
#ifndef CUPLUG_PLUGINS_SORTING_SEARCH_H
#define CUPLUG_PLUGINS_SORTING_SEARCH_H

#include "sort_keys.h"

/* For keys of 32 bits, which represent dtypes of up to 4 bytes, and for keys of 64 bits:
 *
 * search_key: element i of an array of the dtype as a key.
 * search_is_behind: whether element i of x is below a key, or, with is_right, not above it.
 * search_from: how many of the m ascending elements of x are so, from `first` on, plus `first`:
 *   without jumps that cannot be foreseen.
 * search_in: of all m.
 *
 * Numbers of elements are of type I: on a GPU 32 bits take half the instructions. */
#define SEARCH_OF_WIDTH(name, K, width, I)                                                     \
  ELEMENTS_INLINE K search_key##name(const order *o, const void *x, int64_t i) {               \
    switch (o->n_bytes) {                                                                      \
    case 1:                                                                                    \
      return order_key##width(o, ((const uint8_t *)x)[i]);                                     \
    case 2:                                                                                    \
      return order_key##width(o, ((const uint16_t *)x)[i]);                                    \
    case 4:                                                                                    \
      return order_key##width(o, ((const uint32_t *)x)[i]);                                    \
    default:                                                                                   \
      return order_key##width(o, (K)((const uint64_t *)x)[i]);                                 \
    }                                                                                          \
  }                                                                                            \
  ELEMENTS_INLINE int search_is_behind##name(const order *o, const void *x, I i, K key,        \
                                             int is_right) {                                   \
    const K seen = search_key##name(o, x, i);                                                  \
    return is_right ? seen <= key : seen < key;                                                \
  }                                                                                            \
  ELEMENTS_INLINE I search_from##name(const order *o, const void *x, I first, I m, K key,      \
                                      int is_right) {                                          \
    if (m <= 0) return first;                                                                  \
    for (I half; m > 1; m -= half) {                                                           \
      half = m / 2;                                                                            \
      first += half & -(I)search_is_behind##name(o, x, first + half - 1, key, is_right);       \
    }                                                                                          \
    return first + search_is_behind##name(o, x, first, key, is_right);                         \
  }                                                                                            \
  ELEMENTS_INLINE I search_in##name(const order *o, const void *x, I m, K key, int is_right) { \
    return search_from##name(o, x, 0, m, key, is_right);                                       \
  }
SEARCH_OF_WIDTH(32, uint32_t, 32, int64_t)
SEARCH_OF_WIDTH(64, uint64_t, 64, int64_t)
#ifdef __CUDACC__
SEARCH_OF_WIDTH(32_few, uint32_t, 32, int32_t)
SEARCH_OF_WIDTH(64_few, uint64_t, 64, int32_t)
#endif

#endif
