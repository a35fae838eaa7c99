/* SPDX-License-Identifier: Apache-2.0 */
/* What stands before an expression that NVRTC compiles, after <cuplug/loop.h>; needs no header. */
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;

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

template <typename T, int WIDTH> struct alignas(WIDTH * sizeof(T)) pack { T value[WIDTH]; };

/* The pack at an element; one that stands still has the same element WIDTH times. */
template <int WIDTH, bool STILL, typename T>
__device__ inline pack<T, WIDTH> load(const T *data, int64_t at) {
  if constexpr (!STILL) return *reinterpret_cast<const pack<T, WIDTH> *>(data + at);
  [[maybe_unused]] pack<T, WIDTH> result;
  const T value = data[at];
#pragma unroll
  for (int k = 0; k < WIDTH; k++) result.value[k] = value;
  return result;
}

__device__ inline unsigned divide(unsigned n, const cuplug_divisor &by) {
  return (__umulhi(n, by.magic) + n) >> by.shift;
}
__device__ inline int64_t divide(int64_t n, const cuplug_divisor &by) { return n / by.size; }

template <int N> struct divisors { cuplug_divisor of[N ? N : 1]; };
template <int N_ARRAYS, int N> struct strides { long long of[N_ARRAYS][N ? N : 1]; };

/* Where element n of a loop of N dimensions lies in each array, in elements. */
template <int N, int N_ARRAYS, typename INDEX>
__device__ inline void locate(INDEX n, const divisors<N> &sizes, const strides<N_ARRAYS, N> &steps,
                              int64_t (&at)[N_ARRAYS]) {
#pragma unroll
  for (int d = N - 1; d >= 0; d--) {
    const INDEX rest = d ? divide(n, sizes.of[d]) : 0;
    const int64_t index = n - rest * (INDEX)sizes.of[d].size;
#pragma unroll
    for (int k = 0; k < N_ARRAYS; k++) at[k] += index * steps.of[k][d];
    n = rest;
  }
}

constexpr int THREADS = 256;

} // namespace cuplug

#define CUPLUG_KERNEL extern "C" __global__ void __launch_bounds__(cuplug::THREADS)
#define CUPLUG_KERNEL_FOR(n_blocks) \
  extern "C" __global__ void __launch_bounds__(cuplug::THREADS, n_blocks)
