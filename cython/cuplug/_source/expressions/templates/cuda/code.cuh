/* SPDX-License-Identifier: Apache-2.0 */
/* The code before an expression that NVRTC compiles, after <cuplug/loop.h>. */
#include <stdint.h>

namespace cuplug {

union cuplug_scalar {
  double f;
  int64_t i;
  uint64_t u;
  double c[2];
};

template <typename A> __device__ inline auto abs(A x) -> decltype(x + 0) {
  if constexpr (A(-1) > A(0))
    return x + 0;
  else
    return ::abs(x + 0);
}

__device__ inline float cuplug_float_of_bits(uint32_t bits) { return __uint_as_float(bits); }
__device__ inline uint32_t cuplug_bits_of_float(float value) { return __float_as_uint(value); }

/* 2^x, with an error of at most 2 units in the last place; 0 for subnormal results. */
__device__ inline float cuplug_exp2(float x) {
  float value;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}

__device__ inline float cuplug_float16_load(uint16_t x) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x));
  return value;
}
__device__ inline uint16_t cuplug_float16_store(float x) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
__device__ inline uint32_t cuplug_float16_store_two(float low, float high) {
#if __CUDA_ARCH__ >= 800
  uint32_t bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
#else
  return cuplug_float16_store(low) | (uint32_t)cuplug_float16_store(high) << 16;
#endif
}
__device__ inline float cuplug_bfloat16_load(uint16_t x) {
  return __uint_as_float((unsigned)x << 16);
}
__device__ inline uint16_t cuplug_bfloat16_store(float x) {
#if __CUDA_ARCH__ >= 800
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
#else
  const unsigned bits = __float_as_uint(x);
  return (uint16_t)(x != x ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
}
__device__ inline uint32_t cuplug_bfloat16_store_two(float low, float high) {
#if __CUDA_ARCH__ >= 800
  uint32_t bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
#else
  return cuplug_bfloat16_store(low) | (uint32_t)cuplug_bfloat16_store(high) << 16;
#endif
}

} // namespace cuplug

#define CUPLUG_KERNEL extern "C" __global__ void __launch_bounds__(cuplug::THREADS)
#define CUPLUG_KERNEL_FOR(n_blocks) \
  extern "C" __global__ void __launch_bounds__(cuplug::THREADS, n_blocks)
