/* SPDX-License-Identifier: Apache-2.0 */
/* relu(x) = x where x > 0, else 0; NaN stays NaN.    x: T[...] -> T[...]
 * relu_backward(grad, x) = 0 where x <= 0, else grad.  grad, x: T[...] -> T[...]
 * T: floating dtypes and integers; unsigned ones are unchanged. relu reads and writes each element
 * once; relu_backward reads two. */
#include "elementwise.h"

/* 16-bit floats in the order of their bits: a number with the sign of the float; 1 for NaN. */
static inline int16_t order_float16(uint16_t x) { return x > 0xfc00 ? 1 : (int16_t)x; }
static inline int16_t order_bfloat16(uint16_t x) { return x > 0xff80 ? 1 : (int16_t)x; }

/* X(DTYPE, type in memory, type that is compared with 0) */
#define ALL(X)                          \
  X(FLOAT16, uint16_t, order_float16)   \
  X(BFLOAT16, uint16_t, order_bfloat16) \
  X(FLOAT32, float, )                   \
  X(FLOAT64, double, )                  \
  X(INT8, int8_t, )                     \
  X(INT16, int16_t, )                   \
  X(INT32, int32_t, )                   \
  X(INT64, int64_t, )                   \
  X(UINT8, uint8_t, )                   \
  X(UINT16, uint16_t, )                 \
  X(UINT32, uint32_t, )                 \
  X(UINT64, uint64_t, )

CUPLUG_ENTRY int relu_cuda(const cuplug_call *call);
CUPLUG_ENTRY int relu_backward_cuda(const cuplug_call *call);

#define FORWARD(DTYPE, T, order)                                   \
  case CUPLUG_##DTYPE: {                                           \
    const T *restrict x = call->tensors[0].data;                   \
    T *out = call->tensors[1].data;                                \
    ELEMENTWISE_MAP(call, T, out, i, order(x[i]) <= 0 ? 0 : x[i]); \
    return CUPLUG_OK;                                              \
  }

ELEMENTWISE_ENTRY(relu_host) {
  switch (cuplug_type(&call->tensors[0])) { ALL(FORWARD) }
  return elementwise_no_dtype(call);
}

#define BACKWARD(DTYPE, T, order)                                     \
  case CUPLUG_##DTYPE: {                                              \
    const T *restrict grad = call->tensors[0].data;                   \
    const T *restrict x = call->tensors[1].data;                      \
    T *out = call->tensors[2].data;                                   \
    ELEMENTWISE_MAP(call, T, out, i, order(x[i]) <= 0 ? 0 : grad[i]); \
    return CUPLUG_OK;                                                 \
  }

ELEMENTWISE_ENTRY(relu_backward_host) {
  switch (cuplug_type(&call->tensors[0])) { ALL(BACKWARD) }
  return elementwise_no_dtype(call);
}

CUPLUG_OPERATOR(relu_cuda, relu_host, "relu(x: T[...]) -> T[...] where T: floating | integer",
                "x if it is positive, else 0." CUPLUG_CUDA_TAKES_STRIDES CUPLUG_NONBLOCKING
                    CUPLUG_IN_PLACE CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(relu_backward));
CUPLUG_OPERATOR(relu_backward_cuda, relu_backward_host,
                "relu_backward(grad: T[...], x: T[...]) -> T[...] where T: floating | integer",
                "The gradient of relu: grad if x is positive, else 0." CUPLUG_CUDA_TAKES_STRIDES
                    CUPLUG_NONBLOCKING CUPLUG_IN_PLACE CUPLUG_DETERMINISTIC
                        CUPLUG_GRADIENT(relu_backward) CUPLUG_LINEAR(grad));
CUPLUG_PLUGIN(relu, "1.0.0");
