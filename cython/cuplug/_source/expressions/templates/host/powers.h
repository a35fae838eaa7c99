/* SPDX-License-Identifier: Apache-2.0 */
/* Powers in vectors of 64 bytes, for expressions that call pow, if the CPU has AVX-512 and gcc
 * compiles. powers_float.h and powers_double.h are included after this file and before code.h.
 * glibc's vector functions take 2.5 and 1.7 times as long.
 *
 * x to the power of y is 2 to the power of y * log2(x). With x = 2^k * z and a table of numbers c
 * near 1 / z, log2(x) = k - log2(c) + log2(1 + r), r = z * c - 1, each as a sum of two numbers:
 * after P. T. P. Tang, "Table-driven implementation of the logarithm function in IEEE
 * floating-point arithmetic", ACM Transactions on Mathematical Software 16 (1990). Each c is chosen
 * so that its logarithm is almost a number with few bits, after S. Gal's accurate tables.
 * Polynomials are minimax, from Remez's algorithm. The C library computes special cases one by one:
 * x that is negative, subnormal, infinite or NaN, and results near or outside of the limits of the
 * range. */
#include <math.h>
#include <stdint.h>

#if defined(__AVX512DQ__) && !defined(__clang__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_vfmaddps512_mask) && __has_builtin(__builtin_ia32_ucmpd512_mask)
#define CUPLUG_HAS_POWERS 1
#endif
#endif

/* Loops call a vector function by the name that libmvec's would have. */
#define CUPLUG_BESIDE(name) __asm__(name) __attribute__((used, noinline))

/* The vectors of a type of numbers, and operations on them. The builtins, whose last argument is
 * for all lanes, take bits of integers as `signed_bits`. */
#define CUPLUG_LANES(type, bits, signed_bits, mad_of, reach_of)                             \
  typedef type cuplug_lanes_##type __attribute__((vector_size(64)));                        \
  typedef bits cuplug_bits_##type __attribute__((vector_size(64)));                         \
  typedef signed_bits cuplug_signed_##type __attribute__((vector_size(64)));                \
  /* a number in each lane */                                                               \
  static inline cuplug_lanes_##type cuplug_all_##type(type x) {                             \
    return x - (cuplug_lanes_##type){0};                                                    \
  }                                                                                         \
  /* a * b + c, rounded once */                                                             \
  static inline cuplug_lanes_##type cuplug_mad_##type(                                      \
      cuplug_lanes_##type a, cuplug_lanes_##type b, cuplug_lanes_##type c) {                \
    return mad_of;                                                                          \
  }                                                                                         \
  /* a bit for each lane of x with x >= limit */                                            \
  static inline unsigned cuplug_reach_##type(cuplug_bits_##type x, bits limit) {            \
    const cuplug_signed_##type a = (cuplug_signed_##type)x;                                 \
    const cuplug_signed_##type b = (cuplug_signed_##type)(limit - (cuplug_bits_##type){0}); \
    return reach_of;                                                                        \
  }

/* Defines the functions that loops and scalars call, from cuplug_powers(x, y), a function of all
 * lanes. Unused lanes compute powers of 1. Also computes powers of some lanes by the C library. */
#define CUPLUG_POWER_CALLS(type, n_ymm, n_xmm, one_power)                                         \
  static cuplug_lanes_##type cuplug_powers_##type(cuplug_lanes_##type x, cuplug_lanes_##type y);  \
  CUPLUG_PART_OF_POWERS(type, d, n_ymm)                                                           \
  CUPLUG_PART_OF_POWERS(type, c, n_ymm)                                                           \
  CUPLUG_PART_OF_POWERS(type, b, n_xmm)                                                           \
  static type cuplug_power_##type##_(type x, type y) CUPLUG_BESIDE("cuplug_power_" #type);        \
  static type cuplug_power_##type##_(type x, type y) {                                            \
    return cuplug_powers_##type(cuplug_all_##type(x), cuplug_all_##type(y))[0];                   \
  }                                                                                               \
  __attribute__((simd("notinbranch"))) type cuplug_power_##type(type x, type y);                  \
  __attribute__((noinline, cold)) static cuplug_lanes_##type cuplug_one_by_one_##type(            \
      cuplug_lanes_##type powers, cuplug_lanes_##type x, cuplug_lanes_##type y, unsigned lanes) { \
    for (; lanes; lanes &= lanes - 1) {                                                           \
      const int k = __builtin_ctz(lanes);                                                         \
      powers[k] = one_power(x[k], y[k]);                                                          \
    }                                                                                             \
    return powers;                                                                                \
  }
#define CUPLUG_PART_OF_POWERS(type, isa, n)                                            \
  typedef type cuplug_##type##_##isa __attribute__((vector_size(n * sizeof(type))));   \
  static cuplug_##type##_##isa cuplug_powers_##type##_##isa(cuplug_##type##_##isa x,   \
                                                            cuplug_##type##_##isa y)   \
      CUPLUG_BESIDE("_ZGV" #isa "N" #n "vv_cuplug_power_" #type);                      \
  static cuplug_##type##_##isa cuplug_powers_##type##_##isa(cuplug_##type##_##isa x,   \
                                                            cuplug_##type##_##isa y) { \
    union {                                                                            \
      cuplug_lanes_##type all;                                                         \
      cuplug_##type##_##isa part;                                                      \
    } a = {.all = cuplug_all_##type(1)}, b = a;                                        \
    a.part = x, b.part = y;                                                            \
    a.all = cuplug_powers_##type(a.all, b.all);                                        \
    return a.part;                                                                     \
  }
