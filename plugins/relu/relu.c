/* SPDX-License-Identifier: Apache-2.0 */
/* relu(x) = x where x > 0, else 0; NaN stays NaN.    x: T[...] -> T[...]
 * relu_backward(grad, x) = 0 where x <= 0, else grad.  grad, x: T[...] -> T[...]
 * T: floating dtypes and signed integers. relu reads and writes each element once; relu_backward
 * reads two. float16 and bfloat16 are computed with as float32. */
#include "elementwise.h"

CUPLUG_ENTRY int relu_cuda(const cuplug_call *call);
CUPLUG_ENTRY int relu_backward_cuda(const cuplug_call *call);

#define FORWARD(DTYPE, stored, computed, load, store)                  \
  case CUPLUG_##DTYPE: {                                               \
    const stored *restrict x = call->tensors[0].data;                  \
    stored *out = call->tensors[1].data;                               \
    ELEMENTWISE_MAP(call, stored, out, i, load(x[i]) <= 0 ? 0 : x[i]); \
    return CUPLUG_OK;                                                  \
  }

ELEMENTWISE_ENTRY(relu_host) {
  switch (cuplug_type(&call->tensors[0])) {
    ELEMENTWISE_FLOATING(FORWARD)
    ELEMENTWISE_SIGNED(FORWARD)
  }
  return elementwise_no_dtype(call);
}

#define BACKWARD(DTYPE, stored, computed, load, store)                    \
  case CUPLUG_##DTYPE: {                                                  \
    const stored *restrict grad = call->tensors[0].data;                  \
    const stored *restrict x = call->tensors[1].data;                     \
    stored *out = call->tensors[2].data;                                  \
    ELEMENTWISE_MAP(call, stored, out, i, load(x[i]) <= 0 ? 0 : grad[i]); \
    return CUPLUG_OK;                                                     \
  }

ELEMENTWISE_ENTRY(relu_backward_host) {
  switch (cuplug_type(&call->tensors[0])) {
    ELEMENTWISE_FLOATING(BACKWARD)
    ELEMENTWISE_SIGNED(BACKWARD)
  }
  return elementwise_no_dtype(call);
}

CUPLUG_OPERATOR(relu_cuda, relu_host,
                "relu(x: T[...]) -> T[...] where T: floating | int8 | int16 | int32 | int64",
                "x where it is positive, else 0." CUPLUG_NEVER_WAITS CUPLUG_DETERMINISTIC
                    CUPLUG_GRADIENT(relu_backward));
CUPLUG_OPERATOR(relu_backward_cuda, relu_backward_host,
                "relu_backward(grad: T[...], x: T[...]) -> T[...] where "
                "T: floating | int8 | int16 | int32 | int64",
                "The gradient of relu: grad where x is positive, else 0." CUPLUG_NEVER_WAITS
                    CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(relu_backward) CUPLUG_LINEAR(grad));
CUPLUG_PLUGIN(relu, "1.0.0");
