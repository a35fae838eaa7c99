/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of index.c. Kernels that move values compute their positions. For
 * sums in scatter.cu, positions are converted to row numbers first. */
#include <cuplug/plugin.hpp>
#include <cuplug/walk.cuh>
#include <cuplug/walk.h>

#include "indexing/index.h"
#include "indexing/scatter.cuh"

namespace {

constexpr int THREADS = 256;
constexpr int AT_ONCE = 4;      /* values per thread, whose loads do not wait for each other, */
constexpr int AXES_AT_ONCE = 2; /* and axes whose positions are read at the same time */

__device__ inline int64_t index_at(const index_axes &a, int axis, int64_t at) {
  return a.type == CUPLUG_INT32 ? ((const int32_t *)a.indices[axis])[at]
                                : ((const int64_t *)a.indices[axis])[at];
}

/* The row numbers for positions `at`; -1 for bad ones, which are recorded, and if `at` is below 0.
 */
__device__ inline void find_rows(const index_axes &a, const int64_t (&at)[AT_ONCE],
                                 int64_t (&row)[AT_ONCE], cuplug_fault *fault) {
#pragma unroll
  for (int u = 0; u < AT_ONCE; u++) row[u] = at[u] < 0 ? -1 : 0;
  for (int first = 0; first < a.n_axes; first += AXES_AT_ONCE) {
    int64_t seen[AXES_AT_ONCE][AT_ONCE] = {};
#pragma unroll
    for (int j = 0; j < AXES_AT_ONCE; j++) {
      const int k = first + j;
      if (k >= a.n_axes) continue;
#pragma unroll
      for (int u = 0; u < AT_ONCE; u++)
        if (at[u] >= 0) seen[j][u] = index_at(a, k, at[u]);
    }
#pragma unroll
    for (int j = 0; j < AXES_AT_ONCE; j++) {
      const int k = first + j;
      if (k >= a.n_axes) continue;
#pragma unroll
      for (int u = 0; u < AT_ONCE; u++) {
        const int64_t wrapped = seen[j][u] + (seen[j][u] < 0 ? a.sizes[k] : 0);
        const bool is_bad = (uint64_t)wrapped >= (uint64_t)a.sizes[k];
        if (is_bad && at[u] >= 0)
          cuplug_fault_index(fault, a.first + k, at[u], seen[j][u], -a.sizes[k], a.sizes[k]);
        row[u] = is_bad || row[u] < 0 ? -1 : row[u] + wrapped * a.steps[k];
      }
    }
  }
}

/* With `is_one`, the first value is for all positions. */
template <typename T, bool is_put>
__global__ void __launch_bounds__(THREADS)
    move_kernel(T *x, T *values, const __grid_constant__ index_axes a, cuplug_divisor width,
                bool is_one, cuplug_fault *fault) {
  const int64_t first = (int64_t)blockIdx.x * (THREADS * AT_ONCE) + threadIdx.x;
  const int64_t n = a.n * a.width;
  int64_t at[AT_ONCE], row[AT_ONCE];
  T moved[AT_ONCE];
#pragma unroll
  for (int u = 0; u < AT_ONCE; u++) {
    const int64_t e = first + u * THREADS;
    at[u] = e >= n ? -1 : a.width == 1 ? e : cuplug::divide(e, width);
  }
  find_rows(a, at, row, fault);
#pragma unroll
  for (int u = 0; u < AT_ONCE; u++) {
    const int64_t e = first + u * THREADS, place = row[u] * a.width + (e - at[u] * a.width);
    moved[u] = T{};
    if (row[u] >= 0) moved[u] = is_put ? values[is_one ? 0 : e] : x[place];
  }
#pragma unroll
  for (int u = 0; u < AT_ONCE; u++) {
    const int64_t e = first + u * THREADS, place = row[u] * a.width + (e - at[u] * a.width);
    if (row[u] >= 0) (is_put ? x[place] : values[e]) = moved[u];
  }
}

__global__ void __launch_bounds__(THREADS)
    number_kernel(const __grid_constant__ index_axes a, int64_t *numbers, cuplug_fault *fault) {
  const int64_t first = (int64_t)blockIdx.x * (THREADS * AT_ONCE) + threadIdx.x;
  int64_t at[AT_ONCE], row[AT_ONCE];
#pragma unroll
  for (int u = 0; u < AT_ONCE; u++) at[u] = first + u * THREADS < a.n ? first + u * THREADS : -1;
  find_rows(a, at, row, fault);
#pragma unroll
  for (int u = 0; u < AT_ONCE; u++)
    if (at[u] >= 0) numbers[at[u]] = row[u] < 0 ? INT64_MIN : row[u];
}

int number(cuplug::call call, const index_axes &a, int64_t *numbers) {
  const cuplug::grid grid = {cuplug::blocks(a.n, THREADS * AT_ONCE), THREADS};
  return call.launch<number_kernel>(grid, a, numbers, call.fault());
}

/* For empty rows, the positions are still checked. */
template <bool is_put>
int move(cuplug::call call, const cuplug_tensor &x, const cuplug_tensor &values) {
  index_axes a;
  if (int status = index_axes_of(call, &x, &values, is_put, &a)) return status;
  const bool is_one = cuplug_n_elements(&values) < a.n * a.width;
  if (a.n && !a.width) {
    int64_t *numbers = call.workspace<int64_t>(a.n);
    return numbers ? number(call, a, numbers) : CUPLUG_ERROR_MEMORY;
  }
#define CASE(T)                                                                                   \
  return call.launch<move_kernel<T, is_put>>(                                                     \
      {cuplug::blocks(a.n * a.width, THREADS * AT_ONCE), THREADS}, (T *)x.data, (T *)values.data, \
      a, cuplug__divisor(a.width ? a.width : 1, 1), is_one, call.fault());
  ELEMENTS_BY_WIDTH(cuplug_element_bytes(&x), CASE)
#undef CASE
  return CUPLUG_OK;
}

} // namespace

