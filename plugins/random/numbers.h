/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers from random bits, identical bit by bit on the host and in CUDA: + - * / sqrt and fma
 * round in the same way everywhere, and no product is next to a sum with which a compiler might
 * fuse it. */
#ifndef CUPLUG_PLUGINS_RANDOM_NUMBERS_H
#define CUPLUG_PLUGINS_RANDOM_NUMBERS_H

#include <math.h>
#include <string.h>

#include "philox.h"
#include "random/quantile.h"

/* How bits are used: at + by * number for floats; low and the n - 1 integers above it. */
typedef struct random_range {
  double at, by;
  uint64_t low, n; /* n = 0: 2^64 integers */
} random_range;

RANDOM_INLINE float random_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
RANDOM_INLINE uint32_t random_float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
RANDOM_INLINE double random_double(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
RANDOM_INLINE uint64_t random_double_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* ---- Uniform --------------------------------------------------------------------------------- */

/* In [0, 1): a multiple of 2^-24 or 2^-53. The latter is computed as 1 <= x < 2 with 52 of the
 * bits, and one additional bit, since not all vector units convert 64-bit integers. */
RANDOM_INLINE float random_unit32(uint32_t bits) {
  return (float)(int32_t)(bits >> 8) * (1.0f / 16777216.0f);
}
RANDOM_INLINE double random_unit64(uint64_t bits) {
  const double most = random_double(bits >> 12 | (uint64_t)1023 << 52) - 1.0;
  return most + random_double(-(bits >> 11 & 1) & (uint64_t)(1023 - 53) << 52);
}

RANDOM_INLINE float random_uniform32(uint32_t bits, float low, float span) {
  return fmaf(random_unit32(bits), span, low);
}
RANDOM_INLINE double random_uniform64(uint64_t bits, double low, double span) {
  return fma(random_unit64(bits), span, low);
}

/* bits & kept | set, in one instruction. nvcc would emit two. */
RANDOM_INLINE uint32_t random_masked(uint32_t bits, uint32_t kept, uint32_t set) {
#ifdef __CUDA_ARCH__
  uint32_t masked;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(masked) : "r"(bits), "r"(kept), "r"(set));
  return masked;
#else
  return (bits & kept) | set;
#endif
}

/* ---- Normal, float32 ------------------------------------------------------------------------- */

/* The quantile function at t = v / 2^31 for an odd v of 31 bits, with one bit for the sign. The
 * table is quantile_table, or a copy. */
RANDOM_INLINE float random_normal32(uint32_t bits, const float (*table)[QUANTILE_ROWS]) {
  const uint32_t t = random_float_bits((float)(int32_t)random_masked(bits, 0x7fffffff, 1));
  const uint32_t row = (t >> 21) - 4 * 127;
  const float f = 2.0f - random_float(random_masked(t, 0x7fffff, 0x3f800000));
  float x = table[4][row];
  x = fmaf(x, f, table[3][row]);
  x = fmaf(x, f, table[2][row]);
  x = fmaf(x, f, table[1][row]);
  x = fmaf(x, f, table[0][row]);
  return random_float(random_float_bits(x) ^ (bits & 0x80000000u));
}

/* ---- Normal, float64 ------------------------------------------------------------------------- */

/* For 0 < x < 1: x = m 2^e with m near 1; log(m) = 2 (s + s^3/3 + s^5/5 ...), s = (m - 1)/(m + 1).
 */
RANDOM_INLINE double random_log(double x) {
  const uint64_t bits = random_double_bits(x);
  const double whole = random_double((bits & 0xFFFFFFFFFFFFFull) | (uint64_t)1023 << 52);
  const int is_large = whole > 1.4142135623730951;
  const double m = is_large ? whole * 0.5 : whole;
  /* The exponent, from the last bits of 2^52 + exponent. */
  const uint64_t exponent = (bits >> 52) + (uint64_t)is_large;
  const double e = random_double(exponent | (uint64_t)(1023 + 52) << 52) - (0x1p52 + 1023.0);
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double sum = 1.0 / 23.0;
  RANDOM_UNROLL
  for (int k = 21; k > 0; k -= 2) sum = fma(sum, z, 1.0 / k);
  return fma(e, 0.6931471805599453, 2.0 * (s * sum));
}

/* The quotient of two polynomials with the coefficients of x^0 to x^7. */
RANDOM_INLINE double random_ratio(const double (*c)[8], double x) {
  double above = c[0][7], below = c[1][7];
  RANDOM_UNROLL
  for (int k = 6; k >= 0; k--) {
    above = fma(above, x, c[0][k]);
    below = fma(below, x, c[1][k]);
  }
  return above / below;
}

/* The quantile function at p, with 52 random bits for 0 < p < 1/2 and one for the sign. M. J.
 * Wichura: Algorithm AS 241, Applied Statistics 37 (1988), to 1e-16. */
