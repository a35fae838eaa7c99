/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of quantize.c. */
#include <cuda_fp8.h>

#include "rows/launch.cuh"

namespace {

struct greater_bits {
  __device__ uint32_t operator()(uint32_t a, uint32_t b) const { return a > b ? a : b; }
};

__device__ inline uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits & 0x7fffffffu;
}

struct as_int8 {
  using type = int8_t;
  static constexpr float GREATEST = 127;
  __device__ static float value(float x) { return rintf(fmaxf(fminf(x, 127), -127)); }
};
struct as_float8 {
  using type = __nv_fp8_e4m3;
  static constexpr float GREATEST = 448;
  __device__ static float value(float x) { return x; }
};

template <typename T, typename As> struct quantize {
  static constexpr int KEPT = 1;
  const T *x;
  typename As::type *values;
  float *scales;
  template <typename Part> __device__ void run(const Part &p) const {
    const auto own = p.keep(p.at(x));
    uint32_t bits = 0; /* in the order of magnitudes, followed by NaN */
    p.each([&](float v) { bits = greater_bits()(bits, bits_of(v)); }, own);
    bits = p.reduce(bits, 0u, greater_bits());
    float most;
    memcpy(&most, &bits, sizeof most);
    const float scale = most / As::GREATEST, factor = scale >= 0x1p-126f ? 1 / scale : 0;
    p.map(
        p.at(values), [=](float v) { return As::value(v * factor); }, own);
    if (p.is_first()) scales[p.row] = scale;
  }
};

template <typename As> int run(const cuplug_call *call) {
  const cuplug_tensor *t = call->tensors;
  if (rows::length(t) == 0) { /* rows without elements also have a scale */
    const cuplug::call own = call;
    const size_t bytes = (size_t)cuplug_n_elements(t + 2) * sizeof(float);
    return bytes ? own.check(cudaMemsetAsync(t[2].data, 0, bytes, own.stream())) : (int)CUPLUG_OK;
  }
  return rows::by_dtype(t, [=](auto zero) {
    using T = decltype(zero);
    const quantize<T, As> op = {(const T *)t[0].data, (typename As::type *)t[1].data,
                                (float *)t[2].data};
    return rows::launch<T>(call, rows::count(t), rows::length(t), op, op.x, op.values);
  });
}

} // namespace

CUPLUG_ENTRY int quantize_int8_cuda(const cuplug_call *call) { return run<as_int8>(call); }
CUPLUG_ENTRY int quantize_float8_cuda(const cuplug_call *call) { return run<as_float8>(call); }