CUPLUG_ENTRY int index_cuda(const cuplug_call *c) {
  return move<false>(c, c->tensors[0], c->outputs[0]);
}

CUPLUG_ENTRY int index_put_cuda(const cuplug_call *c) {
  return move<true>(c, c->tensors[0], c->tensors[1]);
}

/* The kernel that moves values also finds bad numbers, but a call has one record, which reports the
 * position. */
static int find_numbers(cuplug::call call, const index_axes &a, places *p) {
  int64_t *numbers = call.workspace<int64_t>(a.n ? a.n : 1);
  if (!numbers) return CUPLUG_ERROR_MEMORY;
  *p = index_places(&a, numbers, CUPLUG_INT64);
  return a.n ? number(call, a, numbers) : CUPLUG_OK;
}

CUPLUG_ENTRY int index_backward_cuda(const cuplug_call *c) {
  const cuplug_tensor &grad = c->tensors[0], &out = c->outputs[0];
  index_axes a;
  places p;
  int status = index_axes_of(c, &out, &grad, 0, &a);
  if (!status) status = find_numbers(c, a, &p);
  return status ? status : scatter_add(c, p, grad.data);
}

CUPLUG_ENTRY int index_put_backward_cuda(const cuplug_call *c) {
  const cuplug::call call(c);
  const cuplug_tensor &grad = c->tensors[0], &values = c->tensors[1], &out = c->outputs[1];
  index_axes a;
  places p;
  int status = index_axes_of(c, &grad, &values, 1, &a);
  if (!status) status = find_numbers(c, a, &p);
  if (status || cuplug_n_elements(&values) == p.n)
    return status ? status : scatter_gradients(c, p, out.data);
  char *each = call.workspace<char>(p.n ? p.n * cuplug_element_bytes(&out) : 1);
  if (!each) return CUPLUG_ERROR_MEMORY;
  status = scatter_gradients(c, p, each);
  return status ? status : sum_all(c, each, p.n, out.data, cuplug_type(&out));
}
