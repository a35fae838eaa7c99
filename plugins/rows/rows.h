/* SPDX-License-Identifier: Apache-2.0 */
/* Host loops over rows, in blocks of float32: a row stays in the first-level caches after its first
 * pass. Sums have a fixed order, so their bits do not depend on the vectors of the CPU, the number
 * of rows or the number of threads. */
#ifndef CUPLUG_PLUGINS_ROWS_H
#define CUPLUG_PLUGINS_ROWS_H

#include <cuplug/halves.h>
#include <cuplug/plugin.h>
#include <math.h>

#include "vectors.h"

enum { ROWS_LANES = 32, ROWS_BLOCK = 2048 };
enum { ROWS_GRAIN = 16384 }; /* elements that are worth a thread */

#define ROWS_DTYPES " where T: float16 | bfloat16 | float32"
#define ROWS_PROPERTIES CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC
#define ROWS_INLINE static inline __attribute__((always_inline))

typedef struct rows_block {
  float at[ROWS_BLOCK] __attribute__((aligned(64)));
} rows_block;

static inline int64_t rows_length(const cuplug_tensor *x) { return x->shape[x->ndim - 1]; }
static inline int64_t rows_count(const cuplug_tensor *x) {
  const int64_t n = rows_length(x);
  return n ? cuplug_n_elements(x) / n : 0;
}

/* Loads m elements from number `first` on, followed by `rest` up to a multiple of the lanes. */
static inline void rows_load(rows_block *to, const cuplug_tensor *x, int64_t first, int64_t m,
                             float rest) {
  const char *from = (const char *)x->data + first * cuplug_element_bytes(x);
  const uint32_t type = cuplug_type(x);
  if (type == CUPLUG_FLOAT32)
    memcpy(to->at, from, (size_t)m * sizeof(float));
  else if (type == CUPLUG_FLOAT16)
    cuplug_float16_load_block(to->at, (const uint16_t *)from, (size_t)m);
  else
    cuplug_bfloat16_load_block(to->at, (const uint16_t *)from, (size_t)m);
  for (; m % ROWS_LANES; m++) to->at[m] = rest;
}

static inline void rows_store(const cuplug_tensor *x, int64_t first, int64_t m,
                              const rows_block *from) {
  char *to = (char *)x->data + first * cuplug_element_bytes(x);
  const uint32_t type = cuplug_type(x);
  if (type == CUPLUG_FLOAT32)
    memcpy(to, from->at, (size_t)m * sizeof(float));
  else if (type == CUPLUG_FLOAT16)
    cuplug_float16_store_block((uint16_t *)to, from->at, (size_t)m);
  else
    cuplug_bfloat16_store_block((uint16_t *)to, from->at, (size_t)m);
}

/* Runs the statements that follow for each block of a row of n: `begin`, and its `m` elements. */
#define ROWS_OVER(n)                                                                           \
  for (int64_t begin = 0, m; m = (n)-begin < ROWS_BLOCK ? (n)-begin : ROWS_BLOCK, begin < (n); \
       begin += ROWS_BLOCK)

#ifdef __clang__
#define ROWS_SIMD _Pragma("clang loop vectorize(assume_safety)")
#else
#define ROWS_SIMD _Pragma("GCC ivdep")
#endif

/* Runs the statement that follows for each element of a block. */
#define ROWS_EACH(i, ...) ROWS_SIMD for (int64_t i = 0; i < m; i++) __VA_ARGS__;

/* The elements of a block, up to a multiple of the lanes. `lane` is the lane of element i. */
#define ROWS_LANES_EACH(i, lane, ...)                             \
  for (int64_t base_ = 0; base_ < m; base_ += ROWS_LANES)         \
    ROWS_SIMD for (int64_t lane = 0; lane < ROWS_LANES; lane++) { \
      const int64_t i = base_ + lane;                             \
      __VA_ARGS__;                                                \
    }
#define ROWS_ADD(lanes, i, value) ROWS_LANES_EACH(i, lane_, lanes[lane_] += value)

/* The sum of the lanes, which it overwrites. */
static inline float rows_sum(float *lanes) {
  for (int n = ROWS_LANES / 2; n; n /= 2)
    for (int k = 0; k < n; k++) lanes[k] += lanes[k + n];
  return lanes[0];
}

/* The maximum of a row. `block` is the row, or its last block. */
ROWS_INLINE float rows_greatest(rows_block *block, const cuplug_tensor *x, int64_t row, int64_t n) {
  float lanes[ROWS_LANES];
  for (int k = 0; k < ROWS_LANES; k++) lanes[k] = -INFINITY;
  ROWS_OVER(n) {
    rows_load(block, x, row * n + begin, m, -INFINITY);
    ROWS_LANES_EACH(i, lane, lanes[lane] = block->at[i] > lanes[lane] ? block->at[i] : lanes[lane])
  }
  float most = -INFINITY;
  for (int k = 0; k < ROWS_LANES; k++) most = lanes[k] > most ? lanes[k] : most;
  return most;
}

/* e to the power of x: 0 below -87, infinity above 88, NaN for NaN. Between them, the error is at
 * most 3.1 units in the last place. It has no branches, so that loops are vectorized. */
ROWS_INLINE float rows_exponential(float x) {
  const float above = x < -87 ? -87 : x, t = above > 88 ? 88 : above;
  const float shifted = t * 0x1.715476p0f + 0x1.8p23f, k = shifted - 0x1.8p23f;
  const float r = (t - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f;
  float q = 0x1.6c16c2p-10f;
  q = q * r + 0x1.111112p-7f;
  q = q * r + 0x1.555556p-5f;
  q = q * r + 0x1.555556p-3f;
  q = q * r + 0.5f;
  q = q * r + 1;
  q = q * r + 1;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 127) << 23; /* 2^k */
  float power;
  memcpy(&power, &bits, sizeof power);
  const float y = q * power, low = x < -87 ? 0 : y;
  return x > 88 ? __builtin_inff() : low;
}

/* Calls `body` for ranges of rows, on several threads if they are long enough. */
static inline int rows_parallel(const cuplug_call *call, int64_t n_rows, int64_t n,
                                cuplug_body *body, void *context) {
  return cuplug_parallel(call, n_rows, n < ROWS_GRAIN ? ROWS_GRAIN / (n + (n == 0)) : 1, body,
                         context);
}

/* A host entry that calls its body for one row, number `row` of the first array's rows. */
#define ROWS_ENTRY(name)                                                                  \
  VECTORS static void name##_row(const cuplug_call *call, int64_t row, int64_t n);        \
  static int name##_rows(void *call, int64_t begin, int64_t end) {                        \
    const int64_t n = rows_length(((const cuplug_call *)call)->tensors);                  \
    for (int64_t row = begin; row < end; row++) name##_row(call, row, n);                 \
    return CUPLUG_OK;                                                                     \
  }                                                                                       \
  CUPLUG_ENTRY int name(const cuplug_call *call) {                                        \
    const cuplug_tensor *x = call->tensors;                                               \
    return rows_parallel(call, rows_count(x), rows_length(x), name##_rows, (void *)call); \
  }                                                                                       \
  VECTORS static void name##_row(const cuplug_call *call, int64_t row, int64_t n)

#endif
