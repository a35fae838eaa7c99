/* SPDX-License-Identifier: Apache-2.0 */
/* The code before an expression that is compiled for the host, after <cuplug/loop.h>: functions
 * that expressions may use in addition to <tgmath.h>, and dtypes in memory. Headers take most of a
 * compilation's time, so no others are included. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The functions for which glibc has vector versions, in libmvec. Loops call them if gcc has these
 * declarations. clang recognizes some of them without declarations. For double, cos, exp, sin and
 * tan have errors of up to 3.5 units in the last place. circular.h and functions.h are more
 * exact, and so are the scalar functions. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define CUPLUG_OF_VECTORS __attribute__((simd("notinbranch")))
#define CUPLUG_VECTOR_FLOAT(name) CUPLUG_OF_VECTORS float name##f(float);
#define CUPLUG_VECTOR_1(name)            \
  CUPLUG_OF_VECTORS double name(double); \
  CUPLUG_VECTOR_FLOAT(name)
#define CUPLUG_VECTOR_2(name)                    \
  CUPLUG_OF_VECTORS double name(double, double); \
  CUPLUG_OF_VECTORS float name##f(float, float);
#if __GLIBC_PREREQ(2, 22)
CUPLUG_VECTOR_FLOAT(cos)
CUPLUG_VECTOR_FLOAT(exp)
CUPLUG_VECTOR_1(log)
CUPLUG_VECTOR_FLOAT(sin)
CUPLUG_VECTOR_2(pow)
#endif
#if __GLIBC_PREREQ(2, 35)
CUPLUG_VECTOR_1(acos)
CUPLUG_VECTOR_1(acosh)
CUPLUG_VECTOR_1(asin)
CUPLUG_VECTOR_1(asinh)
CUPLUG_VECTOR_1(atan)
CUPLUG_VECTOR_1(atanh)
CUPLUG_VECTOR_1(cbrt)
CUPLUG_VECTOR_1(cosh)
CUPLUG_VECTOR_1(erf)
CUPLUG_VECTOR_1(erfc)
CUPLUG_VECTOR_1(exp2)
CUPLUG_VECTOR_1(expm1)
CUPLUG_VECTOR_1(log10)
CUPLUG_VECTOR_1(log1p)
CUPLUG_VECTOR_1(log2)
CUPLUG_VECTOR_1(sinh)
CUPLUG_VECTOR_FLOAT(tan)
CUPLUG_VECTOR_1(tanh)
CUPLUG_VECTOR_2(atan2)
CUPLUG_VECTOR_2(hypot)
#endif
#endif
#include <tgmath.h>
#undef I /* defined by complex.h, and a usual name of a type variable */
#undef complex

#define __device__ static __attribute__((unused))
#define __host__
#define __forceinline__ inline

/* As in CUDA C++, except that min and max return NaN if an argument is NaN, as in NumPy. If only
 * one of two integers is signed, they are exact. */
#define CUPLUG_IS_SIGNED(x) _Generic((x) + 0, int : 1, long : 1, long long : 1, default : 0)
#define CUPLUG_IS_UNSIGNED(x) \
  _Generic((x) + 0, unsigned : 1, unsigned long : 1, unsigned long long : 1, default : 0)
#define CUPLUG_IS_MIXED(a, b) \
  (CUPLUG_IS_UNSIGNED((a) + (b)) && (CUPLUG_IS_SIGNED(a) || CUPLUG_IS_SIGNED(b)))
/* The common type of two numbers. Two numbers of one type have that type, of which vectors hold
 * more. */
#define CUPLUG_COMMON(x, y)                                                                       \
  __typeof__(__builtin_choose_expr(__builtin_types_compatible_p(__typeof__(x), __typeof__(y)), x, \
                                   (x) + (y)))
