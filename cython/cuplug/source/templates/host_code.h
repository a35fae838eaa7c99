/* SPDX-License-Identifier: Apache-2.0 */
/* What stands before an expression that is compiled for the host, after <cuplug/loop.h>: the
 * functions that expressions may use beside those of <tgmath.h>, dtypes in memory, arrays of any
 * strides as blocks that lie together. */
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tgmath.h>
#undef I /* of complex.h: a usual name of a type variable */
#undef complex

#define __device__ static __attribute__((unused))
#define __host__
#define __forceinline__ inline

/* As in CUDA C++, but that NaN comes out of min and max, as in NumPy. Of integers of which one
 * alone has a sign they are exact. */
#define CUPLUG_IS_SIGNED(x) _Generic((x) + 0, int : 1, long : 1, long long : 1, default : 0)
#define CUPLUG_IS_UNSIGNED(x) \
  _Generic((x) + 0, unsigned : 1, unsigned long : 1, unsigned long long : 1, default : 0)
#define CUPLUG_IS_MIXED(a, b) \
  (CUPLUG_IS_UNSIGNED((a) + (b)) && (CUPLUG_IS_SIGNED(a) || CUPLUG_IS_SIGNED(b)))
#define CUPLUG_CHOSEN(a, b, relation, mixed)                                                     \
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
          const __typeof__(cuplug_x_ + cuplug_y_) cuplug_a_ = cuplug_x_, cuplug_b_ = cuplug_y_;  \
          cuplug_a_ relation cuplug_b_ || cuplug_a_ != cuplug_a_ ? cuplug_a_ : cuplug_b_;        \
        }));                                                                                     \
  })
#define min(a, b) CUPLUG_CHOSEN(a, b, <, cuplug_for_least)
#define max(a, b) CUPLUG_CHOSEN(a, b, >, cuplug_for_greatest)
#define abs(x)                               \
  _Generic((x) + 0, float                    \
           : fabsf, double                   \
           : (fabs), int                     \
           : (abs), long                     \
           : labs, float _Complex            \
           : cabsf, double _Complex          \
           : (cabs), long long               \
           : llabs, unsigned                 \
           : cuplug_same, unsigned long      \
           : cuplug_same, unsigned long long \
           : cuplug_same)(x)
/* As <tgmath.h> has it, but that integers to integer powers are integers, as in NumPy. */
#undef pow
#define CUPLUG_FLOAT_OR(x, yes, no) _Generic((x), float : yes, float _Complex : yes, default : no)
#define CUPLUG_BOTH_FLOAT(x, y, yes, no) CUPLUG_FLOAT_OR(x, CUPLUG_FLOAT_OR(y, yes, no), no)
#define pow(x, y)                                                  \
  _Generic((x) + (y), float                                        \
           : CUPLUG_BOTH_FLOAT(x, y, powf, (pow)), double          \
           : (pow), float _Complex                                 \
           : CUPLUG_BOTH_FLOAT(x, y, cpowf, cpow), double _Complex \
           : cpow, long double                                     \
           : powl, int                                             \
           : cuplug_int_power, long                                \
           : cuplug_signed_power, long long                        \
           : cuplug_signed_power, unsigned                         \
           : cuplug_unsigned_power, default                        \
           : cuplug_power)(x, y)
#define rsqrt(x) (1 / sqrt(x))
#define real(x) creal(x)
#define imag(x) cimag(x)
#define arg(x) carg(x)
#define complex(re, im) \
  _Generic((re) + (im), float : cuplug_complex64_of, default : cuplug_complex128_of)(re, im)

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

#define CUPLUG_REFUSE_POWER(x, y) cuplug_refuse_power(x, y)
static void cuplug_refuse_power(int64_t x, int64_t y);

/* Where a part of a call began: it is left there when a division of integers has no result. */
#define CUPLUG_PART static __attribute__((noinline)) void
static __thread struct {
  jmp_buf begin;
  cuplug_division *division;
} cuplug_under_way;

static void cuplug_run_part(cuplug_loop_part *part, const cuplug_loop_call *call, long long from,
                            long long to) {
  cuplug_under_way.division = call->division;
  if (!__atomic_load_n(&call->division->claimed, __ATOMIC_RELAXED) &&
      !_setjmp(cuplug_under_way.begin))
    part(call, from, to);
}

