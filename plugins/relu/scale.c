/* SPDX-License-Identifier: Apache-2.0 */
/* scale(data, factor): data = factor data, in place.   data: T[...], factor: a scalar of T
 * T: floating dtypes, integers and complex dtypes. Integers wrap around, as in NumPy.
 * scale_backward(grad, factor) = conj(factor) grad.     grad: T[...] -> T[...]
 * T: floating dtypes and complex dtypes.
 * Each element is read and written once. float16 and bfloat16 are computed as float32, with a
 * factor rounded to float32. */
#include "elementwise.h"

CUPLUG_ENTRY int scale_cuda(const cuplug_call *call);
CUPLUG_ENTRY int scale_backward_cuda(const cuplug_call *call);

#define FLOATING(DTYPE, T)                          \
  case CUPLUG_##DTYPE: {                            \
    T *data = call->tensors[0].data;                \
    const T factor = (T)call->scalars[0].f;         \
    ELEMENTWISE_LOOP(i, data[i] = data[i] * factor) \
    return CUPLUG_OK;                               \
  }

/* The lowest bits of a product are the same for signed and unsigned factors. */
#define INTEGER(SIGNED, UNSIGNED, stored, computed)           \
  case CUPLUG_##SIGNED:                                       \
  case CUPLUG_##UNSIGNED: {                                   \
    stored *data = call->tensors[0].data;                     \
    const computed factor = (computed)call->scalars[0].u;     \
    ELEMENTWISE_LOOP(i, data[i] = (stored)(data[i] * factor)) \
    return CUPLUG_OK;                                         \
  }

/* A product that is rounded separately: with vectors, gcc 12 fuses products of complex numbers with
 * their sums, despite -ffp-contract, but not in the rest of a loop. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_assoc_barrier)
#define PRODUCT(a, b) __builtin_assoc_barrier((a) * (b))
#endif
#endif
#ifndef PRODUCT
#define PRODUCT(a, b) ((a) * (b))
#endif

/* Written out, since C's product of complex numbers checks each for infinities. */
#define COMPLEX(DTYPE, part)                                                       \
  case CUPLUG_##DTYPE: {                                                           \
    part *data = call->tensors[0].data;                                            \
    const part re = (part)call->scalars[0].c[0], im = (part)call->scalars[0].c[1]; \
    ELEMENTWISE_LOOP(i, {                                                          \
      const part x = data[2 * i], y = data[2 * i + 1];                             \
      data[2 * i] = PRODUCT(x, re) - PRODUCT(y, im);                               \
      data[2 * i + 1] = PRODUCT(x, im) + PRODUCT(y, re);                           \
    })                                                                             \
    return CUPLUG_OK;                                                              \
  }

ELEMENTWISE_HALVES_ENTRY(scale_host) {
  switch (cuplug_type(&call->tensors[0])) {
    ELEMENTWISE_FLOATING(FLOATING)
    INTEGER(INT8, UINT8, uint8_t, uint32_t)
    INTEGER(INT16, UINT16, uint16_t, uint32_t)
    INTEGER(INT32, UINT32, uint32_t, uint32_t)
    INTEGER(INT64, UINT64, uint64_t, uint64_t)
    COMPLEX(COMPLEX64, float)
    COMPLEX(COMPLEX128, double)
  }
  return elementwise_no_dtype(call);
}

#define FLOATING_BACKWARD(DTYPE, T)                     \
  case CUPLUG_##DTYPE: {                                \
    const T *restrict grad = call->tensors[0].data;     \
    T *out = call->tensors[1].data;                     \
    const T factor = (T)call->scalars[0].f;             \
    ELEMENTWISE_MAP(call, T, out, i, grad[i] * factor); \
    return CUPLUG_OK;                                   \
  }

#define COMPLEX_BACKWARD(DTYPE, part)                                               \
  case CUPLUG_##DTYPE: {                                                            \
    const part *restrict grad = call->tensors[0].data;                              \
    part *restrict out = call->tensors[1].data;                                     \
    const part re = (part)call->scalars[0].c[0], im = -(part)call->scalars[0].c[1]; \
    ELEMENTWISE_LOOP(i, {                                                           \
      const part x = grad[2 * i], y = grad[2 * i + 1];                              \
      out[2 * i] = PRODUCT(x, re) - PRODUCT(y, im);                                 \
      out[2 * i + 1] = PRODUCT(x, im) + PRODUCT(y, re);                             \
    })                                                                              \
    return CUPLUG_OK;                                                               \
  }

ELEMENTWISE_HALVES_ENTRY(scale_backward_host) {
  switch (cuplug_type(&call->tensors[0])) {
    ELEMENTWISE_FLOATING(FLOATING_BACKWARD)
    COMPLEX_BACKWARD(COMPLEX64, float)
    COMPLEX_BACKWARD(COMPLEX128, double)
  }
  return elementwise_no_dtype(call);
}

CUPLUG_OPERATOR(scale_cuda, scale_host,
                "scale(inout data: T[...], factor: T) where T: floating | integer | "
                "complex",
                "Multiplies data by factor, in place." CUPLUG_CUDA_TAKES_STRIDES CUPLUG_NONBLOCKING
                    CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(scale_backward) CUPLUG_LINEAR(data));
CUPLUG_OPERATOR(
    scale_backward_cuda, scale_backward_host,
    "scale_backward(grad: T[...], factor: T) -> T[...] where T: floating | complex",
    "The gradient of scale: grad times the conjugate of factor." CUPLUG_CUDA_TAKES_STRIDES
        CUPLUG_NONBLOCKING CUPLUG_IN_PLACE CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(scale)
            CUPLUG_LINEAR(grad));
