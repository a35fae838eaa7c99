/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of scale.c. */
#include "elementwise.cuh"

namespace {

using elementwise::complex_number;
using numbers =
    elementwise::floating::with<complex_number<float>, complex_number<double>, int8_t, int16_t,
                                int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;

struct product {
  cuplug_scalar factor;
  __device__ float operator()(float x) const { return x * (float)factor.f; }
  __device__ double operator()(double x) const { return x * factor.f; }
  template <typename T> __device__ complex_number<T> operator()(complex_number<T> x) const {
    return x * complex_number<T>{(T)factor.c[0], (T)factor.c[1]};
  }
  /* Unsigned and wide: small integers would be multiplied as int, which must not overflow. The
   * lowest bits are the same for signed and unsigned factors. */
  template <typename T> __device__ T operator()(T x) const { return (T)((uint64_t)x * factor.u); }
};

} // namespace

/* In place if there is no output. */
CUPLUG_ENTRY int scale_cuda(const cuplug_call *call) {
  return elementwise::map_call<1>(call, numbers(), product{call->scalars[0]});
}

CUPLUG_ENTRY int scale_backward_cuda(const cuplug_call *call) {
  product by = {call->scalars[0]};
  const uint32_t dtype = cuplug_type(&call->tensors[0]);
  if (dtype == CUPLUG_COMPLEX64 || dtype == CUPLUG_COMPLEX128) by.factor.c[1] = -by.factor.c[1];
  return elementwise::map_call<1>(call, numbers(), by);
}
