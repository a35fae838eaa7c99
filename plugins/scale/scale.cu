/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of scale.c. */
#include "elementwise.cuh"

namespace {

template <typename T> struct product {
  T factor;
  __device__ T operator()(T x) const { return x * factor; }
};

/* Unsigned and wide: small integers would be multiplied as int, which must not overflow. */
template <typename T> struct wrapped_product {
  uint64_t factor;
  __device__ T operator()(T x) const { return (T)(x * factor); }
};

/* A complex number; its product written out, without the search for infinities of C's. */
template <typename T> struct alignas(2 * sizeof(T)) complex_number {
  T re, im;
  __device__ complex_number operator*(const complex_number &y) const {
    return {re * y.re - im * y.im, re * y.im + im * y.re};
  }
};

/* In place where there is no output. */
template <typename T> int scale_floating(const cuplug_call *call) {
  using computed = elementwise::computed_t<T>;
  return elementwise::map_call<1, T>(call, product<computed>{(computed)call->scalars[0].f});
}

template <typename T> int scale_complex(const cuplug_call *call, T sign) {
  const double *c = call->scalars[0].c;
  return elementwise::map_call<1, complex_number<T>>(
      call, product<complex_number<T>>{{(T)c[0], sign * (T)c[1]}});
}

} // namespace

CUPLUG_ENTRY int scale_cuda(const cuplug_call *call) {
#define CASE(DTYPE, T) \
  case CUPLUG_##DTYPE: \
    return scale_floating<T>(call);
  /* The lowest bits of a product are the same for signed and unsigned factors. */
#define INTEGER(SIGNED, UNSIGNED, T) \
  case CUPLUG_##SIGNED:              \
  case CUPLUG_##UNSIGNED:            \
    return elementwise::map_call<1, T>(call, wrapped_product<T>{call->scalars[0].u});
  switch (cuplug_type(&call->tensors[0])) {
    ELEMENTWISE_FLOATING(CASE)
    INTEGER(INT8, UINT8, uint8_t)
    INTEGER(INT16, UINT16, uint16_t)
    INTEGER(INT32, UINT32, uint32_t)
    INTEGER(INT64, UINT64, uint64_t)
  case CUPLUG_COMPLEX64:
    return scale_complex<float>(call, 1);
  case CUPLUG_COMPLEX128:
    return scale_complex<double>(call, 1);
  }
#undef CASE
#undef INTEGER
  return elementwise::no_dtype(call);
}

CUPLUG_ENTRY int scale_backward_cuda(const cuplug_call *call) {
#define CASE(DTYPE, T) \
  case CUPLUG_##DTYPE: \
    return scale_floating<T>(call);
  switch (cuplug_type(&call->tensors[0])) {
    ELEMENTWISE_FLOATING(CASE)
  case CUPLUG_COMPLEX64:
    return scale_complex<float>(call, -1);
  case CUPLUG_COMPLEX128:
    return scale_complex<double>(call, -1);
  }
#undef CASE
  return elementwise::no_dtype(call);
}
