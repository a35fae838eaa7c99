/* SPDX-License-Identifier: Apache-2.0 */
/* The aggregates that blocks publish of their tiles, and how others wait for them. */
#ifndef CUPLUG_PLUGINS_SCAN_TILE_STATE_CUH
#define CUPLUG_PLUGINS_SCAN_TILE_STATE_CUH

#include <stdint.h>
#include <string.h>

constexpr int WARP = 32;

/* The state of a tile, in words of 32 bits, each next to a mark: they need no order among each
 * other. */
template <typename C> constexpr int WORDS = (int)sizeof(C) / 4;

template <typename C> __device__ inline C warp_shuffle(const C &value, int lane) {
  unsigned parts[WORDS<C>];
  C there;
  memcpy(parts, &value, sizeof value);
#pragma unroll
  for (int w = 0; w < WORDS<C>; w++) parts[w] = __shfl_sync(~0u, parts[w], lane);
  memcpy(&there, parts, sizeof there);
  return there;
}

/* The aggregate of the values of a warp, in lane 0. */
template <typename Op, typename C> __device__ inline C warp_aggregate(C value) {
  const int lane = threadIdx.x % WARP;
#pragma unroll
  for (int step = 1; step < WARP; step *= 2) value = Op()(value, warp_shuffle(value, lane ^ step));
  return value;
}

template <typename C>
__device__ inline void publish_tile(volatile uint64_t *said, int64_t n, int64_t at,
                                    const C &value) {
  unsigned parts[WORDS<C>];
  memcpy(parts, &value, sizeof value);
#pragma unroll
  for (int w = 0; w < WORDS<C>; w++) said[w * n + at] = (uint64_t)1 << 32 | parts[w];
}

/* Loads the aggregates of the tiles that `there` marks, all at once, and polls until each is
 * published. Others get the identity. */
template <typename Op, typename C, int N>
__device__ inline void wait_for_tiles(const volatile uint64_t *said, int64_t n,
                                      const int64_t (&at)[N], const bool (&is_there)[N],
                                      C (&values)[N]) {
  uint64_t words[N][WORDS<C>];
#pragma unroll
  for (int k = 0; k < N; k++)
#pragma unroll
    for (int w = 0; w < WORDS<C>; w++)
      if (is_there[k]) words[k][w] = said[w * n + at[k]];
#pragma unroll
  for (int k = 0; k < N; k++) {
    values[k] = Op::template identity<C>();
    if (!is_there[k]) continue;
    unsigned parts[WORDS<C>];
#pragma unroll
    for (int w = 0; w < WORDS<C>; w++) {
      while (!(words[k][w] >> 32)) words[k][w] = said[w * n + at[k]];
      parts[w] = (unsigned)words[k][w];
    }
    memcpy(&values[k], parts, sizeof values[k]);
  }
}

#endif
