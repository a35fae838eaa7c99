/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of leaky_relu.c. */
#include "elementwise.cuh"

namespace {

struct forward {
  double slope;
  template <typename T> __device__ T operator()(T x) const { return x > 0 ? x : (T)slope * x; }
};

struct backward {
  double slope;
  template <typename T> __device__ T operator()(T grad, T x) const {
    return x > 0 ? grad : (T)slope * grad;
  }
};

} // namespace

CUPLUG_ENTRY int leaky_relu_cuda(const cuplug_call *call) {
  return elementwise::map_call<1>(call, elementwise::floating(), forward{call->scalars[0].f});
}

CUPLUG_ENTRY int leaky_relu_backward_cuda(const cuplug_call *call) {
  return elementwise::map_call<2>(call, elementwise::floating(), backward{call->scalars[0].f});
}
