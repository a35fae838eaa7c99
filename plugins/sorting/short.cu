/* SPDX-License-Identifier: Apache-2.0 */
/* Short lines, each by a block in its shared memory: a bitonic network. Equal keys are told apart
 * by their index, which ascends among them. */
#include "sorting/radix.cuh"

namespace {

constexpr int MOST = SORTING_SHORT, THREADS = MOST / 2, WARP = 32;

/* Has each two keys at a distance of `step`, where all keys of a part of 2 * step are a warp's if
 * step <= WARP, in order: ascending in even parts of `size`, else descending. */
template <typename K, typename I>
__device__ inline void exchange(K *keys, I *index, int n, int size, int step, bool has_index) {
  const int p = threadIdx.x, i = 2 * p - (p & (step - 1)), j = i + step;
  if (p >= n / 2) return;
  const K a = keys[i], b = keys[j];
  const I at_a = has_index ? index[i] : I(0), at_b = has_index ? index[j] : I(0);
  const bool is_above = a > b || (a == b && at_a > at_b),
             is_below = a < b || (a == b && at_a < at_b);
  if (i & size ? !is_below : !is_above) return;
  keys[i] = b, keys[j] = a;
  if (has_index) index[i] = at_b, index[j] = at_a;
}

template <typename K, typename I>
__global__ void __launch_bounds__(THREADS) short_kernel(K *keys, I *index, int m) {
  __shared__ K line[MOST];
  __shared__ I places[MOST];
  int n = 2;
  while (n < m) n *= 2;
  keys += (int64_t)blockIdx.x * m;
  if (index) index += (int64_t)blockIdx.x * m;
  for (int i = threadIdx.x; i < n; i += THREADS) {
    line[i] = i < m ? keys[i] : ~K(0); /* those behind stay there */
    if (index) places[i] = i < m ? index[i] : (I)(~0ull >> 1);
  }
  for (int size = 2; size <= n; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      const int before = step == size / 2 ? 1 : 2 * step;
      if (size == 2 || step > WARP || before > WARP)
        __syncthreads();
      else
        __syncwarp();
      exchange(line, places, n, size, step, index != nullptr);
    }
  __syncthreads();
  for (int i = threadIdx.x; i < m; i += THREADS) {
    keys[i] = line[i];
    if (index) index[i] = places[i];
  }
}

template <typename K, typename I> int sort(cuplug::call call, const sorting &s) {
  return call.launch<short_kernel<K, I>>({s.n_lines, THREADS}, (K *)s.keys, (I *)s.index, (int)s.m);
}

} // namespace

int sorting_run_short(cuplug::call call, const sorting &s) {
  if (s.n_bytes == 8)
    return s.is_wide ? sort<uint64_t, int64_t>(call, s) : sort<uint64_t, uint32_t>(call, s);
  return s.is_wide ? sort<uint32_t, int64_t>(call, s) : sort<uint32_t, uint32_t>(call, s);
}
