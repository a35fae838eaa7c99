/* SPDX-License-Identifier: Apache-2.0 */
/* What the host entries of element-wise operators share: the dtypes as C types, and the loop. */
#ifndef CUPLUG_PLUGINS_ELEMENTWISE_H
#define CUPLUG_PLUGINS_ELEMENTWISE_H

#include "half.h"

#include <cuplug/plugin.h>

/* X(DTYPE, type in memory, type to compute with, load, store) */
#define ELEMENTWISE_FLOATING(X)                               \
  X(FLOAT16, uint16_t, float, float16_load, float16_store)    \
  X(BFLOAT16, uint16_t, float, bfloat16_load, bfloat16_store) \
  X(FLOAT32, float, float, , )                                \
  X(FLOAT64, double, double, , )
#define ELEMENTWISE_SIGNED(X)    \
  X(INT8, int8_t, int8_t, , )    \
  X(INT16, int16_t, int16_t, , ) \
  X(INT32, int32_t, int32_t, , ) \
  X(INT64, int64_t, int64_t, , )

/* Below this, starting threads costs more than they save. */
#define ELEMENTWISE_PARALLEL_FROM 65536

#define ELEMENTWISE_PRAGMA(text) _Pragma(#text)
/* for (int64_t i = 0; i < n; i++), vectorised, and in parallel where it pays. */
#define ELEMENTWISE_LOOP(call, i, n)                                                    \
  ELEMENTWISE_PRAGMA(omp parallel for simd schedule(static)                                        \
                         if (n >= ELEMENTWISE_PARALLEL_FROM && call->max_threads != 1)) \
  for (int64_t i = 0; i < n; i++)

static inline int elementwise_no_dtype(const cuplug_call *call) {
  return cuplug_fail(call, CUPLUG_ERROR_TYPE, "no code for this dtype");
}

#endif
