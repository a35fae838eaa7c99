/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of relu.c. */
#include "elementwise.cuh"

namespace {

using numbers = elementwise::floating::with<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                                            uint32_t, uint64_t>;

struct forward {
  template <typename T> __device__ T operator()(T x) const { return x <= 0 ? T(0) : x; }
  __device__ unsigned of_word(elementwise::types<int8_t>, unsigned x) const {
    const unsigned negative = x >> 7 & 0x01010101;
    return x & ~(negative * 0xff);
  }
};

struct backward {
  template <typename T> __device__ T operator()(T grad, T x) const { return x <= 0 ? T(0) : grad; }
};

} // namespace

CUPLUG_ENTRY int relu_cuda(const cuplug_call *call) {
  return elementwise::map_call<1>(call, numbers(), forward());
}

CUPLUG_ENTRY int relu_backward_cuda(const cuplug_call *call) {
  return elementwise::map_call<2>(call, numbers(), backward());
}
