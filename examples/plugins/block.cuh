/* SPDX-License-Identifier: Apache-2.0 */
/* Code shared by the kernels in this folder: 16-byte loads, and reductions over a block. */
#ifndef EXAMPLES_BLOCK_CUH
#define EXAMPLES_BLOCK_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuplug/plugin.hpp>
#include <type_traits>

constexpr int THREADS = 256;

template <typename T, int WIDTH> struct alignas(WIDTH * sizeof(T)) pack { T value[WIDTH]; };

/* Elements of 16 bytes. */
template <typename T> constexpr int full_width = 16 / sizeof(T);

/* Returns whether rows of n elements at these addresses can be read 16 bytes at a time. */
template <typename T, typename... P> bool is_aligned(int64_t n, const P *...data) {
  return n % full_width<T> == 0 && ((uint64_t(data) | ...) % 16) == 0;
}

/* Returns launch(width), with the elements of a pack as a constant: of 16 bytes if rows of n
 * elements at these addresses can be read in this way, else 1. */
template <typename T, typename Launch, typename... P>
int in_packs(int64_t n, Launch launch, const P *...data) {
  if (is_aligned<T>(n, data...)) return launch(std::integral_constant<int, full_width<T>>());
  return launch(std::integral_constant<int, 1>());
}

/* Threads for a row of n elements: complete warps, each thread with a pack or more. */
inline int threads_for(int64_t n, int width) {
  const int64_t warps = (n / width + 31) / 32;
  return 32 * (int)(warps < 1 ? 1 : warps < THREADS / 32 ? warps : THREADS / 32);
}

struct sum_of {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct greater_of {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/* Combines the values of all threads, and returns the result in each. All threads call it. */
template <typename Op> __device__ float reduce_block(float value, float nothing, Op op) {
  __shared__ float of_warp[32];
  for (int step = 16; step; step /= 2) value = op(value, __shfl_xor_sync(~0u, value, step));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x % 32 < blockDim.x / 32 ? of_warp[threadIdx.x % 32] : nothing;
  for (int step = 16; step; step /= 2) value = op(value, __shfl_xor_sync(~0u, value, step));
  __syncthreads();
  return value;
}

/* Calls f(column, x) for this thread's elements of a row. */
template <int WIDTH, typename T, typename F> __device__ void each(const T *row, int64_t n, F f) {
  for (int64_t at = threadIdx.x; at < n / WIDTH; at += blockDim.x) {
    const auto x = reinterpret_cast<const pack<T, WIDTH> *>(row)[at];
#pragma unroll
    for (int k = 0; k < WIDTH; k++) f(at * WIDTH + k, (float)x.value[k]);
  }
}

/* out[column] = f(column, x). */
template <int WIDTH, typename T, typename F>
__device__ void map_row(const T *row, T *out, int64_t n, F f) {
  for (int64_t at = threadIdx.x; at < n / WIDTH; at += blockDim.x) {
    auto x = reinterpret_cast<const pack<T, WIDTH> *>(row)[at];
#pragma unroll
    for (int k = 0; k < WIDTH; k++) x.value[k] = (T)f(at * WIDTH + k, (float)x.value[k]);
    reinterpret_cast<pack<T, WIDTH> *>(out)[at] = x;
  }
}

#endif
