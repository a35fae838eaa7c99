/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of relu.c. */
#include "elementwise.cuh"

namespace {

struct forward {
  template <typename T> __device__ T operator()(T x) const { return x <= 0 ? T(0) : x; }
};

struct backward {
  template <typename T> __device__ T operator()(T grad, T x) const { return x <= 0 ? T(0) : grad; }
};

} // namespace

CUPLUG_ENTRY int relu_cuda(const cuplug_call *call) {
#define CASE(DTYPE, T) \
  case CUPLUG_##DTYPE: \
    return elementwise::map_call<1, T>(call, forward{});
  switch (cuplug_type(&call->tensors[0])) {
    ELEMENTWISE_FLOATING(CASE)
    ELEMENTWISE_SIGNED(CASE)
  }
#undef CASE
  return elementwise::no_dtype(call);
}

CUPLUG_ENTRY int relu_backward_cuda(const cuplug_call *call) {
#define CASE(DTYPE, T) \
  case CUPLUG_##DTYPE: \
    return elementwise::map_call<2, T>(call, backward{});
  switch (cuplug_type(&call->tensors[0])) {
    ELEMENTWISE_FLOATING(CASE)
    ELEMENTWISE_SIGNED(CASE)
  }
#undef CASE
  return elementwise::no_dtype(call);
}
