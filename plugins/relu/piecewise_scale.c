/* SPDX-License-Identifier: Apache-2.0 */
/* piecewise_scale(x) = f(x) x with f(x) = 0.5 where x < 0, 2 where 0 <= x < 1, else 0.1.
 * piecewise_scale_backward(grad, x) = f(x) grad.          grad, x: T[...] -> T[...]
 * T: floating dtypes. NaN stays NaN. Each element is read and written once. float16 and bfloat16
 * are computed with as float32; 0.1 is rounded to the dtype computed with. */
#include "elementwise.h"

CUPLUG_ENTRY int piecewise_scale_cuda(const cuplug_call *call);
CUPLUG_ENTRY int piecewise_scale_backward_cuda(const cuplug_call *call);

#define FACTOR(v, computed) ((v) < 0 ? (computed)0.5 : (v) < 1 ? (computed)2 : (computed)0.1)

#define SCALE(DTYPE, T)                                       \
  case CUPLUG_##DTYPE: {                                      \
    const T *restrict x = call->tensors[0].data;              \
    T *out = call->tensors[1].data;                           \
    ELEMENTWISE_MAP(call, T, out, i, x[i] * FACTOR(x[i], T)); \
    return CUPLUG_OK;                                         \
  }

ELEMENTWISE_HALVES_ENTRY(piecewise_scale_host) {
  switch (cuplug_type(&call->tensors[0])) { ELEMENTWISE_FLOATING(SCALE) }
  return elementwise_no_dtype(call);
}

#define BACKWARD(DTYPE, T)                                       \
  case CUPLUG_##DTYPE: {                                         \
    const T *restrict grad = call->tensors[0].data;              \
    const T *restrict x = call->tensors[1].data;                 \
    T *out = call->tensors[2].data;                              \
    ELEMENTWISE_MAP(call, T, out, i, grad[i] * FACTOR(x[i], T)); \
    return CUPLUG_OK;                                            \
  }

ELEMENTWISE_HALVES_ENTRY(piecewise_scale_backward_host) {
  switch (cuplug_type(&call->tensors[0])) { ELEMENTWISE_FLOATING(BACKWARD) }
  return elementwise_no_dtype(call);
}

CUPLUG_OPERATOR(
    piecewise_scale_cuda, piecewise_scale_host,
    "piecewise_scale(x: T[...]) -> T[...] where T: floating",
    "0.5 x below 0, 2 x below 1, 0.1 x from there on." CUPLUG_CUDA_TAKES_STRIDES CUPLUG_NEVER_WAITS
        CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(piecewise_scale_backward));
CUPLUG_OPERATOR(
    piecewise_scale_backward_cuda, piecewise_scale_backward_host,
    "piecewise_scale_backward(grad: T[...], x: T[...]) -> T[...] where T: floating",
    "The gradient of piecewise_scale: grad times the factor that x gets." CUPLUG_CUDA_TAKES_STRIDES
        CUPLUG_NEVER_WAITS CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(piecewise_scale_backward)
            CUPLUG_LINEAR(grad));
