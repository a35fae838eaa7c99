/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that are moved 16 bytes at a time. */
#ifndef CUPLUG_PLUGINS_SCAN_CHUNKS_CUH
#define CUPLUG_PLUGINS_SCAN_CHUNKS_CUH

#include <stdint.h>
#include <string.h>

template <typename T> struct alignas(16) chunk {
  static constexpr int N = 16 / sizeof(T);
  T of[N];
};

/* 16 bytes of 32, from byte `lead` on. */
template <typename T>
__device__ inline chunk<T> from_both(const chunk<T> &a, const chunk<T> &b, int lead) {
  unsigned words[8];
  chunk<T> made;
  memcpy(words, &a, 16);
  memcpy(words + 4, &b, 16);
#pragma unroll
  for (int k = 0; k < 7; k++) words[k] = lead & 4 ? words[k + 1] : words[k];
#pragma unroll
  for (int k = 0; k < 5; k++) words[k] = lead & 8 ? words[k + 2] : words[k];
#pragma unroll
  for (int k = 0; sizeof(T) < 4 && k < 4; k++)
    words[k] = __funnelshift_r(words[k], words[k + 1], lead % 4 * 8);
  memcpy(&made, words, 16);
  return made;
}

template <typename T> __device__ inline chunk<T> reversed(const chunk<T> &x) {
  chunk<T> made;
#pragma unroll
  for (int e = 0; e < chunk<T>::N; e++) made.of[e] = x.of[chunk<T>::N - 1 - e];
  return made;
}

#endif
