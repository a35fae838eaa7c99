/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of softmax.c. */
#include "rows/launch.cuh"

namespace {

template <typename T, bool IS_LOG> struct forward {
  static constexpr int KEPT = 1;
  const T *x;
  T *y;
  template <typename Part> __device__ void run(const Part &p) const {
    const auto own = p.keep(p.at(x));
    float most = -INFINITY, sum = 0;
    p.each([&](float v) { most = fmaxf(most, v); }, own);
    most = p.greatest(most);
    const auto power = [=](float v) { return rows::exponential<T>(v - most); };
    if constexpr (IS_LOG) {
      p.each([&](float v) { sum += power(v); }, own);
      const float log_sum = logf(p.sum(sum));
      p.map(
          p.at(y), [=](float v) { return v - most - log_sum; }, own);
    } else {
      const auto powers = p.make(power, own);
      p.each([&](float v) { sum += v; }, powers);
      const float factor = 1 / p.sum(sum);
      p.map(
          p.at(y), [=](float v) { return v * factor; }, powers);
    }
  }
};

template <typename T, bool IS_LOG> struct backward {
  static constexpr int KEPT = 2;
  const T *grad, *y;
  T *out;
  template <typename Part> __device__ void run(const Part &p) const {
    const auto own_grad = p.keep(p.at(grad)), own_y = p.keep(p.at(y));
    float part = 0;
    p.each([&](float g, float v) { part += IS_LOG ? g : g * v; }, own_grad, own_y);
    const float sum = p.sum(part);
    const auto value = [=](float g, float v) {
      return IS_LOG ? g - rows::exponential<T>(v) * sum : v * (g - sum);
    };
    p.map(p.at(out), value, own_grad, own_y);
  }
};

template <bool IS_LOG> int run_forward(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0], *y = &call->tensors[1];
  return rows::by_dtype(x, [=](auto zero) {
    using T = decltype(zero);
    const forward<T, IS_LOG> op = {(const T *)x->data, (T *)y->data};
    return rows::launch<T>(call, rows::count(x), rows::length(x), op, op.x, op.y);
  });
}

template <bool IS_LOG> int run_backward(const cuplug_call *call) {
  const cuplug_tensor *t = call->tensors;
  return rows::by_dtype(t, [=](auto zero) {
    using T = decltype(zero);
    const backward<T, IS_LOG> op = {(const T *)t[0].data, (const T *)t[1].data, (T *)t[2].data};
    return rows::launch<T>(call, rows::count(t), rows::length(t), op, op.grad, op.y, op.out);
  });
}

} // namespace

CUPLUG_ENTRY int softmax_cuda(const cuplug_call *call) { return run_forward<false>(call); }
CUPLUG_ENTRY int log_softmax_cuda(const cuplug_call *call) { return run_forward<true>(call); }
CUPLUG_ENTRY int softmax_backward_cuda(const cuplug_call *call) {
  return run_backward<false>(call);
}
CUPLUG_ENTRY int log_softmax_backward_cuda(const cuplug_call *call) {
  return run_backward<true>(call);
}
