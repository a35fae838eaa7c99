/* SPDX-License-Identifier: Apache-2.0 */
/* sin, cos and tan of double, for expressions on CPUs with fused multiply-add, in operations that
 * gcc vectorizes. Included after code.h. The error is below 0.85 units in the last place.
 *
 * After W. J. Cody and W. Waite (Software Manual for the Elementary Functions, 1980), x is n pi / 2
 * + r, with pi / 2 as a sum of three numbers. The rounding error of each difference is kept, after
 * D. E. Knuth's sum of two (The Art of Computer Programming 2, 4.2.2), so that r, at most pi / 4,
 * is a sum of two numbers. sin(r) is r + r^3 S(r^2), cos(r) is 1 - r^2 / 2 + r^4 C(r^2), by
 * polynomials that are nearly minimax, at Chebyshev's points. Both are also sums of two numbers.
 * Their quotient is corrected by the remainder of the division.
 *
 * Above CUPLUG_FAR, n has too many bits. There the C library, which uses more digits of pi,
 * computes the result. Loops call a vector function that finds such elements. clang does not
 * support such functions. With clang, and without such instructions, the C library computes all
 * results. */
#if defined(__FMA__) && !defined(__clang__)
#define CUPLUG_FAR 0x1p30
#define CUPLUG_TO_INTEGER 0x1.8p52 /* adding it rounds, and leaves an integer in the low bits */
#define CUPLUG_SIGN (1ull << 63)
#ifndef CUPLUG_BESIDE
#define CUPLUG_BESIDE(name) __asm__(name) __attribute__((used, noinline))
#endif

enum { CUPLUG_SIN, CUPLUG_COS, CUPLUG_TAN };

__attribute__((noinline, cold)) static double cuplug_by_library(double x, double which) {
  return which == CUPLUG_SIN ? (sin)(x) : which == CUPLUG_COS ? (cos)(x) : (tan)(x);
}

static double cuplug_far_(double x, double near, double which) CUPLUG_BESIDE("cuplug_far");
static double cuplug_far_(double x, double near, double which) {
  return __builtin_fabs(x) > CUPLUG_FAR ? cuplug_by_library(x, which) : near;
}
__attribute__((const, simd("notinbranch"))) double cuplug_far(double x, double near, double which);

/* Defined under the name that loops call: n lanes for an instruction set. `are_none` returns
 * whether the integers `far`, all ones or 0, are 0. */
#define CUPLUG_FAR_OF(isa, n, are_none)                                                  \
  typedef double cuplug_far_##isa __attribute__((vector_size(8 * n)));                   \
  typedef long long cuplug_far_bits_##isa __attribute__((vector_size(8 * n)));           \
  static cuplug_far_##isa cuplug_far_in_##isa(cuplug_far_##isa x, cuplug_far_##isa near, \
                                              cuplug_far_##isa which)                    \
      CUPLUG_BESIDE("_ZGV" #isa "N" #n "vvv_cuplug_far");                                \
  static cuplug_far_##isa cuplug_far_in_##isa(cuplug_far_##isa x, cuplug_far_##isa near, \
                                              cuplug_far_##isa which) {                  \
    const cuplug_far_bits_##isa far = (x > CUPLUG_FAR) | (x < -CUPLUG_FAR);              \
    if (__builtin_expect(are_none, 1)) return near;                                      \
    _Pragma("GCC unroll 1") for (int k = 0; k < n; k++) if (far[k]) near[k] =            \
        cuplug_by_library(x[k], which[k]);                                               \
    return near;                                                                         \
  }
CUPLUG_FAR_OF(b, 2, __builtin_ia32_ptestz128(far, far))
CUPLUG_FAR_OF(c, 4, __builtin_ia32_ptestz256(far, far))
CUPLUG_FAR_OF(d, 4, __builtin_ia32_ptestz256(far, far))
#ifdef __AVX512F__
/* Returns whether the halves of `far` are 0. */
static inline int cuplug_are_none(const cuplug_far_bits_d *far) {
  const cuplug_far_bits_d any = far[0] | far[1];
  return __builtin_ia32_ptestz256(any, any);
}
CUPLUG_FAR_OF(e, 8, cuplug_are_none((const cuplug_far_bits_d *)&far))
#endif

/* sin and cos of r, each as a sum of two numbers. Uses the low bits of `n` and the sign of r. */
typedef struct cuplug_turned {
  double sin, sin_low, cos, cos_low;
  uint64_t n, sign;
} cuplug_turned;

