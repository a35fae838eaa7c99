/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as unsigned keys of the same order. Sorts and searches then need code only for the widths
 * of keys, not for each dtype. NaN is larger than all numbers. For host and CUDA entries. */
#ifndef CUPLUG_PLUGINS_SORT_KEYS_H
#define CUPLUG_PLUGINS_SORT_KEYS_H

#include "elements.h"

/* Bit masks of a dtype: all bits, the sign (0 without one), for floating dtypes infinity and NaN.
 * `truth` is 1 for bools, for which every byte except 0 is true. Keys are inverted by `flip`.
 * `zero` has the bits that keys of zeros preserve. */
typedef struct order {
  uint64_t all, sign, infinity, nan, truth, flip;
  int64_t n_bytes;
  uint64_t zero;
} order;

static inline order order_of(const cuplug_tensor *x, int is_descending) {
  const int bits = x->dtype.bits, mantissa = bits == 64                          ? 52
                                             : bits == 32                        ? 23
                                             : cuplug_type(x) == CUPLUG_BFLOAT16 ? 7
                                                                                 : 10;
  order o = {UINT64_MAX >> (64 - bits), 0, 0, 0, 0, 0, bits / 8, 0};
  if (x->dtype.code != 1 && cuplug_type(x) != CUPLUG_BOOL) o.sign = (uint64_t)1 << (bits - 1);
  if (!elements_are_whole(x)) {
    o.infinity = o.sign - ((uint64_t)1 << mantissa);
    o.nan = o.infinity + ((uint64_t)1 << (mantissa - 1));
  }
  o.truth = cuplug_type(x) == CUPLUG_BOOL;
  o.flip = is_descending ? o.all : 0;
  return o;
}

/* The order in which -0.0 is next to 0.0, before it unless keys are inverted. */
ELEMENTS_INLINE order order_with_signs(order o) {
  o.zero = o.infinity ? o.sign : 0;
  return o;
}

/* K order_key<width>(o, bits): keys of equal numbers are equal, including zeros and NaNs. K
 * order_bits<width>(o, key): the number of a key. Zeros have lost their sign, and NaNs their
 * payload. With 32 bits, twice as many are computed at once as with 64. */
#define ORDER_OF_WIDTH(K, width)                                             \
  ELEMENTS_INLINE K order_key##width(const order *o, K bits) {               \
    const K all = (K)o->all, sign = (K)o->sign, infinity = (K)o->infinity;   \
    if (infinity) {                                                          \
      const K size = bits & (K)~sign;                                        \
      bits = size > infinity ? (K)o->nan : size ? bits : bits & (K)o->zero;  \
      bits ^= bits & sign ? all : sign;                                      \
    } else {                                                                 \
      bits = (K)o->truth && bits ? 1 : bits;                                 \
      bits ^= sign;                                                          \
    }                                                                        \
    return bits ^ (K)o->flip;                                                \
  }                                                                          \
  ELEMENTS_INLINE K order_bits##width(const order *o, K key) {               \
    key ^= (K)o->flip;                                                       \
    return key ^ (K)(o->infinity && !(key & (K)o->sign) ? o->all : o->sign); \
  }
ORDER_OF_WIDTH(uint32_t, 32)
ORDER_OF_WIDTH(uint64_t, 64)

ELEMENTS_INLINE uint64_t order_key(const order *o, uint64_t bits) { return order_key64(o, bits); }
ELEMENTS_INLINE uint64_t order_bits(const order *o, uint64_t key) { return order_bits64(o, key); }

ELEMENTS_INLINE int order_is_nan(const order *o, uint64_t key) {
  return o->infinity && (key ^ o->flip) == (o->nan ^ o->sign);
}

#endif
