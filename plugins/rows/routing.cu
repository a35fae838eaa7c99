/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of routing.c. */
#include "rows/launch.cuh"

namespace {

using key = unsigned long long;

/* Integers in the order of floats. Of equal floats, the first has the larger integer. */
__device__ inline key key_of(float value, uint32_t number) {
  uint32_t bits;
  if (value == 0) value = 0; /* for both signs */
  memcpy(&bits, &value, sizeof bits);
  bits = value != value ? UINT32_MAX : bits >> 31 ? ~bits : bits | 1u << 31;
  return (key)bits << 32 | (UINT32_MAX - number);
}
__device__ inline float value_of(key k) {
  const uint32_t ordered = (uint32_t)(k >> 32),
                 bits = ordered >> 31 ? ordered ^ 1u << 31 : ~ordered;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

struct greater_key {
  __device__ key operator()(key a, key b) const { return a > b ? a : b; }
};

/* Rows of experts are short: clusters would double the machine code of these ops. */
template <typename T> struct topk {
  static constexpr int KEPT = 0;
  const T *x;
  float *weights;
  int64_t *indices;
  int64_t k;
  bool renormalizes;
  template <typename Part> __device__ void run(const Part &p) const {
    const auto own = p.keep(p.at(x));
    float most = -INFINITY, sum = 0, total = 0;
    p.each([&](float v) { most = fmaxf(most, v); }, own);
    most = p.greatest(most);
    p.each([&](float v) { sum += expf(v - most); }, own);
    sum = p.sum(sum);
    float *const weight = weights + p.row * k;
    key last = ~(key)0;
    for (int64_t j = 0; j < k; j++) {
      key next = 0;
      p.each(
          [&](float v, auto number) {
            const key own_key = key_of(v, (uint32_t)number);
            if (own_key < last) next = greater_key()(next, own_key);
          },
          own, p.numbers());
      last = p.reduce(next, (key)0, greater_key());
      const float value = expf(value_of(last) - most) / sum;
      total += value;
      if (!p.is_first()) continue;
      weight[j] = value;
      indices[p.row * k + j] = UINT32_MAX - (uint32_t)last;
    }
    if (renormalizes && p.is_first())
      for (int64_t j = 0; j < k; j++) weight[j] /= total;
  }
};

template <typename T> struct topk_backward {
  static constexpr int KEPT = 0;
  const float *grad, *weights;
  const int64_t *indices;
  const T *x;
  T *grad_x;
  int64_t k;
  bool renormalizes;
  cuplug_fault *fault;
  template <typename Part> __device__ void run(const Part &p) const {
    const int64_t first = p.row * k, end = first + k;
    float along = 0, most = -INFINITY, sum = 0;
    for (int64_t j = first; j < end; j++) {
      along += grad[j] * weights[j];
      if (p.is_first() && (uint64_t)indices[j] >= (uint64_t)p.length)
        cuplug_fault_index(fault, 2, j, indices[j], 0, p.length);
    }
    const auto own = p.keep(p.at(x));
    if (!renormalizes) {
      p.each([&](float v) { most = fmaxf(most, v); }, own);
      most = p.greatest(most);
      p.each([&](float v) { sum += expf(v - most); }, own);
      sum = p.sum(sum);
    }
    p.map(
        p.at(grad_x),
        [=](float v, auto number) {
          float value = renormalizes ? 0 : -expf(v - most) / sum * along;
          for (int64_t j = first; j < end; j++)
            if (indices[j] == number)
              value += (renormalizes ? grad[j] - along : grad[j]) * weights[j];
          return value;
        },
        own, p.numbers());
  }
};

} // namespace

CUPLUG_ENTRY int topk_softmax_cuda(const cuplug_call *call) {
  const cuplug_tensor *t = call->tensors;
  return rows::by_dtype(t, [=](auto zero) {
    using T = decltype(zero);
    const topk<T> op = {(const T *)t[0].data, (float *)t[1].data, (int64_t *)t[2].data,
                        rows::length(t + 1), call->scalars[1].i != 0};
    return rows::launch<T>(call, rows::count(t), rows::length(t), op, op.x);
  });
}

CUPLUG_ENTRY int topk_softmax_backward_cuda(const cuplug_call *call) {
  const cuplug_tensor *t = call->tensors, *x = t + 3;
  return rows::by_dtype(x, [=](auto zero) {
    using T = decltype(zero);
    const topk_backward<T> op = {(const float *)t[0].data,
                                 (const float *)t[1].data,
                                 (const int64_t *)t[2].data,
                                 (const T *)x->data,
                                 (T *)t[4].data,
                                 rows::length(t),
                                 call->scalars[0].i != 0,
                                 call->fault};
    return rows::launch<T>(call, rows::count(x), rows::length(x), op, op.x, op.grad_x);
  });
}
