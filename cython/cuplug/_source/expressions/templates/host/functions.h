/* SPDX-License-Identifier: Apache-2.0 */
/* exp, tanh and, with AVX-512, erf of float, for expressions on CPUs with fused multiply-add, in
 * operations that compilers vectorize. Included after code.h. glibc's functions take 1.2 to 1.9
 * times as long.
 *
 * exp(k log(2) + r), with |r| at most log(2) / 2, is 2^k exp(r). log(2) is a sum of two numbers,
 * and exp(r) is 1 + r + r^2 P(r), by a minimax polynomial from Lawson's algorithm. The error is at
 * most 2.2 units in the last place and, for double, where r is a difference of two numbers, 0.9.
 *
 * After fdlibm's s_tanh.c (Sun Microsystems, 1993), tanh(|x|) is e / (e + 2) with e = exp(t) - 1, t
 * = 2 |x|. If t = k log(2) + r, e is 2^k (exp(r) - 1) + 2^k - 1, with the first terms of the power
 * series of exp(r) - 1. The error is at most 2.6 units in the last place.
 *
 * erf(x) is x + x P(x^2) below 1, else 1 - 2^Q(|x|), by minimax polynomials from Lawson's
 * algorithm: of erf(x) / x - 1, of the logarithm of 1 - erf(x), and of (2^r - 1) / r. The error is
 * at most 1.3 units in the last place. */
#if defined(__FMA__) || defined(__aarch64__)
/* The smallest number whose last bit has the value 1. Adding it rounds, and leaves an integer in
 * the low bits. */
#define CUPLUG_ONES 0x1.8p52
#define CUPLUG_ONES_F 0x1.8p23f

/* 2^k for the integer k in the low bits. */
static inline __attribute__((always_inline, unused)) double cuplug_two_to(double shifted) {
  uint64_t bits;
  memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 1023) << 52;
  memcpy(&shifted, &bits, sizeof(bits));
  return shifted;
}
static inline __attribute__((always_inline, unused)) float cuplug_two_to_f(float shifted) {
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 127) << 23;
  memcpy(&shifted, &bits, sizeof(bits));
  return shifted;
}

/* 2^k is a product of two numbers, whose exponents are halves of k + 254: for subnormal results, or
 * k = 128, 2^k itself is not representable. There is one limit for integers and one for numbers.
 * For two limits of numbers, gcc would emit branches and compute the elements one by one. */
static inline __attribute__((always_inline)) float cuplug_expf(float x) {
  const float t = x < -104 ? -104 : x, zero = CUPLUG_ONES_F + 254; /* below, the result is 0 */
  float shifted = __builtin_fmaf(t, 0x1.715476p0f, zero), most = zero + 129, power, rest;
  int32_t bits, bound;
  memcpy(&bits, &shifted, sizeof(bits));
  memcpy(&bound, &most, sizeof(bound));
  bits = bits < bound ? bits : bound; /* above, r is so large that the result is infinite; or NaN */
  memcpy(&shifted, &bits, sizeof(bits));
  const float k = shifted - zero, near = __builtin_fmaf(k, -0x1.62e4p-1f, t);
  const float r = __builtin_fmaf(k, -0x1.7f7d1cp-20f, near);
  float q = 0x1.10627ap-7f;
  q = __builtin_fmaf(q, r, 0x1.572a08p-5f);
  q = __builtin_fmaf(q, r, 0x1.5557aep-3f);
  q = __builtin_fmaf(q, r, 0x1.fffdfcp-2f);
  q = __builtin_fmaf(q, r, 1);
  q = __builtin_fmaf(q, r, 1);
  const uint32_t half = ((uint32_t)bits >> 1) << 23, other = ((uint32_t)bits << 23) - half;
  memcpy(&power, &half, sizeof(power));
  memcpy(&rest, &other, sizeof(rest));
  return q * power * rest;
}

static inline __attribute__((always_inline)) double cuplug_exp(double x) {
  const double t = x < -1100 ? -1100 : x, zero = CUPLUG_ONES + 2046; /* below, the result is 0 */
  double shifted = __builtin_fma(t, 0x1.71547652b82fep0, zero), most = zero + 1025, power, rest;
  int64_t bits, bound;
  memcpy(&bits, &shifted, sizeof(bits));
  memcpy(&bound, &most, sizeof(bound));
  bits = bits < bound ? bits : bound; /* above, r is so large that the result is infinite; or NaN */
  memcpy(&shifted, &bits, sizeof(bits));
  const double k = shifted - zero, near = __builtin_fma(k, -0x1.62e42fefa39efp-1, t);
  const double far = k * 0x1.abc9e3b39803fp-56, r = near - far, square = r * r;
  double even = 0x1.1f731ea5352cap-29, odd = 0x1.af4e196027428p-26;
  even = __builtin_fma(even, square, 0x1.27e4db57442fbp-22);
  odd = __builtin_fma(odd, square, 0x1.71de021a90822p-19);
  even = __builtin_fma(even, square, 0x1.a01a01a6dcaffp-16);
  odd = __builtin_fma(odd, square, 0x1.a01a01abef415p-13);
  even = __builtin_fma(even, square, 0x1.6c16c16c162ccp-10);
  odd = __builtin_fma(odd, square, 0x1.11111111100cep-7);
  even = __builtin_fma(even, square, 0x1.5555555555556p-5);
  odd = __builtin_fma(odd, square, 0x1.5555555555557p-3);
  even = __builtin_fma(even, square, 0.5);
  const double q = __builtin_fma(odd, r, even);
  const uint64_t half = ((uint64_t)bits >> 1) << 52, other = ((uint64_t)bits << 52) - half;
  memcpy(&power, &half, sizeof(power));
  memcpy(&rest, &other, sizeof(rest));
  return (1 + (near + __builtin_fma(square, q, -far))) * power * rest;
}

