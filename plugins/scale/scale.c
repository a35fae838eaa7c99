/* SPDX-License-Identifier: Apache-2.0 */
/* scale(data, factor): data = factor data, in place.   data: T[...], factor: a scalar of T
 * T: floating dtypes, integers and complex dtypes. Integers wrap around, as NumPy's do. Each
 * element is read and written once. float16 and bfloat16 are computed with as float32, by a factor
 * rounded to float32. */
#include "elementwise.h"

CUPLUG_ENTRY int scale_cuda(const cuplug_call *call);

#define FLOATING(DTYPE, stored, computed, load, store)           \
  case CUPLUG_##DTYPE: {                                         \
    stored *data = call->tensors[0].data;                        \
    const computed factor = (computed)call->scalars[0].f;        \
    ELEMENTWISE_LOOP(i, data[i] = store(load(data[i]) * factor)) \
    return CUPLUG_OK;                                            \
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

/* Written out: C's own product of complex numbers looks for infinities in each. */
#define COMPLEX(DTYPE, part)                                                       \
  case CUPLUG_##DTYPE: {                                                           \
    part *data = call->tensors[0].data;                                            \
    const part re = (part)call->scalars[0].c[0], im = (part)call->scalars[0].c[1]; \
    ELEMENTWISE_LOOP(i, {                                                          \
      const part x = data[2 * i], y = data[2 * i + 1];                             \
      data[2 * i] = x * re - y * im;                                               \
      data[2 * i + 1] = x * im + y * re;                                           \
    })                                                                             \
    return CUPLUG_OK;                                                              \
  }

ELEMENTWISE_ENTRY(scale_host) {
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

CUPLUG_OPERATOR(scale_cuda, scale_host,
                "scale(inout data: T[...], factor: T) where T: floating | integer | "
                "complex",
                "Multiplies data by factor, in place." CUPLUG_NEVER_WAITS);
CUPLUG_PLUGIN(scale, "1.0.0");
