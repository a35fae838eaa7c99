/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of leaky_relu.c. */
#include "elementwise.cuh"

namespace {

template <typename T> struct forward {
  T slope;
  __device__ T operator()(T x) const { return x > 0 ? x : slope * x; }
};

template <typename T> struct backward {
  T slope;
  __device__ T operator()(T grad, T x) const { return x > 0 ? grad : slope * grad; }
};

template <typename T, template <typename> class Op>
Op<elementwise::computed_t<T>> with_slope(const cuplug_call *call) {
  return {(elementwise::computed_t<T>)call->scalars[0].f};
}

} // namespace

CUPLUG_ENTRY int leaky_relu_cuda(const cuplug_call *call) {
#define CASE(DTYPE, T) \
  case CUPLUG_##DTYPE: \
    return elementwise::map_call<1, T>(call, with_slope<T, forward>(call));
  switch (cuplug_type(&call->tensors[0])) { ELEMENTWISE_FLOATING(CASE) }
#undef CASE
  return elementwise::no_dtype(call);
}

CUPLUG_ENTRY int leaky_relu_backward_cuda(const cuplug_call *call) {
#define CASE(DTYPE, T) \
  case CUPLUG_##DTYPE: \
    return elementwise::map_call<2, T>(call, with_slope<T, backward>(call));
  switch (cuplug_type(&call->tensors[0])) { ELEMENTWISE_FLOATING(CASE) }
#undef CASE
  return elementwise::no_dtype(call);
}
