/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the host and the CUDA entries of histograms: the bin of a number. */
#ifndef CUPLUG_PLUGINS_HISTOGRAM_BINS_H
#define CUPLUG_PLUGINS_HISTOGRAM_BINS_H

#include "sort_keys.h"

#include <float.h>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else
#include <cuplug/half.h>
#endif

/* Numbers x of a dtype. Even bins are between low and high, others between edges. Without either, x
 * are the numbers of bins. */
typedef struct bins {
  const void *x, *edges;
  int64_t n, n_bins;
  uint32_t type;
  int is_even;
  double low, high, scale; /* scale: bins per unit */
  double margin; /* in bins: at this distance from all even edges, rounding does not matter */
  order order;
} bins;

#ifdef __CUDACC__
#define BINS_HALF(x) __half2float(__ushort_as_half(x))
#define BINS_BFLOAT(x) __bfloat162float(__ushort_as_bfloat16(x))
#define BINS_SUM_OF_PRODUCT(a, b, c) __dadd_rn(__dmul_rn(a, b), c)
#define BINS_DEVICE static __device__ __forceinline__
#define BINS_ROUND_HALF(x) __half2float(__double2half(x))
#define BINS_ROUND_BFLOAT(x) __bfloat162float(__double2bfloat16(x))
#else
#define BINS_HALF(x) cuplug_float16_load(x)
#define BINS_BFLOAT(x) cuplug_bfloat16_load(x)
#define BINS_SUM_OF_PRODUCT(a, b, c) ((a) * (b) + (c)) /* compiled without contraction */
#define BINS_DEVICE static inline __attribute__((always_inline))
#define BINS_ROUND_HALF(x) cuplug_float16_load(cuplug_float16_store((float)(x)))
#define BINS_ROUND_BFLOAT(x) cuplug_bfloat16_load(cuplug_bfloat16_store((float)(x)))
#endif

BINS_DEVICE double bins_number(uint32_t type, const void *x, int64_t i) {
  switch (type) {
  case CUPLUG_BOOL:
  case CUPLUG_UINT8:
    return ((const uint8_t *)x)[i];
  case CUPLUG_INT8:
    return ((const int8_t *)x)[i];
  case CUPLUG_INT16:
    return ((const int16_t *)x)[i];
  case CUPLUG_UINT16:
    return ((const uint16_t *)x)[i];
  case CUPLUG_INT32:
    return ((const int32_t *)x)[i];
  case CUPLUG_UINT32:
    return ((const uint32_t *)x)[i];
  case CUPLUG_INT64:
    return (double)((const int64_t *)x)[i];
  case CUPLUG_UINT64:
    return (double)((const uint64_t *)x)[i];
  case CUPLUG_FLOAT16:
    return BINS_HALF(((const uint16_t *)x)[i]);
  case CUPLUG_BFLOAT16:
    return BINS_BFLOAT(((const uint16_t *)x)[i]);
  case CUPLUG_FLOAT32:
    return ((const float *)x)[i];
  default:
    return ((const double *)x)[i];
  }
}

/* Edges are rounded to the dtype of x, as NumPy's are. */
BINS_DEVICE double bins_rounded(uint32_t type, double x) {
  return type == CUPLUG_FLOAT32    ? (double)(float)x
         : type == CUPLUG_FLOAT16  ? (double)BINS_ROUND_HALF(x)
         : type == CUPLUG_BFLOAT16 ? (double)BINS_ROUND_BFLOAT(x)
                                   : x;
}

BINS_DEVICE double bins_edge(const bins *b, int64_t k) {
  const double step = (b->high - b->low) / (double)b->n_bins;
  const double edge = k == b->n_bins ? b->high : BINS_SUM_OF_PRODUCT((double)k, step, b->low);
  return bins_rounded(b->type, edge);
}

/* The even bin of x, found by a division and then by its edges; -1: none. */
BINS_DEVICE int64_t bins_by_edges(const bins *b, double x) {
  if (!(x >= bins_rounded(b->type, b->low) && x <= bins_rounded(b->type, b->high))) return -1;
  int64_t k = (int64_t)((x - b->low) / (b->high - b->low) * (double)b->n_bins);
  k = k < 0 ? 0 : k >= b->n_bins ? b->n_bins - 1 : k;
  if (k > 0 && x < bins_edge(b, k)) return k - 1;
  return k < b->n_bins - 1 && x >= bins_edge(b, k + 1) ? k + 1 : k;
}

