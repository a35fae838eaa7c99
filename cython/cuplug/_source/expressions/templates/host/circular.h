/* SPDX-License-Identifier: Apache-2.0 */
/* sin, cos and tan of double, for expressions on CPUs with fused multiply-add, in operations that
 * gcc vectorizes. Included after code.h. The error is below 0.75 units in the last place, of tan 1.
 *
 * After W. J. Cody and W. Waite (Software Manual for the Elementary Functions, 1980), x is n pi / 2
 * + r, with pi / 2 as a sum of three numbers. The rounding error of each difference is kept, after
 * T. J. Dekker's sum of two (Numerische Mathematik 18, 1971), so that r, at most pi / 4, is a sum
 * of two numbers. sin(r) is r + r^3 S(r^2), cos(r) is 1 - r^2 / 2 + r^4 C(r^2), by polynomials that
 * are nearly minimax, at Chebyshev's points. tan(r) is r + r^3 / 3 + r^5 T(r^2), by a minimax
 * polynomial from Lawson's algorithm, as a sum of two numbers, so that -1 / tan(r), for odd n, is
 * corrected by the remainder of the division.
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
 * whether no element of `squares` exceeds `limit`. */
#define CUPLUG_FAR_OF(isa, n, are_none)                                                    \
  typedef double cuplug_far_##isa __attribute__((vector_size(8 * n)));                     \
  __attribute__((noinline, cold)) static cuplug_far_##isa cuplug_one_by_one_##isa(         \
      cuplug_far_##isa x, cuplug_far_##isa near, cuplug_far_##isa which) {                 \
    _Pragma("GCC unroll 1") for (int k = 0; k < n; k++) near[k] =                          \
        cuplug_far_(x[k], near[k], which[k]);                                              \
    return near;                                                                           \
  }                                                                                        \
  static cuplug_far_##isa cuplug_far_in_##isa(cuplug_far_##isa x, cuplug_far_##isa near,   \
                                              cuplug_far_##isa which)                      \
      CUPLUG_BESIDE("_ZGV" #isa "N" #n "vvv_cuplug_far");                                  \
  static cuplug_far_##isa cuplug_far_in_##isa(cuplug_far_##isa x, cuplug_far_##isa near,   \
                                              cuplug_far_##isa which) {                    \
    const cuplug_far_##isa squares = x * x,                                                \
                           limit = CUPLUG_FAR * CUPLUG_FAR - (cuplug_far_##isa){0};        \
    return __builtin_expect(are_none, 1) ? near : cuplug_one_by_one_##isa(x, near, which); \
  }
CUPLUG_FAR_OF(b, 2, !__builtin_ia32_movmskpd((cuplug_far_b)(squares > limit)))
CUPLUG_FAR_OF(c, 4, !__builtin_ia32_movmskpd256((cuplug_far_c)(squares > limit)))
CUPLUG_FAR_OF(d, 4, !__builtin_ia32_movmskpd256((cuplug_far_d)(squares > limit)))
#ifdef __AVX512F__
CUPLUG_FAR_OF(e, 8, !__builtin_ia32_cmppd512_mask(squares, limit, 30, (unsigned char)-1, 4))
#endif

/* x - n pi / 2 = r + low. `quarters` has n in its low bits. */
typedef struct cuplug_reduced {
  double r, low;
  uint64_t quarters;
} cuplug_reduced;

static inline __attribute__((always_inline, unused)) cuplug_reduced cuplug_reduce(double x) {
  const double shifted = __builtin_fma(x, 0x1.45f306dc9c883p-1, CUPLUG_TO_INTEGER);
  const double n = shifted - CUPLUG_TO_INTEGER;
  const double first = __builtin_fma(-n, 0x1.921fb54442d18p0, x); /* a multiple of 2^-53 */
  const double second = n * 0x1.1a62633145c07p-54;
  const double lost = __builtin_fma(n, 0x1.1a62633145c07p-54, -second);
  cuplug_reduced v = {.r = first - second};
  const double rest = (first - v.r) - second;
  v.low = __builtin_fma(n, 0x1.f1976b7ed8fbcp-110, rest - lost);
  memcpy(&v.quarters, &shifted, sizeof(shifted));
  return v;
}

/* The sine of x + quarters pi / 2. */
static inline __attribute__((always_inline, unused)) double cuplug_wave(double x, int quarters) {
  const cuplug_reduced v = cuplug_reduce(x);
  const double r = v.r, square = r * r, half = 0.5 * square, most = 1 - half;
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
      __builtin_fma(cube, -0x1.5555555555555p-3, __builtin_fma(cube * square, s, v.low * most));
  const double fewer =
      ((1 - most) - half) +
      __builtin_fma(square * square, c, __builtin_fma(-0.5, square_low, -r * v.low));
  const uint64_t n = v.quarters + (uint64_t)quarters, is_odd = n << 63;
  double near = is_odd ? most + fewer : r + more;
  uint64_t sign, bits;
  memcpy(&sign, &r, sizeof(r));
  memcpy(&bits, &near, sizeof(near));
  bits = (bits & ~CUPLUG_SIGN) | (((is_odd ? 0 : sign) ^ n << 62) & CUPLUG_SIGN);
  memcpy(&near, &bits, sizeof(near));
  return cuplug_far(x, near, quarters);
}
static inline __attribute__((always_inline, unused)) double cuplug_sin(double x) {
  return cuplug_wave(x, CUPLUG_SIN);
}
static inline __attribute__((always_inline, unused)) double cuplug_cos(double x) {
  return cuplug_wave(x, CUPLUG_COS);
}

/* Differences, and not sums, so that the tangent of -0 is -0. */
static inline __attribute__((always_inline, unused)) double cuplug_tan(double x) {
  const cuplug_reduced v = cuplug_reduce(x);
  const double r = v.r, square = r * r, fourth = square * square, cube = r * square;
  double even = -0x1.7f1646833dc58p-16, odd = 0x1.3e71ca85e1445p-17;
  even = __builtin_fma(even, fourth, -0x1.6e5cab86f0222p-16);
  odd = __builtin_fma(odd, fourth, 0x1.7e92dc4ded2d4p-15);
  even = __builtin_fma(even, fourth, 0x1.66282fd90fec7p-14);
  odd = __builtin_fma(odd, fourth, 0x1.0cb66b0007439p-14);
  even = __builtin_fma(even, fourth, 0x1.34dae17cee52ap-11);
  odd = __builtin_fma(odd, fourth, 0x1.fd957c7be8ad4p-13);
  even = __builtin_fma(even, fourth, 0x1.d6d329c9766fbp-9);
  odd = __builtin_fma(odd, fourth, 0x1.7dae374ab36d1p-10);
  even = __builtin_fma(even, fourth, 0x1.664f486d141fcp-6);
  odd = __builtin_fma(odd, fourth, 0x1.226e38bd51d44p-7);
  even = __builtin_fma(even, fourth, 0x1.1111111110dc1p-3);
  odd = __builtin_fma(odd, fourth, 0x1.ba1ba1ba679bep-5);
  const double third = 0x1.5555555555555p-2, third_low = 0x1.5555555555555p-56;
  const double q = __builtin_fma(__builtin_fma(odd, square, even), square, third_low);
  const double first = __builtin_fma(cube, third, r);
  const double less = __builtin_fma(cube, -third, first - r) -
                      __builtin_fma(cube, q, __builtin_fma(v.low * first, first, v.low));
  const double near = first - less, near_low = (first - near) - less, inverse = -1 / near;
  const double left = __builtin_fma(inverse, near_low, __builtin_fma(inverse, near, 1));
  return cuplug_far(x, v.quarters << 63 ? __builtin_fma(inverse, left, inverse) : near, CUPLUG_TAN);
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
