/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the entries of select and nonzero: the elements other than 0. */
#ifndef CUPLUG_PLUGINS_SELECTION_FLAGS_H
#define CUPLUG_PLUGINS_SELECTION_FLAGS_H

#include "elements.h"
#include "vectors.h"

#include <string.h>

/* Elements of n_bytes are other than 0 if a bit of `mask` is set in one of their words. The signs
 * of floating numbers do not count. */
typedef struct flags_of {
  const void *data;
  int64_t n_bytes;
  uint64_t mask;
} flags_of;

static inline flags_of flags_of_tensor(const cuplug_tensor *x) {
  flags_of f = {x->data, cuplug_element_bytes(x), UINT64_MAX};
  const int bits = elements_are_complex(x) ? x->dtype.bits / 2 : x->dtype.bits;
  for (int k = bits - 1; k < 64 && !elements_are_whole(x); k += bits) f.mask &= ~((uint64_t)1 << k);
  return f;
}

ELEMENTS_INLINE int flag_at(const flags_of *f, int64_t i) {
  switch (f->n_bytes) {
  case 1:
    return (((const uint8_t *)f->data)[i] & (uint8_t)f->mask) != 0;
  case 2:
    return (((const uint16_t *)f->data)[i] & (uint16_t)f->mask) != 0;
  case 4:
    return (((const uint32_t *)f->data)[i] & (uint32_t)f->mask) != 0;
  case 8:
    return (((const uint64_t *)f->data)[i] & f->mask) != 0;
  default: {
    const uint64_t *x = (const uint64_t *)f->data + 2 * i;
    return ((x[0] | x[1]) & f->mask) != 0;
  }
  }
}

#ifndef __CUDACC__
/* Sets the flags of n elements from number `first` on, each 0 or 1, and returns the number of
 * ones. */
VECTORS static int64_t read_flags(const flags_of *f, int64_t first, int64_t n, uint8_t *flags) {
  const flags_of at = {(const char *)f->data + first * f->n_bytes, f->n_bytes, f->mask};
  switch (f->n_bytes) { /* in each branch, the width is a constant for the compiler */
  case 1:
    for (int64_t i = 0; i < n; i++) flags[i] = flag_at(&(flags_of){at.data, 1, at.mask}, i);
    break;
  case 2:
    for (int64_t i = 0; i < n; i++) flags[i] = flag_at(&(flags_of){at.data, 2, at.mask}, i);
    break;
  case 4:
    for (int64_t i = 0; i < n; i++) flags[i] = flag_at(&(flags_of){at.data, 4, at.mask}, i);
    break;
  default:
    for (int64_t i = 0; i < n; i++) flags[i] = flag_at(&at, i);
  }
  int64_t n_set = 0, i = 0;
  uint64_t eight;
  for (; i + 8 <= n; i += 8) {
    memcpy(&eight, flags + i, sizeof eight);
    n_set += __builtin_popcountll(eight);
  }
  for (; i < n; i++) n_set += flags[i];
  return n_set;
}
#endif

#endif