static inline __attribute__((always_inline, unused)) cuplug_turned cuplug_turn(double x) {
  const double shifted = __builtin_fma(x, 0x1.45f306dc9c883p-1, CUPLUG_TO_INTEGER);
  const double n = shifted - CUPLUG_TO_INTEGER;
  const double first = __builtin_fma(-n, 0x1.921fb54442d18p0, x);
  const double second = n * 0x1.1a62633145c07p-54;
  const double lost = __builtin_fma(n, 0x1.1a62633145c07p-54, -second);
  const double r = first - second, back = r - first;
  const double rest = (first - (r - back)) - (second + back);
  const double low = __builtin_fma(n, 0x1.f1976b7ed8fbcp-110, rest - lost);

  const double square = r * r, half = 0.5 * square, most = 1 - half;
  const double square_low = __builtin_fma(r, r, -square), cube = r * square;
  double s = -0x1.ab16f5bc68a29p-41, c = -0x1.907cd8f26aa3fp-37;
  s = __builtin_fma(s, square, 0x1.61217d923a998p-33);
  s = __builtin_fma(s, square, -0x1.ae645410e9193p-26);
  s = __builtin_fma(s, square, 0x1.71de3a545f835p-19);
  s = __builtin_fma(s, square, -0x1.a01a01a01992fp-13);
  s = __builtin_fma(s, square, 0x1.1111111111110p-7);
  c = __builtin_fma(c, square, 0x1.1eeb67d014ecep-29);
  c = __builtin_fma(c, square, -0x1.27e4fa16cc1bcp-22);
  c = __builtin_fma(c, square, 0x1.a01a019f4ddfdp-16);
  c = __builtin_fma(c, square, -0x1.6c16c16c16963p-10);
  c = __builtin_fma(c, square, 0x1.5555555555555p-5);
  const double more =
      __builtin_fma(cube, -0x1.5555555555555p-3, __builtin_fma(cube * square, s, low * most));
  const double fewer = ((1 - most) - half) +
                       __builtin_fma(square * square, c, __builtin_fma(-0.5, square_low, -r * low));
  cuplug_turned v = {.sin = r + more, .cos = most + fewer};
  v.sin_low = (r - v.sin) + more;
  v.cos_low = (most - v.cos) + fewer;
  memcpy(&v.n, &shifted, sizeof(v.n));
  memcpy(&v.sign, &r, sizeof(v.sign));
  return v;
}

static inline __attribute__((always_inline, unused)) double cuplug_signed(double x, uint64_t sign) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof(bits));
  bits = (bits & ~CUPLUG_SIGN) | (sign & CUPLUG_SIGN);
  memcpy(&x, &bits, sizeof(bits));
  return x;
}

/* The sine of x + quarters pi / 2. */
static inline __attribute__((always_inline, unused)) double cuplug_wave(double x, int quarters) {
  const cuplug_turned v = cuplug_turn(x);
  const uint64_t n = v.n + (uint64_t)quarters, is_odd = n << 63;
  const double near = cuplug_signed(is_odd ? v.cos : v.sin, (is_odd ? 0 : v.sign) ^ n << 62);
  return cuplug_far(x, near, quarters);
}
static inline __attribute__((always_inline, unused)) double cuplug_sin(double x) {
  return cuplug_wave(x, CUPLUG_SIN);
}
static inline __attribute__((always_inline, unused)) double cuplug_cos(double x) {
  return cuplug_wave(x, CUPLUG_COS);
}

static inline __attribute__((always_inline, unused)) double cuplug_tan(double x) {
  const cuplug_turned v = cuplug_turn(x);
  const uint64_t is_odd = v.n << 63;
  const double a = is_odd ? v.cos : v.sin, a_low = is_odd ? v.cos_low : v.sin_low;
  const double b = is_odd ? v.sin : v.cos, b_low = is_odd ? v.sin_low : v.cos_low;
  const double inverse = 1 / b, q = a * inverse;
  const double left = __builtin_fma(-q, b, a) + __builtin_fma(-q, b_low, a_low);
  const double near = cuplug_signed(__builtin_fma(left, inverse, q), v.sign ^ is_odd);
  return cuplug_far(x, near, CUPLUG_TAN);
}

#else
/* One by one, since compilers call vector functions with errors of up to 3.5 units. */
static __attribute__((noinline, unused)) double cuplug_sin(double x) { return (sin)(x); }
static __attribute__((noinline, unused)) double cuplug_cos(double x) { return (cos)(x); }
static __attribute__((noinline, unused)) double cuplug_tan(double x) { return (tan)(x); }
#endif

#define CUPLUG_CIRCULAR(x, name)         \
  _Generic((x) + 0, float                \
           : name##f, long double        \
           : name##l, float _Complex     \
           : c##name##f, double _Complex \
           : c##name, default            \
           : cuplug_##name)(x)
#undef sin
#undef cos
#undef tan
#define sin(x) CUPLUG_CIRCULAR(x, sin)
#define cos(x) CUPLUG_CIRCULAR(x, cos)
#define tan(x) CUPLUG_CIRCULAR(x, tan)
