/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of topk.c. Few keys of long lines are selected, and these are
 * sorted. Otherwise all are sorted. */
#include "sorting/gpu/radix.cuh"

namespace {

constexpr int THREADS = SORTING_THREADS;

/* The first k of each line whose index is sorted, `m` in a line. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    write_kernel(const T *__restrict__ x, const sorted_index index, T *values, int64_t *indices,
                 const elements_axis axis, const elements_axis of_top, int64_t m, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  const int64_t line = i / of_top.m, j = i - line * of_top.m, from = index[line * m + j];
  const int64_t to = elements_line(&of_top, line) + j * axis.width;
  values[to] = x[elements_line(&axis, line) + from * axis.width];
  indices[to] = from;
}

int topk(cuplug::call call) {
  const cuplug_call *c = call;
  const cuplug_tensor &x = c->tensors[0];
  const int64_t k = c->scalars[0].i;
  const elements_axis axis = elements_around(&x, c->scalars[1].i);
  const order o = order_of(&x, c->scalars[2].i != 0);
  const int64_t n_lines = axis.n_outer * axis.width, n = n_lines * k;
  if (n == 0) return CUPLUG_OK;
  auto *indices = (int64_t *)c->outputs[1].data;
  const auto lines_of = [&](int64_t m, const sorting &s) -> sorting_short {
    return {x.data,  axis,      o,    s.keys, s.indices(), m, k, x.data, c->outputs[0].data,
            indices, o.n_bytes, false};
  };
  const sorting_short all = lines_of(axis.m, {});
  if (sorting_has_few(all)) return sorting_run_few(call, all);
  const bool is_chosen = sorting_can_choose(axis, k);
  const int64_t m = is_chosen ? k : axis.m;
  const bool is_short = sorting_is_short(n_lines, m);
  sorting s = {};
  int status = CUPLUG_OK;
  if (is_chosen || !is_short) status = sorting_begin(call, &s, o.n_bytes, n_lines, m, axis.m);
  if (!status && is_chosen) status = sorting_choose(call, s, x, axis, o);
  if (!status && is_short) return sorting_run_short(call, lines_of(m, s));
  if (!status && !is_chosen) status = sorting_load(call, &s, x, axis, o);
  if (!status) status = sorting_run(call, &s);
  if (status) return status;
#define CASE(T)                                                                                 \
  return call.launch<write_kernel<T>>({cuplug::blocks(n, THREADS), THREADS}, (const T *)x.data, \
                                      s.indices(), (T *)c->outputs[0].data, indices, axis,      \
                                      elements_axis{axis.n_outer, k, axis.width}, s.m, n);
  ELEMENTS_BY_WIDTH(o.n_bytes, CASE)
#undef CASE
  return CUPLUG_OK;
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    back_kernel(const T *__restrict__ x, const int64_t *__restrict__ indices, T *out,
                const elements_axis axis, const elements_axis of_top, int64_t n, bool is_back,
                cuplug_fault *fault) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  const int64_t j = indices[i], outer = i / (of_top.m * axis.width);
  const int64_t place = (outer * axis.m + j) * axis.width + i % axis.width;
  if (j < 0 || j >= axis.m)
    cuplug_fault_index(fault, 1, i, j, 0, axis.m);
  else if (is_back)
    out[place] = x[i];
  else
    out[i] = x[place];
}

/* Moves elements to the indices, or from there. */
int move_back(cuplug::call call, elements_axis axis, elements_axis of_top, bool is_back) {
  const cuplug_call *c = call;
  const void *x = c->tensors[0].data;
  const auto *indices = (const int64_t *)c->tensors[1].data;
  void *out = c->outputs[0].data;
  const int64_t n = cuplug_n_elements(&c->tensors[1]);
  if (n == 0) return CUPLUG_OK;
#define CASE(T)                                                                                    \
  return call.launch<back_kernel<T>>({cuplug::blocks(n, THREADS), THREADS}, (const T *)x, indices, \
                                     (T *)out, axis, of_top, n, is_back, call.fault());
  ELEMENTS_BY_WIDTH(cuplug_element_bytes(&c->outputs[0]), CASE)
#undef CASE
  return CUPLUG_OK;
}

int topk_backward(cuplug::call call) {
  const cuplug_call *c = call;
  const cuplug_tensor &grad = c->tensors[0], &x = c->tensors[2], &out = c->outputs[0];
  const int64_t n_out = cuplug_n_elements(&out), axis = c->scalars[0].i;
  int status = elements_check_beside(c, "grad_values", &grad, &x, axis);
  if (status || n_out == 0) return status;
  status =
      call.check(cudaMemsetAsync(out.data, 0, n_out * cuplug_element_bytes(&out), call.stream()));
  if (status) return status;
  return move_back(call, elements_around(&x, axis), elements_around(&grad, axis), true);
}

int topk_backward_backward(cuplug::call call) {
  const cuplug_call *c = call;
  const cuplug_tensor &x = c->tensors[0], &indices = c->tensors[1];
  const int64_t axis = c->scalars[0].i;
  const int status = elements_check_beside(c, "indices", &indices, &x, axis);
  if (status) return status;
  return move_back(call, elements_around(&x, axis), elements_around(&indices, axis), false);
}

} // namespace

CUPLUG_ENTRY int topk_cuda(const cuplug_call *call) { return topk(call); }
CUPLUG_ENTRY int topk_backward_cuda(const cuplug_call *call) { return topk_backward(call); }
CUPLUG_ENTRY int topk_backward_backward_cuda(const cuplug_call *call) {
  return topk_backward_backward(call);
}
