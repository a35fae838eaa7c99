/* SPDX-License-Identifier: Apache-2.0 */
/* Code shared by plugins for many dtypes: elements as bytes of some width, kinds of numbers, and
 * lines of elements along an axis. For host and CUDA entries. */
#ifndef CUPLUG_PLUGINS_ELEMENTS_H
#define CUPLUG_PLUGINS_ELEMENTS_H

#include <cuplug/format.h>
#include <cuplug/plugin.h>

#ifdef __CUDACC__
#define ELEMENTS_INLINE static __host__ __device__ __forceinline__
#else
#define ELEMENTS_INLINE static inline __attribute__((always_inline))
#endif

/* An element of 16 bytes. */
typedef struct two_words {
  uint64_t at[2];
} two_words;

/* CASE(type) for an unsigned type as wide as the elements. */
#define ELEMENTS_BY_WIDTH(n_bytes, CASE) \
  switch (n_bytes) {                     \
  case 1:                                \
    CASE(uint8_t)                        \
    break;                               \
  case 2:                                \
    CASE(uint16_t)                       \
    break;                               \
  case 4:                                \
    CASE(uint32_t)                       \
    break;                               \
  case 8:                                \
    CASE(uint64_t)                       \
    break;                               \
  default:                               \
    CASE(two_words)                      \
  }

/* The dtypes of numbers whose zero has only zero bits, for tables of operators that test or clear
 * elements. */
#define ELEMENTS_WITH_ZERO "bool | integer | floating | complex | float8_e4m3fn | float8_e5m2"

static inline int elements_are_complex(const cuplug_tensor *x) {
  return cuplug_type(x) == CUPLUG_COMPLEX64 || cuplug_type(x) == CUPLUG_COMPLEX128;
}

/* Bool and integers. */
static inline int elements_are_whole(const cuplug_tensor *x) {
  return x->dtype.code <= 1 || cuplug_type(x) == CUPLUG_BOOL;
}

/* An array around its axis: n_outer parts of m rows of `width` elements, or n_outer * width lines
 * of m. */
typedef struct elements_axis {
  int64_t n_outer, m, width;
} elements_axis;

static inline elements_axis elements_around(const cuplug_tensor *x, int64_t axis) {
  elements_axis a = {1, 1, 1};
  axis += axis < 0 ? x->ndim : 0;
  for (int64_t d = 0; d < x->ndim; d++)
    *(d < axis ? &a.n_outer : d > axis ? &a.width : &a.m) *= x->shape[d];
  return a;
}

/* The first element of line number `line`. The others follow at distances of `width`. */
ELEMENTS_INLINE int64_t elements_line(const elements_axis *a, int64_t line) {
  const int64_t outer = a->width == 1 ? line : line / a->width;
  return outer * a->m * a->width + (a->width == 1 ? 0 : line - outer * a->width);
}

/* Fails unless `x` has the sizes of `beside`, except along the axis. Both have the same number of
 * dimensions. */
static inline int elements_check_beside(const cuplug_call *call, const char *name,
                                        const cuplug_tensor *x, const cuplug_tensor *beside,
                                        int64_t axis) {
  axis += axis < 0 ? x->ndim : 0;
  for (int32_t d = 0; d < x->ndim; d++)
    if (d != axis && x->shape[d] != beside->shape[d])
      return cuplug_failf(call, CUPLUG_ERROR_VALUE,
                          "%s: got size %lld in dimension %d, expected %lld", name,
                          (long long)x->shape[d], (int)d, (long long)beside->shape[d]);
  return CUPLUG_OK;
}

#endif
