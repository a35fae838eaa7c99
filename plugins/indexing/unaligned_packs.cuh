/* SPDX-License-Identifier: Apache-2.0 */
/* Packs of contiguous elements, at any address. */
#ifndef CUPLUG_INDEXING_TOGETHER_CUH
#define CUPLUG_INDEXING_TOGETHER_CUH

#include <cuplug/walk.cuh>

/* The WIDTH elements at `from`. `before` elements ahead of it, and `after` elements from it on, may
 * be read. */
template <int WIDTH, typename T, typename OFFSET>
__device__ inline cuplug::pack<T, WIDTH> load_together(const T *from, OFFSET before, OFFSET after) {
  using namespace cuplug::walks;
  loose_pack<T, WIDTH> found;
  if (misaligned<WIDTH>(from))
    load_misaligned<WIDTH>(found, from, before, after);
  else
    found.hold(load_aligned<WIDTH>(from));
  return same_bytes<cuplug::pack<T, WIDTH>>(found.whole());
}

#endif