/* What -fsanitize says of an operation: where it stands, and the types of its operands. */
typedef struct cuplug_operand_type {
  uint16_t kind, info; /* info: 2 * log2(number of bits) + 1 where signed */
} cuplug_operand_type;

typedef struct cuplug_operation {
  const char *text; /* "operator" or "operator part" */
  uint32_t line, column;
  const cuplug_operand_type *left, *right;
} cuplug_operation;

/* An operand, which lies elsewhere where it has more than 64 bits. */
static int64_t cuplug_operand(const cuplug_operand_type *type, uintptr_t x) {
  if (type->info == (5 << 1 | 1)) return (int32_t)x;
  return type->info >> 1 > 6 ? *(const int64_t *)x : (int64_t)x;
}

/* Ends the part of the call under way: "line 1, column 3: ", where that is known, and what was
 * seen. */
__attribute__((cold, noreturn)) static void cuplug_refuse(const cuplug_operation *at,
                                                          const char *seen) {
  cuplug_division *division = cuplug_under_way.division;
  char place[128] = "";
  const char *space = at ? strchr(at->text, ' ') : NULL;
  if (at)
    snprintf(place, sizeof(place), "%s%sline %u, column %u: ", space ? space + 1 : "",
             space ? ": " : "", at->line, at->column);
  if (!__atomic_exchange_n(&division->claimed, 1, __ATOMIC_RELAXED))
    snprintf(division->message, sizeof(division->message), "%sseen %s", place, seen);
  longjmp(cuplug_under_way.begin, 1);
}

__attribute__((cold, unused)) static void cuplug_refuse_power(int64_t x, int64_t y) {
  char seen[128];
  snprintf(seen, sizeof(seen), "%lld to the power of %lld of integers, wanted a power >= 0",
           (long long)x, (long long)y);
  cuplug_refuse(NULL, seen);
}

/* Called by compiled expressions before a division of integers that would end the process. */
__attribute__((visibility("hidden"), cold)) void
__ubsan_handle_divrem_overflow(const cuplug_operation *at, uintptr_t a, uintptr_t b) {
  char seen[128];
  snprintf(seen, sizeof(seen),
           at->left->info & 1 ? "%lld / %lld of integers, wanted a division that has a result"
                              : "%llu / %lld of integers, wanted a division that has a result",
           (long long)cuplug_operand(at->left, a), (long long)cuplug_operand(at->left, b));
  cuplug_refuse(at, seen);
}

/* And before a shift by more places than there are. */
__attribute__((visibility("hidden"), cold)) void
__ubsan_handle_shift_out_of_bounds(const cuplug_operation *at, uintptr_t a, uintptr_t b) {
  char seen[128];
  snprintf(seen, sizeof(seen), "a shift of %lld by %lld places, wanted 0 to %d",
           (long long)cuplug_operand(at->left, a), (long long)cuplug_operand(at->right, b),
           (1 << (at->left->info >> 1)) - 1);
  cuplug_refuse(at, seen);
}

/* Elements; below, threads cost more than they save. Less than in the stock operators: an
 * expression may take much longer for each. */
#define CUPLUG_PARALLEL_FROM 65536
#define CUPLUG_GRAIN 8192 /* elements of a thread's range: a multiple of all blocks */

/* The loop that follows has no iteration that needs another's. */
#ifdef __clang__
#define CUPLUG_SIMD _Pragma("clang loop vectorize(assume_safety)")
#else
#define CUPLUG_SIMD _Pragma("GCC ivdep")
#endif

static inline int64_t cuplug_least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Whether array k lies in the order in which the loop meets its elements, without gaps. */
static inline int cuplug_is_flat(const cuplug_loop *loop, unsigned k) {
  int64_t expected = 1;
  for (int d = loop->ndim - 1; d >= 0; d--) {
    if (loop->strides[d][k] != expected) return 0;
    expected *= loop->sizes[d];
  }
  return 1;
}

/* Where a walk along array k stands: the indices, and the place in elements. */
typedef struct cuplug_walk {
  int64_t at[64];
  int64_t offset;
} cuplug_walk;

