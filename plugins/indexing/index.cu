/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of index.c. Positions become numbers of rows, and scatter.cu
 * moves the rows. */
#include <cuplug/plugin.hpp>

#include "indexing/index.h"
#include "indexing/scatter.cuh"

namespace {

constexpr int THREADS = 256;
constexpr int AT_ONCE = 4; /* rows of a thread, whose loads do not wait for each other */

/* A bad position is recorded, and its row gets a number that is none. */
template <typename I>
__global__ void __launch_bounds__(THREADS)
    index_kernel(const __grid_constant__ index_axes a, int64_t *numbers, cuplug_fault *fault) {
  const int64_t first = (int64_t)blockIdx.x * (THREADS * AT_ONCE) + threadIdx.x;
  int64_t number[AT_ONCE] = {};
  for (int k = 0; k < a.n_axes; k++) {
    const I *indices = (const I *)a.indices[k];
    const int64_t size = a.sizes[k];
    int64_t seen[AT_ONCE];
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++)
      seen[u] = first + u * THREADS < a.n ? indices[first + u * THREADS] : 0;
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) {
      const int64_t at = first + u * THREADS, wrapped = seen[u] + (seen[u] < 0 ? size : 0);
      const bool is_bad = (uint64_t)wrapped >= (uint64_t)size;
      if (is_bad && at < a.n) cuplug_fault_index(fault, a.first + k, at, seen[u], -size, size);
      number[u] = is_bad || number[u] < 0 ? INT64_MIN : number[u] + wrapped * a.steps[k];
    }
  }
#pragma unroll
  for (int u = 0; u < AT_ONCE; u++)
    if (first + u * THREADS < a.n) numbers[first + u * THREADS] = number[u];
}

/* The places of a call's values. What moves them finds bad numbers, too, but a call has one record,
 * which tells of the position. */
int find(cuplug::call call, const cuplug_tensor &x, const cuplug_tensor &values, places *p) {
  index_axes a;
  if (int status = index_axes_of(call, &x, &values, &a)) return status;
  int64_t *numbers = call.workspace<int64_t>(a.n ? a.n : 1);
  if (!numbers) return CUPLUG_ERROR_MEMORY;
  *p = index_places(&a, numbers);
  const cuplug::grid grid = {cuplug::blocks(a.n, THREADS * AT_ONCE), THREADS};
  if (a.type == CUPLUG_INT32)
    return call.launch<index_kernel<int32_t>>(grid, a, numbers, call.fault());
  return call.launch<index_kernel<int64_t>>(grid, a, numbers, call.fault());
}

} // namespace

CUPLUG_ENTRY int index_cuda(const cuplug_call *c) {
  const cuplug_tensor &x = c->tensors[0], &out = c->outputs[0];
  places p;
  const int status = find(c, x, out, &p);
  return status ? status : scatter_take(c, p, x.data, out.data);
}

CUPLUG_ENTRY int index_put_cuda(const cuplug_call *c) {
  const cuplug_tensor &x = c->tensors[0], &values = c->tensors[1];
  places p;
  const int status = find(c, x, values, &p);
  return status ? status : scatter_put(c, p, x.data, values.data);
}

CUPLUG_ENTRY int index_backward_cuda(const cuplug_call *c) {
  const cuplug_tensor &grad = c->tensors[0];
  places p;
  const int status = find(c, c->outputs[0], grad, &p);
  return status ? status : scatter_add(c, p, grad.data);
}
