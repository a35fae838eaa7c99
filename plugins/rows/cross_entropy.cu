/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of cross_entropy.c. */
#include "rows/rows.cuh"

namespace {

/* The targets of a call, and how they count. */
template <typename I> struct targets {
  using type = I;
  const I *of_row;
  int64_t ignored, n;
  float smoothing;
  cuplug_fault *fault;
  uint32_t number; /* of the tensor */

  /* Whether a row counts; a target that is none is recorded. */
  __device__ bool counts(int64_t row) const {
    const int64_t t = of_row[row];
    if (t == ignored) return false;
    if (t >= 0 && t < n) return true;
    if (threadIdx.x == 0) cuplug_fault_index(fault, number, row, t, 0, n);
    return false;
  }
};

template <typename T, typename I> struct forward {
  const T *x;
  float *loss;
  targets<I> target;
  template <typename Part> __device__ void run(const Part &p) const {
    const auto own = p.keep(p.at(x));
    float most = -INFINITY, powers = 0, elements = 0;
    p.each([&](float v) { most = fmaxf(most, v); }, own);
    most = rows::greatest_of(most);
    p.each([&](float v) { powers += expf(v - most); }, own);
    powers = rows::sum_of(powers);
    if (target.smoothing != 0) {
      p.each([&](float v) { elements += v - most; }, own);
      elements = rows::sum_of(elements) / (float)p.length;
    }
    if (!p.is_first()) return;
    const bool counts = target.counts(p.row);
    const float at = counts ? (float)p.at(x)[target.of_row[p.row]] - most : 0;
    const float own_loss = logf(powers) - (1 - target.smoothing) * at;
    loss[p.row] = !counts                 ? 0
                  : target.smoothing != 0 ? own_loss - target.smoothing * elements
                                          : own_loss;
  }
};

template <typename T, typename I> struct backward {
  const float *grad;
  const T *x;
  T *grad_x;
  targets<I> target;
  template <typename Part> __device__ void run(const Part &p) const {
    const auto own = p.keep(p.at(x));
    float most = -INFINITY, powers = 0;
    p.each([&](float v) { most = fmaxf(most, v); }, own);
    most = rows::greatest_of(most);
    p.each([&](float v) { powers += rows::exponential<T>(v - most); }, own);
    powers = rows::sum_of(powers);
    if (p.n == 0) return;
    const bool counts = target.counts(p.row);
    const int64_t t = target.of_row[p.row];
    const float g = grad[p.row], factor = g / powers;
    const float every = g * target.smoothing / (float)p.length,
                own_part = g * (1 - target.smoothing);
    p.map(
        p.at(grad_x),
        [=](float v, auto j) {
          const float value = rows::exponential<T>(v - most) * factor - every;
          return !counts ? 0 : j == t ? value - own_part : value;
        },
        own, p.numbers());
  }
};

template <typename Run> int by_dtypes(const cuplug_call *call, uint32_t x, Run run) {
  const cuplug_tensor *target = call->tensors + x + 1;
  return rows::by_dtype(call->tensors + x, [=](auto zero) {
    const auto of = [=](auto index) {
      using I = decltype(index);
      const targets<I> found = {
          (const I *)target->data,   call->scalars[0].i, rows::length(call->tensors + x),
          (float)call->scalars[1].f, call->fault,        x + 1};
      return run(zero, found);
    };
    return cuplug_type(target) == CUPLUG_INT32 ? of(int32_t()) : of(int64_t());
  });
}

/* Rows without elements have no target. */
int check_targets(const cuplug::call &call, const cuplug_tensor *x) {
  if (rows::length(x) || cuplug_n_elements(x + 1) == 0) return CUPLUG_OK;
  return call.fail(CUPLUG_ERROR_INDEX, "target: got targets, expected none for rows of 0 elements");
}

} // namespace

CUPLUG_ENTRY int cross_entropy_cuda(const cuplug_call *call) {
  const cuplug_tensor *x = call->tensors;
  if (const int status = check_targets(call, x)) return status;
  return by_dtypes(call, 0, [=](auto zero, auto targets) {
    using T = decltype(zero);
    const forward<T, typename decltype(targets)::type> op = {
        (const T *)x->data, (float *)call->tensors[2].data, targets};
    return rows::launch<T>(call, rows::count(x), rows::length(x), op, op.x);
  });
}

CUPLUG_ENTRY int cross_entropy_backward_cuda(const cuplug_call *call) {
  const cuplug_tensor *x = call->tensors + 1;
  if (const int status = check_targets(call, x)) return status;
  return by_dtypes(call, 1, [=](auto zero, auto targets) {
    using T = decltype(zero);
    const backward<T, typename decltype(targets)::type> op = {(const float *)call->tensors[0].data,
                                                              (const T *)x->data,
                                                              (T *)call->tensors[3].data, targets};
    return rows::launch<T>(call, rows::count(x), rows::length(x), op, op.x, op.grad_x);
  });
}
