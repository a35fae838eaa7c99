/* SPDX-License-Identifier: Apache-2.0 */
/* Signs of zeros and payloads of NaNs, which keys leave out: zeros are equal, and so are NaNs, so
 * that they come in the order in which the elements have them. */
#include "sorting/host/radix.h"

#include "vectors.h"

/* Where the first of n elements in order is whose key is no less. */
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
  /* Elements `low` to `high` in order have this key, and at least as many of x have. */           \
  static void fill_##width(const order *o, const T *x, int64_t step, T *out, int64_t low,          \
                           int64_t high, K key) {                                                  \
    for (int64_t j = 0; low < high; j++)                                                           \
      if (order_key##width(o, x[j * step]) == key) out[low++ * step] = x[j * step];                \
  }                                                                                                \
  static void restore_##width(const order *o, const T *x, int64_t step, int64_t n, T *out,         \
                              int64_t n_out) {                                                     \
    const K zero = order_key##width(o, 0), nan = order_key##width(o, (T)o->nan);                   \
    const T end = out[o->flip ? 0 : (n_out - 1) * step];                                           \
    const int64_t low = bound_##width(o, out, step, n_out, zero);                                  \
    if (low < n_out && order_key##width(o, out[low * step]) == zero &&                             \
        has_sign_##width(x, step, n, (T)o->sign))                                                  \
      fill_##width(o, x, step, out, low, bound_##width(o, out, step, n_out, (K)(zero + 1)), zero); \
    if (order_key##width(o, end) != nan) return;                                                   \
    if (o->flip)                                                                                   \
      fill_##width(o, x, step, out, 0, bound_##width(o, out, step, n_out, (K)(nan + 1)), nan);     \
    else                                                                                           \
      fill_##width(o, x, step, out, bound_##width(o, out, step, n_out, nan), n_out, nan);          \
  }

RESTORE_OF(uint16_t, uint16_t, 16)
RESTORE_OF(uint32_t, uint32_t, 32)
RESTORE_OF(uint64_t, uint64_t, 64)

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