static inline __attribute__((always_inline)) double cuplug_tanh(double x) {
  const double size = __builtin_fabs(x), t = 2 * (size > 20 ? 20 : size); /* above: 1 */
  const double shifted = __builtin_fma(t, 0x1.71547652b82fep0, CUPLUG_ONES);
  const double k = shifted - CUPLUG_ONES;
  const double near = __builtin_fma(k, -0x1.62e42fefa39efp-1, t);
  const double r = __builtin_fma(k, -0x1.abc9e3b39803fp-56, near);
  double q = 1.0 / 6227020800;
  q = __builtin_fma(q, r, 1.0 / 479001600);
  q = __builtin_fma(q, r, 1.0 / 39916800);
  q = __builtin_fma(q, r, 1.0 / 3628800);
  q = __builtin_fma(q, r, 1.0 / 362880);
  q = __builtin_fma(q, r, 1.0 / 40320);
  q = __builtin_fma(q, r, 1.0 / 5040);
  q = __builtin_fma(q, r, 1.0 / 720);
  q = __builtin_fma(q, r, 1.0 / 120);
  q = __builtin_fma(q, r, 1.0 / 24);
  q = __builtin_fma(q, r, 1.0 / 6);
  q = __builtin_fma(q, r, 1.0 / 2);
  const double power = cuplug_two_to(shifted);
  const double e = __builtin_fma(power, __builtin_fma(r * r, q, r), power - 1);
  return __builtin_copysign(e / (e + 2), x);
}

static inline __attribute__((always_inline)) float cuplug_tanhf(float x) {
  const float size = __builtin_fabsf(x), t = 2 * (size > 10 ? 10 : size);
  const float shifted = __builtin_fmaf(t, 0x1.715476p0f, CUPLUG_ONES_F);
  const float k = shifted - CUPLUG_ONES_F;
  const float near = __builtin_fmaf(k, -0x1.62e43p-1f, t);
  const float r = __builtin_fmaf(k, 0x1.05c61p-29f, near);
  float q = 1.0f / 5040;
  q = __builtin_fmaf(q, r, 1.0f / 720);
  q = __builtin_fmaf(q, r, 1.0f / 120);
  q = __builtin_fmaf(q, r, 1.0f / 24);
  q = __builtin_fmaf(q, r, 1.0f / 6);
  q = __builtin_fmaf(q, r, 1.0f / 2);
  const float power = cuplug_two_to_f(shifted);
  const float e = __builtin_fmaf(power, __builtin_fmaf(r * r, q, r), power - 1);
  return __builtin_copysignf(e / (e + 2), x);
}

#ifdef __AVX512F__
static inline __attribute__((always_inline)) float cuplug_erff(float x) {
  const float size = __builtin_fabsf(x), t = size > 4 ? 4 : size, s = x * x; /* above: 1 */
  float near = 0x1.496a1ep-14f, far = 0x1.19f382p-12f;
  near = __builtin_fmaf(near, s, -0x1.a3f6f8p-11f);
  near = __builtin_fmaf(near, s, 0x1.5405bp-8f);
  near = __builtin_fmaf(near, s, -0x1.b7f90cp-6f);
  near = __builtin_fmaf(near, s, 0x1.ce2cf8p-4f);
  near = __builtin_fmaf(near, s, -0x1.81273ep-2f);
  near = __builtin_fmaf(near, s, 0x1.06eba8p-3f);
  far = __builtin_fmaf(far, t, -0x1.16b286p-8f);
  far = __builtin_fmaf(far, t, 0x1.021846p-5f);
  far = __builtin_fmaf(far, t, -0x1.30a4bcp-3f);
  far = __builtin_fmaf(far, t, -0x1.d75f36p-1f);
  far = __builtin_fmaf(far, t, -0x1.a0448ep+0f);
  far = __builtin_fmaf(far, t, -0x1.0250ep-11f);
  const float shifted = far + CUPLUG_ONES_F, r = far - (shifted - CUPLUG_ONES_F);
  float q = 0x1.5bba0ap-10f;
  q = __builtin_fmaf(q, r, 0x1.3cea88p-7f);
  q = __builtin_fmaf(q, r, 0x1.c6b752p-5f);
  q = __builtin_fmaf(q, r, 0x1.ebf9bcp-3f);
  q = __builtin_fmaf(q, r, 0x1.62e42ap-1f);
  const float power = cuplug_two_to_f(shifted);
  const float rest = __builtin_fmaf(power * r, q, power);
  const float large = __builtin_copysignf(1 - rest, x), small = __builtin_fmaf(near, x, x);
  return size < 1 ? small : large;
}

#undef erf
/* Only for real numbers, since compilers reject others. */
#define erf(x)                         \
  _Generic((x) + 0, float              \
           : cuplug_erff, double       \
           : (erf), int                \
           : (erf), unsigned           \
           : (erf), long               \
           : (erf), unsigned long      \
           : (erf), long long          \
           : (erf), unsigned long long \
           : (erf))(x)
#endif

#undef tanh
#define tanh(x)                           \
  _Generic((x) + 0, float                 \
           : cuplug_tanhf, float _Complex \
           : ctanhf, double _Complex      \
           : ctanh, default               \
           : cuplug_tanh)(x)
#else
/* One by one, as in circular.h. */
#define cuplug_expf expf
static __attribute__((noinline, unused)) double cuplug_exp(double x) { return (exp)(x); }
#endif

#undef exp
#define exp(x)                           \
  _Generic((x) + 0, float                \
           : cuplug_expf, float _Complex \
           : cexpf, double _Complex      \
           : cexp, default               \
           : cuplug_exp)(x)
