/* SPDX-License-Identifier: Apache-2.0 */
/* tanh for expressions on CPUs that multiply and add in one instruction, in operations of which
 * compilers make vectors; behind host_code.h. glibc's takes 1.2 to 1.9 times as long.
 *
 * As in fdlibm's s_tanh.c (Sun Microsystems, 1993), tanh(|x|) is e / (e + 2) with e = exp(t) - 1,
 * t = 2 |x|. Where t = k log(2) + r, |r| at most log(2) / 2, e is 2^k (exp(r) - 1) + 2^k - 1:
 * log(2) is a sum of two numbers, and exp(r) - 1 the beginning of its power series. The error is at
 * most 2.6 units in the last place. */
#ifdef __FMA__
/* The least number whose last bit counts ones: to add it rounds, and leaves an integer in the low
 * bits. */
#define CUPLUG_ONES 0x1.8p52
#define CUPLUG_ONES_F 0x1.8p23f

static inline __attribute__((always_inline)) double cuplug_tanh(double x) {
  const double size = __builtin_fabs(x), t = 2 * (size > 20 ? 20 : size); /* beyond, it is 1 */
  const double shifted = __builtin_fma(t, 0x1.71547652b82fep0, CUPLUG_ONES);
  const double k = shifted - CUPLUG_ONES;
  const double near = __builtin_fma(k, -0x1.62e42fefa39efp-1, t);
  const double r = __builtin_fma(k, -0x1.abc9e3b39803fp-56, near);
  double q = 1.0 / 6227020800, power;
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
  uint64_t bits;
  memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 1023) << 52;
  memcpy(&power, &bits, sizeof(bits));
  const double e = __builtin_fma(power, __builtin_fma(r * r, q, r), power - 1);
  return __builtin_copysign(e / (e + 2), x);
}

static inline __attribute__((always_inline)) float cuplug_tanhf(float x) {
  const float size = __builtin_fabsf(x), t = 2 * (size > 10 ? 10 : size);
  const float shifted = __builtin_fmaf(t, 0x1.715476p0f, CUPLUG_ONES_F);
  const float k = shifted - CUPLUG_ONES_F;
  const float near = __builtin_fmaf(k, -0x1.62e43p-1f, t);
  const float r = __builtin_fmaf(k, 0x1.05c61p-29f, near);
  float q = 1.0f / 5040, power;
  q = __builtin_fmaf(q, r, 1.0f / 720);
  q = __builtin_fmaf(q, r, 1.0f / 120);
  q = __builtin_fmaf(q, r, 1.0f / 24);
  q = __builtin_fmaf(q, r, 1.0f / 6);
  q = __builtin_fmaf(q, r, 1.0f / 2);
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 127) << 23;
  memcpy(&power, &bits, sizeof(bits));
  const float e = __builtin_fmaf(power, __builtin_fmaf(r * r, q, r), power - 1);
  return __builtin_copysignf(e / (e + 2), x);
}

#undef tanh
#define tanh(x)                           \
  _Generic((x) + 0, float                 \
           : cuplug_tanhf, float _Complex \
           : ctanhf, double _Complex      \
           : ctanh, default               \
           : cuplug_tanh)(x)
#endif