RANDOM_INLINE double random_normal64(uint64_t bits) {
  const double middle[2][8] = {
      {3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3,
       1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
       3.3430575583588128105e+4, 2.5090809287301226727e+3},
      {1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
       2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4,
       5.2264952788528545610e+3}};
  const double near[2][8] = {
      {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
       3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
       2.27238449892691845833e-2, 7.74545014278341407640e-4},
      {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
       1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
       1.05075007164441684324e-9}};
  const double far[2][8] = {
      {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
       2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
       2.71155556874348757815e-5, 2.01033439929228813265e-7},
      {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
       7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
       2.04426310338993978564e-15}};
  /* (52 bits + 1/2) / 2^53, computed as 1 <= x < 2 with these bits. */
  const double p = fma(random_double(bits >> 12 | (uint64_t)1023 << 52), 0.5, 0x1p-54 - 0.5);
  const double q = 0.5 - p;
  double x;
  if (q <= 0.425) {
    x = q * random_ratio(middle, fma(-q, q, 0.180625));
  } else {
    const double r = sqrt(-random_log(p));
    x = r <= 5.0 ? random_ratio(near, r - 1.6) : random_ratio(far, r - 5.0);
  }
  return random_double(random_double_bits(x) ^ ~bits << 63);
}

/* ---- Exponential, lognormal ------------------------------------------------------------------ */

/* The quantile function at (52 bits + 1/2) / 2^52, and at (bits + 1/2) / 2^32 up to an error of
 * 2^-53. */
RANDOM_INLINE double random_exponential64(uint64_t bits) {
  return -random_log(random_double(bits >> 12 | (uint64_t)1023 << 52) - (1.0 - 0x1p-53));
}
RANDOM_INLINE double random_exponential32(uint32_t bits) {
  return random_exponential64((uint64_t)bits << 32 | (uint64_t)1 << 31);
}

/* For finite x: x = k log(2) + r, exp(r) as its series; 2^k as a product of two factors that are
 * normal numbers. The error is one rounding. */
RANDOM_INLINE double random_exp(double x) {
  const double inverse[14] = {1.0, /* inverses of factorials */
                              1.0,
                              1.0 / 2,
                              1.0 / 6,
                              1.0 / 24,
                              1.0 / 120,
                              1.0 / 720,
                              1.0 / 5040,
                              1.0 / 40320,
                              1.0 / 362880,
                              1.0 / 3628800,
                              1.0 / 39916800,
                              1.0 / 479001600,
                              1.0 / 6227020800.0};
  const double above = x < -746.0 ? -746.0 : x, within = above > 710.0 ? 710.0 : above;
  /* k from the last bits of 1.5 * 2^52 + k. */
  const double whole = fma(within, 1.4426950408889634, 0x1.8p52), k = whole - 0x1.8p52;
  const double r = fma(k, -0x1.abc9e3b39803fp-56, fma(k, -0x1.62e42fefa39efp-1, within));
  const uint64_t n = random_double_bits(whole) - random_double_bits(0x1.8p52) + 2048;
  const uint64_t half = n >> 1, rest = n - half;
  double sum = inverse[13];
  RANDOM_UNROLL
  for (int j = 12; j >= 0; j--) sum = fma(sum, r, inverse[j]);
  return sum * random_double((half - 1) << 52) * random_double((rest - 1) << 52);
}

/* ---- Integers -------------------------------------------------------------------------------- */

/* Numbers below n are the random bits, as a fraction, times n, rounded down. The first bits of the
 * fraction determine the number, except for n of their 2^32 or 2^64 values, for which the deciding
 * bits follow. The relative difference of probabilities is therefore at most 2^-64. */
#define RANDOM_NARROW_MOST ((uint64_t)1 << 24) /* for 32 bits; above, these determine fewer */

/* The upper 64 bits of a product. */
RANDOM_INLINE uint64_t random_upper(uint64_t x, uint64_t y) {
  const uint64_t a = (uint32_t)x, b = x >> 32, c = (uint32_t)y, d = y >> 32;
  const uint64_t low = a * c, left = b * c + (low >> 32), right = a * d + (uint32_t)left;
  return b * d + (left >> 32) + (right >> 32);
}

/* Returns whether more bits are required, for 0 < n <= RANDOM_NARROW_MOST; for any n. */
RANDOM_INLINE int random_is_open32(uint32_t bits, uint32_t n) { return bits * n > -n; }
RANDOM_INLINE int random_is_open64(uint64_t bits, uint64_t n) { return n && bits * n > -n; }

/* The number if they are not. */
RANDOM_INLINE uint32_t random_below32(uint32_t bits, uint32_t n) {
  return (uint32_t)((uint64_t)bits * n >> 32);
}
RANDOM_INLINE uint64_t random_below64(uint64_t bits, uint64_t n) {
  return n ? random_upper(bits, n) : bits;
}

/* The number that is then added: 1 or 0. */
RANDOM_INLINE uint64_t random_more32(uint32_t bits, uint32_t n, uint64_t deciding) {
  const uint32_t rest = bits * n;
  return rest + (uint32_t)random_upper(deciding, n) < rest;
}
RANDOM_INLINE uint64_t random_more64(uint64_t bits, uint64_t n, uint64_t deciding) {
  const uint64_t rest = bits * n;
  return rest + random_upper(deciding, n) < rest;
}

#endif
