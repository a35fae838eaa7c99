/* SPDX-License-Identifier: Apache-2.0 */
/* Signs of zeros and payloads of NaNs, which keys omit. Zeros are equal, and so are NaNs, so they
 * are output in the order of the elements. */
#include "sorting/host/radix.h"

#include "vectors.h"

/* The first of n sorted elements whose key is not smaller. */
#define RESTORE_OF(T, K, width)                                                                    \
  static int64_t bound_##width(const order *o, const T *out, int64_t step, int64_t n, K key) {     \
    int64_t low = 0, high = n;                                                                     \
    while (low < high) {                                                                           \
      const int64_t middle = low + (high - low) / 2;                                               \
      if (order_key##width(o, out[middle * step]) < key)                                           \
        low = middle + 1;                                                                          \
      else                                                                                         \
        high = middle;                                                                             \
    }                                                                                              \
    return low;                                                                                    \
  }                                                                                                \
  VECTORS static int has_sign_##width(const T *x, int64_t step, int64_t n, T negative_zero) {      \
    int found = 0;                                                                                 \
    if (step == 1)                                                                                 \
      for (int64_t j = 0; j < n; j++) found |= x[j] == negative_zero;                              \
    else                                                                                           \
      for (int64_t j = 0; j < n; j++) found |= x[j * step] == negative_zero;                       \
    return found;                                                                                  \
  }                                                                                                \
  VECTORS static int has_any_##width(const order *o, const T *x, int64_t n) {                      \
    const T sign = (T)o->sign, infinity = (T)o->infinity;                                          \
    int found = 0;                                                                                 \
    for (int64_t j = 0; j < n; j++) found |= (x[j] == sign) | ((T)(x[j] & (T)~sign) > infinity);   \
    return found;                                                                                  \
  }                                                                                                \
  /* Elements `low` to `high` in order have sizes from `first` to `last`, as the same number of    \
   * the n of x, if no other thread changes x meanwhile. No jump depends on whether one has: each  \
   * is written until the next one is. */                                                          \
  static void fill_##width(const T *x, int64_t step, int64_t n, T *out, int64_t low, int64_t high, \
                           T first, T last) {                                                      \
    const T all = (T)((T) ~(T)0 >> 1), range = (T)(last - first);                                  \
    for (int64_t j = 0; j < n && low < high; j++) {                                                \
      const T bits = x[j * step];                                                                  \
      out[low * step] = bits;                                                                      \
      low += (T)((T)(bits & all) - first) <= range;                                                \
    }                                                                                              \
  }                                                                                                \
  static void restore_##width(const order *o, const T *x, int64_t step, int64_t n, T *out,         \
                              int64_t n_out) {                                                     \
    const K zero = order_key##width(o, 0), nan = order_key##width(o, (T)o->nan);                   \
    const T end = out[o->flip ? 0 : (n_out - 1) * step];                                           \
    int64_t low = bound_##width(o, out, step, n_out, zero), high;                                  \
    if (low < n_out && order_key##width(o, out[low * step]) == zero &&                             \
        has_sign_##width(x, step, n, (T)o->sign)) {                                                \
      high = bound_##width(o, out, step, n_out, (K)(zero + 1));                                    \
      fill_##width(x, step, n, out, low, high, 0, 0);                                              \
    }                                                                                              \
    if (order_key##width(o, end) != nan) return;                                                   \
    low = o->flip ? 0 : bound_##width(o, out, step, n_out, nan);                                   \
    high = o->flip ? bound_##width(o, out, step, n_out, (K)(nan + 1)) : n_out;                     \
    fill_##width(x, step, n, out, low, high, (T)(o->infinity + 1), (T)(o->sign - 1));              \
  }

RESTORE_OF(uint16_t, uint16_t, 16)
RESTORE_OF(uint32_t, uint32_t, 32)
RESTORE_OF(uint64_t, uint64_t, 64)

int sorting_has_unequal(const order *o, const void *x, int64_t n) {
  if (!o->infinity) return 0;
  if (o->n_bytes == 2) return has_any_16(o, x, n);
  return o->n_bytes == 4 ? has_any_32(o, x, n) : has_any_64(o, x, n);
}

void sorting_restore(const order *o, const void *x, int64_t step, int64_t n, void *out,
                     int64_t n_out) {
  if (!o->infinity || n_out == 0) return;
  if (o->n_bytes == 2)
    restore_16(o, x, step, n, out, n_out);
  else if (o->n_bytes == 4)
    restore_32(o, x, step, n, out, n_out);
  else
    restore_64(o, x, step, n, out, n_out);
}
