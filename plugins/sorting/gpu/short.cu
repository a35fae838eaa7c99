/* SPDX-License-Identifier: Apache-2.0 */
/* Few short lines, each processed by a block, from the elements to the outputs. */
#include "sorting/gpu/short.cuh"

namespace {

using namespace network;

constexpr int64_t AT_ONCE = 1 << 16; /* threads of any large GPU */

bool are_few(int64_t n_lines, int64_t m) { return m <= MOST && n_lines <= AT_ONCE / threads(m); }

template <typename K, bool has_index>
__global__ void __launch_bounds__(THREADS) short_kernel(const __grid_constant__ sorting_short s) {
  __shared__ K keys[MOST];
  __shared__ uint32_t index[MOST];
  const order o = has_index ? s.o : order_with_signs(s.o);
  const int n = padded(s.m);
  const elements_axis of_out = {s.axis.n_outer, s.k, s.axis.width};
  const int64_t line = blockIdx.x, first = elements_line(&s.axis, line);
  const int64_t first_out = elements_line(&of_out, line);
  bool has_others = has_index; /* elements whose bits do not follow from their keys */
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const K key = i >= s.m ? ~K(0)
                  : s.keys ? ((const K *)s.keys)[line * s.m + i]
                           : key_at<K>(o, s.x, first + i * s.axis.width);
    const bool is_minus_zero = !has_index && sorting_is_minus_zero(o, key);
    has_others |= is_minus_zero || (i < s.m && sorting_is_nan(o, key));
    keys[i] = is_minus_zero ? key ^ (K)o.all : key;
    index[i] = i;
  }
  if (!has_index && !__syncthreads_or(has_others)) {
    sort<false>(keys, index, n);
    for (int j = threadIdx.x; j < s.k; j += blockDim.x)
      put(o, s.out, first_out + j * s.axis.width, keys[j]);
    return;
  }
  sort<true>(keys, index, n);
  for (int j = threadIdx.x; j < s.k; j += blockDim.x)
    write_short(s, line, first, first_out + j * s.axis.width, index[j], keys[j]);
}

template <typename K> int sort_lines(cuplug::call call, const sorting_short &s) {
  const cuplug::grid grid((int)(s.axis.n_outer * s.axis.width), threads(s.m));
  return s.from || s.indices ? call.launch<short_kernel<K, true>>(grid, s)
                             : call.launch<short_kernel<K, false>>(grid, s);
}

} // namespace

bool sorting_is_short(int64_t n_lines, int64_t m) {
  return n_lines > 0 && m > 0 && (are_few(n_lines, m) || (m > 1 && m <= SORTING_SHORT));
}

int sorting_run_short(cuplug::call call, const sorting_short &s) {
  if (!are_few(s.axis.n_outer * s.axis.width, s.m)) return sorting_run_tiles(call, s);
  return s.o.n_bytes == 8 ? sort_lines<uint64_t>(call, s) : sort_lines<uint32_t>(call, s);
}
