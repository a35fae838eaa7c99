/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that are moved together, and their values as floats. */
#ifndef CUPLUG_PLUGINS_ROWS_PACKS_CUH
#define CUPLUG_PLUGINS_ROWS_PACKS_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>
#include <string.h>

namespace rows {

/* W adjacent elements, moved at once if they are aligned. */
template <typename T, int W> struct alignas(sizeof(T) * W) pack { T value[W]; };

/* Elements as floats: the two bfloat16 numbers of a word are shifted to the positions of float's
 * bits. */
template <typename T, int W> __device__ void widen(const pack<T, W> &from, float (&to)[W]) {
#pragma unroll
  for (int k = 0; k < W; k++) to[k] = (float)from.value[k];
}
template <int W> __device__ void widen(const pack<__nv_bfloat16, W> &from, float (&to)[W]) {
  if constexpr (W % 2 == 0)
#pragma unroll
    for (int k = 0; k < W; k += 2) {
      const uint32_t word = reinterpret_cast<const uint32_t &>(from.value[k]),
                     bits[2] = {word << 16, word & 0xffff0000u};
      memcpy(&to[k], bits, sizeof bits);
    }
  else
    to[0] = __bfloat162float(from.value[0]);
}

/* Rounds floats to T, in pairs if the GPU can. */
template <typename T, int W> __device__ void narrow(const float (&from)[W], pack<T, W> &to) {
#pragma unroll
  for (int k = 0; k < W; k++) to.value[k] = (T)from[k];
}
template <int W> __device__ void narrow(const float (&from)[W], pack<__nv_bfloat16, W> &to) {
  if constexpr (W % 2 == 0)
#pragma unroll
    for (int k = 0; k < W; k += 2)
      reinterpret_cast<__nv_bfloat162 &>(to.value[k]) = __floats2bfloat162_rn(from[k], from[k + 1]);
  else
    to.value[0] = __float2bfloat16_rn(from[0]);
}
template <int W> __device__ void narrow(const float (&from)[W], pack<__half, W> &to) {
  if constexpr (W % 2 == 0)
#pragma unroll
    for (int k = 0; k < W; k += 2)
      reinterpret_cast<__half2 &>(to.value[k]) = __floats2half2_rn(from[k], from[k + 1]);
  else
    to.value[0] = __float2half_rn(from[0]);
}

} // namespace rows

#endif