/* For bools by `|` or `&`, because compilers emit jumps for their comparisons. */
#define CUPLUG_CHOSEN(a, b, relation, of_bools, mixed)                                           \
  ({                                                                                             \
    __auto_type cuplug_x_ = (a);                                                                 \
    __auto_type cuplug_y_ = (b);                                                                 \
    __builtin_choose_expr(                                                                       \
        CUPLUG_IS_MIXED(cuplug_x_, cuplug_y_), ({                                                \
          const __auto_type cuplug_a_ = mixed((uint64_t)cuplug_x_, CUPLUG_IS_SIGNED(cuplug_x_)); \
          const __auto_type cuplug_b_ = mixed((uint64_t)cuplug_y_, CUPLUG_IS_SIGNED(cuplug_y_)); \
          cuplug_a_ relation cuplug_b_ ? cuplug_a_ : cuplug_b_;                                  \
        }),                                                                                      \
        ({                                                                                       \
          typedef CUPLUG_COMMON(cuplug_x_, cuplug_y_) cuplug_common_;                            \
          const cuplug_common_ cuplug_a_ = cuplug_x_, cuplug_b_ = cuplug_y_;                     \
          /* in steps: one that is within another is for vectors, too */                         \
          const cuplug_common_ cuplug_c_ =                                                       \
              __builtin_types_compatible_p(cuplug_common_, _Bool)                                \
                  ? (cuplug_common_)((_Bool)cuplug_a_ of_bools(_Bool) cuplug_b_)                 \
              : cuplug_a_ relation cuplug_b_ ? cuplug_a_                                         \
                                             : cuplug_b_;                                        \
          const cuplug_common_ cuplug_d_ = cuplug_a_ != cuplug_a_ ? cuplug_a_ : cuplug_c_;       \
          cuplug_d_;                                                                             \
        }));                                                                                     \
  })
#define min(a, b) CUPLUG_CHOSEN(a, b, <, &, cuplug_for_least)
#define max(a, b) CUPLUG_CHOSEN(a, b, >, |, cuplug_for_greatest)
/* As in C, where a number is preferred to NaN; also vectorized. */
#undef fmin
#undef fmax
#undef signbit
#define CUPLUG_NUMBER(a, b, relation)                                                     \
  ({                                                                                      \
    const __auto_type cuplug_x_ = (a);                                                    \
    const __auto_type cuplug_y_ = (b);                                                    \
    const __typeof__(cuplug_x_ + cuplug_y_) cuplug_a_ = cuplug_x_, cuplug_b_ = cuplug_y_; \
    const __typeof__(cuplug_x_ + cuplug_y_) cuplug_c_ =                                   \
        cuplug_a_ relation cuplug_b_ ? cuplug_a_ : cuplug_b_;                             \
    cuplug_b_ != cuplug_b_ ? cuplug_a_ : cuplug_c_;                                       \
  })
#define fmin(a, b) CUPLUG_NUMBER(a, b, <)
#define fmax(a, b) CUPLUG_NUMBER(a, b, >)
#define signbit(x) (copysign((__typeof__((x) + 0.0f))1, x) < 0)
/* cabs has no vector version, and hypot has. */
static inline double cuplug_cabs(double _Complex z) { return (hypot)(__real__ z, __imag__ z); }
static inline float cuplug_cabsf(float _Complex z) { return hypotf(__real__ z, __imag__ z); }
#define abs(x)                               \
  _Generic((x) + 0, float                    \
           : fabsf, double                   \
           : (fabs), int                     \
           : __builtin_abs, long             \
           : __builtin_labs, float _Complex  \
           : cuplug_cabsf, double _Complex   \
           : cuplug_cabs, long long          \
           : __builtin_llabs, unsigned       \
           : cuplug_same, unsigned long      \
           : cuplug_same, unsigned long long \
           : cuplug_same)(x)
/* As in <tgmath.h>, except that integers to integer powers are integers, as in NumPy. */
#undef pow
#define CUPLUG_FLOAT_OR(x, yes, no) _Generic((x), float : yes, float _Complex : yes, default : no)
#define CUPLUG_BOTH_FLOAT(x, y, yes, no) CUPLUG_FLOAT_OR(x, CUPLUG_FLOAT_OR(y, yes, no), no)
#define pow(x, y)                                                                \
  _Generic((x) + (y), float                                                      \
           : CUPLUG_BOTH_FLOAT(x, y, cuplug_powf, cuplug_pow), double            \
           : cuplug_pow, float _Complex                                          \
           : CUPLUG_BOTH_FLOAT(x, y, cuplug_cpowf, cuplug_cpow), double _Complex \
           : cuplug_cpow, long double                                            \
           : powl, int                                                           \
           : cuplug_int_power, long                                              \
           : cuplug_signed_power, long long                                      \
           : cuplug_signed_power, unsigned                                       \
           : cuplug_unsigned_power, default                                      \
           : cuplug_power)(x, y)
