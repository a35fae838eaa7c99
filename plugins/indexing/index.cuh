/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of rows by positions along several axes, which scatter.cu moves rows by. */
#ifndef CUPLUG_PLUGINS_INDEXING_INDEX_CUH
#define CUPLUG_PLUGINS_INDEXING_INDEX_CUH

#include <cuplug/plugin.hpp>

#include "indexing/index.h"

namespace {

constexpr int INDEX_THREADS = 256;
constexpr int INDEX_AT_ONCE = 4; /* rows of a thread, whose loads do not wait for each other */

/* A bad position is recorded, and its row gets a number that is none. */
template <typename I>
__global__ void __launch_bounds__(INDEX_THREADS)
    index_kernel(const __grid_constant__ index_axes a, int64_t *numbers, cuplug_fault *fault) {
  const int64_t first = (int64_t)blockIdx.x * (INDEX_THREADS * INDEX_AT_ONCE) + threadIdx.x;
  int64_t number[INDEX_AT_ONCE] = {};
  for (int k = 0; k < a.n_axes; k++) {
    const I *indices = (const I *)a.indices[k];
    const int64_t size = a.sizes[k];
    int64_t seen[INDEX_AT_ONCE];
#pragma unroll
    for (int u = 0; u < INDEX_AT_ONCE; u++)
      seen[u] = first + u * INDEX_THREADS < a.n ? indices[first + u * INDEX_THREADS] : 0;
#pragma unroll
    for (int u = 0; u < INDEX_AT_ONCE; u++) {
      const int64_t at = first + u * INDEX_THREADS, wrapped = seen[u] + (seen[u] < 0 ? size : 0);
      const bool is_bad = (uint64_t)wrapped >= (uint64_t)size;
      if (is_bad && at < a.n) cuplug_fault_index(fault, a.first + k, at, seen[u], -size, size);
      number[u] = is_bad || number[u] < 0 ? INT64_MIN : number[u] + wrapped * a.steps[k];
    }
  }
#pragma unroll
  for (int u = 0; u < INDEX_AT_ONCE; u++)
    if (first + u * INDEX_THREADS < a.n) numbers[first + u * INDEX_THREADS] = number[u];
}

/* The places of a call's values. What moves them finds bad numbers, too, but a call has one record,
 * which tells of the position. */
int index_find(cuplug::call call, const cuplug_tensor &x, const cuplug_tensor &values, places *p) {
  index_axes a;
  if (int status = index_axes_of(call, &x, &values, &a)) return status;
  int64_t *numbers = call.workspace<int64_t>(a.n ? a.n : 1);
  if (!numbers) return CUPLUG_ERROR_MEMORY;
  *p = index_places(&a, numbers);
  const cuplug::grid grid = {cuplug::blocks(a.n, INDEX_THREADS * INDEX_AT_ONCE), INDEX_THREADS};
  if (a.type == CUPLUG_INT32)
    return call.launch<index_kernel<int32_t>>(grid, a, numbers, call.fault());
  return call.launch<index_kernel<int64_t>>(grid, a, numbers, call.fault());
}

} // namespace

#endif
