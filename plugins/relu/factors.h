/* SPDX-License-Identifier: Apache-2.0 */
/* Host entries of name(x) = f x and name_backward(grad, x) = f grad, for floating dtypes, where f
 * depends on the element of x: FACTOR(x, T), which may use the declarations in GIVEN(T). */
#ifndef CUPLUG_PLUGINS_RELU_FACTORS_H
#define CUPLUG_PLUGINS_RELU_FACTORS_H

#include "elementwise.h"

#define FACTOR_TIMES_FIRST(DTYPE, T, of)                          \
  case CUPLUG_##DTYPE: {                                          \
    const T *restrict first = call->tensors[0].data;              \
    const T *restrict x = call->tensors[of].data;                 \
    T *out = call->tensors[(of) + 1].data;                        \
    GIVEN(T)                                                      \
    ELEMENTWISE_MAP(call, T, out, i, first[i] * FACTOR(x[i], T)); \
    return CUPLUG_OK;                                             \
  }
#define FACTOR_FORWARD(DTYPE, T) FACTOR_TIMES_FIRST(DTYPE, T, 0)
#define FACTOR_BACKWARD(DTYPE, T) FACTOR_TIMES_FIRST(DTYPE, T, 1)

#define FACTOR_ENTRY(name, CASE)                                           \
  ELEMENTWISE_HALVES_ENTRY(name) {                                         \
    switch (cuplug_type(&call->tensors[0])) { ELEMENTWISE_FLOATING(CASE) } \
    return elementwise_no_dtype(call);                                     \
  }
#define FACTOR_ENTRIES(name)                \
  FACTOR_ENTRY(name##_host, FACTOR_FORWARD) \
  FACTOR_ENTRY(name##_backward_host, FACTOR_BACKWARD)

#endif