/* The same without division and edges, for almost all x that are in a bin. */
BINS_DEVICE int64_t bins_even(const bins *b, double x) {
  const double at = (x - b->low) * b->scale;
  if (at > 0 && at < (double)b->n_bins) {
    const int64_t k = (int64_t)at;
    const double rest = at - (double)k;
    if (rest > b->margin && rest < 1 - b->margin) return k;
  }
  return bins_by_edges(b, x);
}

BINS_DEVICE uint64_t bins_key(const bins *b, const void *x, int64_t i) {
  const int64_t width = b->order.n_bytes;
  return order_key(&b->order, width == 1   ? ((const uint8_t *)x)[i]
                              : width == 2 ? ((const uint16_t *)x)[i]
                              : width == 4 ? ((const uint32_t *)x)[i]
                                           : ((const uint64_t *)x)[i]);
}

/* The bin of element i between edges. The last edge is in the last bin; -1: none. */
BINS_DEVICE int64_t bins_between(const bins *b, int64_t i) {
  const uint64_t key = bins_key(b, b->x, i);
  int64_t first = 0;
  for (int64_t m = b->n_bins + 1; m > 0;) {
    const int64_t half = m / 2;
    const int is_behind = bins_key(b, b->edges, first + half) <= key;
    first = is_behind ? first + half + 1 : first;
    m = is_behind ? m - half - 1 : half;
  }
  if (order_is_nan(&b->order, key)) return -1;
  if (first <= b->n_bins) return first - 1;
  return bins_key(b, b->edges, b->n_bins) == key ? b->n_bins - 1 : -1;
}

/* The bin of element i, -1 for none. Numbers of bins may be bad values. */
BINS_DEVICE int64_t bins_of(const bins *b, int64_t i) {
  if (b->is_even) return bins_even(b, bins_number(b->type, b->x, i));
  if (b->edges) return bins_between(b, i);
  switch (b->type) { /* values that double cannot represent */
  case CUPLUG_INT64:
    return ((const int64_t *)b->x)[i];
  case CUPLUG_UINT64: {
    const uint64_t u = ((const uint64_t *)b->x)[i];
    return u <= INT64_MAX ? (int64_t)u : INT64_MAX;
  }
  default:
    return (int64_t)bins_number(b->type, b->x, i);
  }
}

enum { BINS_EVEN, BINS_EDGES, BINS_COUNTS };

/* Edges are wrong by half a unit in the last place of their dtype, or by half its smallest number,
 * and values computed in double by some units of double. */
static inline void bins_set_margin(bins *b) {
  const int is_half = b->type == CUPLUG_FLOAT16;
  const double unit = is_half                      ? 0x1p-11
                      : b->type == CUPLUG_BFLOAT16 ? 0x1p-8
                      : b->type == CUPLUG_FLOAT32  ? 0x1p-24
                                                   : 0;
  const double largest = b->high > -b->low ? b->high : -b->low;
  const double wrong = 2 * (unit + 0x1p-50) * largest + (is_half ? 0x1p-24 : 0x1p-133);
  b->scale = (double)b->n_bins / (b->high - b->low);
  b->margin = wrong * b->scale + (double)b->n_bins * 0x1p-49;
  if (!(b->scale > 0x1p-1000 && b->scale < 0x1p1000)) b->margin = 1; /* digits are lost */
}

static inline int bins_check(const cuplug_call *call, const bins *b) {
  if (!b->is_even || b->high - b->low <= DBL_MAX) return CUPLUG_OK;
  return cuplug_fail(call, CUPLUG_ERROR_VALUE,
                     "high: got a distance from low that is not finite, expected one that is");
}

static inline bins bins_of_call(const cuplug_call *call, int what) {
  const cuplug_tensor *x = &call->tensors[0];
  bins b = {x->data, 0, cuplug_n_elements(x), call->outputs[0].shape[0], cuplug_type(x), 0, 0, 0,
            0,       0, order_of(x, 0)};
  b.is_even = what == BINS_EVEN;
  if (b.is_even) b.low = call->scalars[1].f;
  if (b.is_even) b.high = call->scalars[2].f;
  if (b.is_even) bins_set_margin(&b);
  if (what == BINS_EDGES) b.edges = call->tensors[1].data;
  return b;
}

#endif
