/* SPDX-License-Identifier: Apache-2.0 */
/* What the CUDA entries of element-wise operators share: one kernel at the speed of a copy, and the
 * dtypes as C++ sees them. */
#ifndef CUPLUG_PLUGINS_ELEMENTWISE_CUH
#define CUPLUG_PLUGINS_ELEMENTWISE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuplug/plugin.h>

namespace elementwise {

constexpr int THREADS = 256;
constexpr int UNROLL = 4; /* packs of each thread: independent loads */

/* The type to compute with. */
template <typename T> struct computed { using type = T; };
template <> struct computed<__half> { using type = float; };
template <> struct computed<__nv_bfloat16> { using type = float; };
template <typename T> using computed_t = typename computed<T>::type;

template <typename T, int WIDTH> struct alignas(WIDTH * sizeof(T)) pack { T value[WIDTH]; };
template <typename T, int ARITY> struct inputs { const T *data[ARITY]; };

template <typename Op, typename T> __device__ inline T apply(const Op &op, const T (&x)[1]) {
  return (T)op((computed_t<T>)x[0]);
}
template <typename Op, typename T> __device__ inline T apply(const Op &op, const T (&x)[2]) {
  return (T)op((computed_t<T>)x[0], (computed_t<T>)x[1]);
}

/* out[i] = op(in[i] ...) for packs of WIDTH elements; the last block also takes what is left over.
 * An output may be its own input: all loads of an element come before its store. */
template <int ARITY, int WIDTH, typename T, typename Op>
__global__ void __launch_bounds__(THREADS)
    map_kernel(inputs<T, ARITY> in, T *out, int64_t n, Op op) {
  using P = pack<T, WIDTH>;
  const int64_t n_packs = n / WIDTH;
  const int64_t first = (int64_t)blockIdx.x * (THREADS * UNROLL) + threadIdx.x;
  P x[ARITY][UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    const int64_t at = first + u * THREADS;
#pragma unroll
    for (int a = 0; a < ARITY; a++)
      if (at < n_packs) x[a][u] = reinterpret_cast<const P *>(in.data[a])[at];
  }
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    const int64_t at = first + u * THREADS;
    if (at >= n_packs) continue;
    P result;
#pragma unroll
    for (int k = 0; k < WIDTH; k++) {
      T element[ARITY];
#pragma unroll
      for (int a = 0; a < ARITY; a++) element[a] = x[a][u].value[k];
      result.value[k] = apply(op, element);
    }
    reinterpret_cast<P *>(out)[at] = result;
  }
  const int64_t rest = n_packs * WIDTH + threadIdx.x;
  if (blockIdx.x != gridDim.x - 1 || rest >= n) return;
  T element[ARITY];
#pragma unroll
  for (int a = 0; a < ARITY; a++) element[a] = in.data[a][rest];
  out[rest] = apply(op, element);
}

/* Launches op over n elements: in packs of 16 bytes where all addresses are multiples of that. */
template <int ARITY, typename T, typename Op>
int map(const cuplug_call *call, inputs<T, ARITY> in, T *out, int64_t n, Op op) {
  constexpr int WIDTH = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
  uint64_t addresses = (uint64_t)out;
  for (int a = 0; a < ARITY; a++) addresses |= (uint64_t)in.data[a];
  if (n == 0) return CUPLUG_OK;
  const int64_t width = addresses % 16 ? 1 : WIDTH, per_block = width * THREADS * UNROLL;
  const unsigned n_blocks = (unsigned)((n + per_block - 1) / per_block);
  if (width == 1)
    return cuplug_launch<map_kernel<ARITY, 1, T, Op>>(call, n_blocks, THREADS, 0, in, out, n, op);
  return cuplug_launch<map_kernel<ARITY, WIDTH, T, Op>>(call, n_blocks, THREADS, 0, in, out, n, op);
}

/* The first ARITY tensors of the call in, the next out. */
template <int ARITY, typename T, typename Op> int map_call(const cuplug_call *call, Op op) {
  inputs<T, ARITY> in;
  for (int a = 0; a < ARITY; a++) in.data[a] = (const T *)call->tensors[a].data;
  const int64_t n = cuplug_n_elements(&call->tensors[0]);
  return map<ARITY, T>(call, in, (T *)call->tensors[ARITY].data, n, op);
}

inline int no_dtype(const cuplug_call *call) {
  return cuplug_fail(call, CUPLUG_ERROR_TYPE, "no code for this dtype");
}

} // namespace elementwise

/* X(DTYPE, C++ type) */
#define ELEMENTWISE_FLOATING(X) \
  X(FLOAT16, __half)            \
  X(BFLOAT16, __nv_bfloat16)    \
  X(FLOAT32, float)             \
  X(FLOAT64, double)
#define ELEMENTWISE_SIGNED(X) \
  X(INT8, int8_t)             \
  X(INT16, int16_t)           \
  X(INT32, int32_t)           \
  X(INT64, int64_t)

#endif