static void cuplug_walk_to(cuplug_walk *walk, const cuplug_loop *loop, unsigned k, int64_t n) {
  walk->offset = 0;
  for (int d = loop->ndim - 1; d >= 0; d--) {
    const int64_t rest = n / loop->sizes[d];
    walk->at[d] = n - rest * loop->sizes[d];
    walk->offset += walk->at[d] * loop->strides[d][k];
    n = rest;
  }
}

/* Where element n lies in array k. */
static inline int64_t cuplug_offset(const cuplug_loop *loop, unsigned k, int64_t n) {
  int64_t offset = 0;
  for (int d = loop->ndim - 1; d >= 0; d--) {
    const int64_t rest = d ? n / loop->sizes[d] : 0;
    offset += (n - rest * loop->sizes[d]) * loop->strides[d][k];
    n = rest;
  }
  return offset;
}

/* Onward by n elements, to the end of the last dimension at most. */
static inline void cuplug_walk_on(cuplug_walk *walk, const cuplug_loop *loop, unsigned k,
                                  int64_t n) {
  int d = loop->ndim - 1;
  walk->at[d] += n;
  walk->offset += n * loop->strides[d][k];
  for (; d > 0 && walk->at[d] == loop->sizes[d]; d--) {
    walk->at[d] = 0;
    walk->at[d - 1]++;
    walk->offset += loop->strides[d - 1][k] - loop->sizes[d] * loop->strides[d][k];
  }
}

/* Elements begin to begin + n of array k, between a block and memory. */
#define CUPLUG_DEFINE_MOVES(T)                                                                     \
  static __attribute__((unused)) const T *cuplug_gather_##T(                                       \
      T *block, const void *data, const cuplug_loop *loop, unsigned k, int64_t begin, int64_t n) { \
    cuplug_walk walk;                                                                              \
    const int last = loop->ndim - 1;                                                               \
    cuplug_walk_to(&walk, loop, k, begin);                                                         \
    if (last < 0) *block = *(const T *)data;                                                       \
    for (int64_t done = 0, m; last >= 0 && done < n; done += m) {                                  \
      const T *from = (const T *)data + walk.offset;                                               \
      const int64_t stride = loop->strides[last][k];                                               \
      m = cuplug_least(n - done, loop->sizes[last] - walk.at[last]);                               \
      if (stride == 1)                                                                             \
        memcpy(block + done, from, (size_t)m * sizeof(T));                                         \
      else                                                                                         \
        for (int64_t j = 0; j < m; j++) block[done + j] = from[j * stride];                        \
      cuplug_walk_on(&walk, loop, k, m);                                                           \
    }                                                                                              \
    return block;                                                                                  \
  }                                                                                                \
  static __attribute__((unused)) void cuplug_scatter_##T(                                          \
      const T *block, void *data, const cuplug_loop *loop, unsigned k, int64_t begin, int64_t n) { \
    cuplug_walk walk;                                                                              \
    const int last = loop->ndim - 1;                                                               \
    cuplug_walk_to(&walk, loop, k, begin);                                                         \
    if (last < 0) *(T *)data = *block;                                                             \
    for (int64_t done = 0, m; last >= 0 && done < n; done += m) {                                  \
      T *to = (T *)data + walk.offset;                                                             \
      const int64_t stride = loop->strides[last][k];                                               \
      m = cuplug_least(n - done, loop->sizes[last] - walk.at[last]);                               \
      for (int64_t j = 0; j < m; j++) to[j * stride] = block[done + j];                            \
      cuplug_walk_on(&walk, loop, k, m);                                                           \
    }                                                                                              \
  }
CUPLUG_DEFINE_MOVES(uint8_t)
CUPLUG_DEFINE_MOVES(int8_t)
CUPLUG_DEFINE_MOVES(uint16_t)
CUPLUG_DEFINE_MOVES(int16_t)
CUPLUG_DEFINE_MOVES(uint32_t)
CUPLUG_DEFINE_MOVES(int32_t)
CUPLUG_DEFINE_MOVES(uint64_t)
CUPLUG_DEFINE_MOVES(int64_t)
CUPLUG_DEFINE_MOVES(float)
CUPLUG_DEFINE_MOVES(double)
CUPLUG_DEFINE_MOVES(complex64_t)
CUPLUG_DEFINE_MOVES(complex128_t)