/* By constant exponents: vector functions compute powers of negative numbers one by one. */
#ifndef CUPLUG_POWF
#define CUPLUG_POWF powf
#endif
#ifndef CUPLUG_POW
#define CUPLUG_POW pow
#endif
#define CUPLUG_POWER(name, type, of_vectors)                                        \
  static inline __attribute__((always_inline)) type cuplug_##name(type x, type y) { \
    const type square = x * x;                                                      \
    if (__builtin_constant_p(y) && y == 3) return square * x;                       \
    if (__builtin_constant_p(y) && y == 4) return square * square;                  \
    return (of_vectors)(x, y);                                                      \
  }
CUPLUG_POWER(pow, double, CUPLUG_POW)
CUPLUG_POWER(powf, float, CUPLUG_POWF)
#undef CUPLUG_POWER
/* 0 to the power of y, and x to the power of 0, as in NumPy. */
#define CUPLUG_COMPLEX_POWER(name, type)                               \
  static inline type cuplug_##name(type x, type y) {                   \
    if (y == 0) return 1;                                              \
    if (x == 0) return creal(y) > 0 ? 0 : __builtin_complex(NAN, NAN); \
    return (name)(x, y);                                               \
  }
CUPLUG_COMPLEX_POWER(cpow, double _Complex)
CUPLUG_COMPLEX_POWER(cpowf, float _Complex)
#undef CUPLUG_COMPLEX_POWER
#define rsqrt(x) (1 / sqrt(x))
#define real(x) creal(x)
#define imag(x) cimag(x)
#define arg(x) carg(x)
#define complex(re, im) \
  _Generic((re) + (im), float : cuplug_complex64_of, default : cuplug_complex128_of)(re, im)

#ifdef __clang__
/* Since clang 20, -fsanitize also checks sums and products of integers, though they wrap. The
 * functions that it calls do nothing here, so that the optimizer removes them and the checks. */
#define CUPLUG_WRAPS(name, ...)                                                               \
  __attribute__((visibility("hidden"))) void __ubsan_handle_##name##_overflow(const void *at, \
                                                                              __VA_ARGS__) {}
CUPLUG_WRAPS(add, uintptr_t a, uintptr_t b)
CUPLUG_WRAPS(sub, uintptr_t a, uintptr_t b)
CUPLUG_WRAPS(mul, uintptr_t a, uintptr_t b)
CUPLUG_WRAPS(negate, uintptr_t a)
#undef CUPLUG_WRAPS
#endif

#define CUPLUG_PART static __attribute__((noinline)) void

typedef union cuplug_scalar {
  double f;
  int64_t i;
  uint64_t u;
  double c[2];
} cuplug_scalar;

typedef float _Complex complex64_t;
typedef double _Complex complex128_t;

static inline complex64_t cuplug_complex64_of(float re, float im) {
  return __builtin_complex(re, im);
}

static inline complex128_t cuplug_complex128_of(double re, double im) {
  return __builtin_complex(re, im);
}

static inline uint64_t cuplug_same(uint64_t x) { return x; }

/* The iterations of the following loop do not depend on each other. */
#ifdef __clang__
#define CUPLUG_SIMD _Pragma("clang loop vectorize(assume_safety)")
#define CUPLUG_SIMD_ONCE CUPLUG_SIMD
#else
#define CUPLUG_SIMD _Pragma("GCC ivdep")
/* For loops with so few iterations that they would be unrolled and not vectorized. */
#define CUPLUG_SIMD_ONCE _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#endif

static inline int64_t cuplug_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
