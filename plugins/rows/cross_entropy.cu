/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of cross_entropy.c. */
#include "rows/launch.cuh"

namespace {

/* The targets of a call, and the conditions under which they count. */
struct targets {
  const void *of_row;
  int64_t ignored, n;
  float smoothing;
  cuplug_fault *fault;
  uint32_t number; /* number of the tensor */
  bool is_narrow;  /* int32, else int64 */

  __device__ int64_t of(int64_t row) const {
    return is_narrow ? static_cast<const int32_t *>(of_row)[row]
                     : static_cast<const int64_t *>(of_row)[row];
  }
  /* Returns whether the target t of a row counts. An invalid one is recorded. */
  __device__ bool counts(int64_t row, int64_t t) const {
    if (t == ignored) return false;
    if (t >= 0 && t < n) return true;
    if (threadIdx.x == 0) cuplug_fault_index(fault, number, row, t, 0, n);
    return false;
  }
};

/* The sum of e^(x - most) over elements x with the maximum `most`. */
struct powers {
  float most, sum;
};
template <typename T> struct add_powers {
  __device__ static float over(const powers &p, float most) {
    return p.most == most ? p.sum : p.sum * rows::exponential<T>(p.most - most);
  }
  __device__ powers operator()(const powers &a, const powers &b) const {
    const float most = fmaxf(a.most, b.most);
    return {most, over(a, most) + over(b, most)};
  }
  template <int W> __device__ powers operator()(const powers &a, const float (&values)[W]) const {
    float most = a.most;
#pragma unroll
    for (int k = 0; k < W; k++) most = fmaxf(most, values[k]);
    const float from = most == -INFINITY ? 0 : most; /* masked elements have no power */
    float sum = over(a, most);
#pragma unroll
    for (int k = 0; k < W; k++) sum += rows::exponential<T>(values[k] - from);
    return {most, sum};
  }
};

/* Processes a row, which is read once. Its length determines whether registers hold it, or would if
 * it were aligned. If so, the maximum is computed first, which takes fewer instructions. */
template <typename T, typename Part, typename X>
__device__ powers powers_of(const Part &p, const X &own) {
  const add_powers<T> add;
  powers found = {-INFINITY, 0};
  if (Part::IS_HELD || p.length <= rows::more<Part::W> * rows::MOST_THREADS) {
    p.each([&](float v) { found.most = fmaxf(found.most, v); }, own);
    found.most = p.greatest(found.most);
    p.each([&](float v) { found.sum += rows::exponential<T>(v - found.most); }, own);
    return {found.most, p.sum(found.sum)};
  }
  p.each_pack([&](const auto &values) { found = add(found, values); }, own);
  return p.reduce(found, powers{-INFINITY, 0}, add);
}

template <typename T> struct forward {
  static constexpr int KEPT = 0;
  const T *x;
  float *loss;
  targets target;
  template <typename Part> __device__ void run(const Part &p) const {
    const auto own = p.keep(p.at(x));
    const int64_t t = p.n ? target.of(p.row) : 0;
    const float chosen = t >= 0 && t < p.n ? (float)p.at(x)[t] : 0;
    const powers found = powers_of<T>(p, own);
    float elements = 0;
    if (target.smoothing != 0) {
      p.each([&](float v) { elements += v - found.most; }, own);
      elements = p.sum(elements) / (float)p.length;
    }
    if (!p.is_first()) return;
    const float own_loss = logf(found.sum) - (1 - target.smoothing) * (chosen - found.most);
    loss[p.row] = !target.counts(p.row, t) ? 0
                  : target.smoothing != 0  ? own_loss - target.smoothing * elements
                                           : own_loss;
  }
};

template <typename T> struct backward {
  static constexpr int KEPT = 1;
  const float *grad;
  const T *x;
  T *grad_x;
  targets target;
  template <typename Part> __device__ void run(const Part &p) const {
    const auto own = p.keep(p.at(x));
    const int64_t t = p.n ? target.of(p.row) : 0;
    const float g = p.n ? grad[p.row] : 0;
    float most = -INFINITY, sum = 0;
    p.each([&](float v) { most = fmaxf(most, v); }, own);
    most = p.greatest(most);
    const auto powers = p.make([=](float v) { return rows::exponential<T>(v - most); }, own);
    p.each([&](float v) { sum += v; }, powers);
    sum = p.sum(sum);
    if (p.n == 0) return;
    const bool counts = target.counts(p.row, t);
    const float factor = g / sum, every = g * target.smoothing / (float)p.length,
                own_part = g * (1 - target.smoothing);
    p.map(
        p.at(grad_x),
        [=](float v, auto j) {
          const float value = v * factor - every;
          return !counts ? 0 : j == t ? value - own_part : value;
        },
        powers, p.numbers());
  }
};

targets targets_of(const cuplug_call *call, uint32_t x) {
  const cuplug_tensor *target = call->tensors + x + 1;
  return {target->data,
          call->scalars[0].i,
          rows::length(call->tensors + x),
          (float)call->scalars[1].f,
          call->fault,
          x + 1,
          cuplug_type(target) == CUPLUG_INT32};
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
  return rows::by_dtype(x, [=](auto zero) {
    using T = decltype(zero);
    const forward<T> op = {(const T *)x->data, (float *)call->tensors[2].data, targets_of(call, 0)};
    return rows::launch<T>(call, rows::count(x), rows::length(x), op, op.x);
  });
}

CUPLUG_ENTRY int cross_entropy_backward_cuda(const cuplug_call *call) {
  const cuplug_tensor *x = call->tensors + 1;
  if (const int status = check_targets(call, x)) return status;
  return rows::by_dtype(x, [=](auto zero) {
    using T = decltype(zero);
    const backward<T> op = {(const float *)call->tensors[0].data, (const T *)x->data,
                            (T *)call->tensors[3].data, targets_of(call, 1)};
    return rows::launch<T>(call, rows::count(x), rows::length(x), op, op.x, op.grad_x);
  });
}
