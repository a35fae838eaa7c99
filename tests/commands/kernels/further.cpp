/* SPDX-License-Identifier: Apache-2.0 */
/* Six operators with further traits of kernels in use: lists that are changed, sizes that the run
 * finds, ranges of elements, an output laid out like an input, a carry, a gradient, two dtypes.
 * -DDEFECT=1, 2 or 3 plants one defect in each of them; tests/commands/test_kernels.py lists which
 * check finds it. */
#include <cmath>
#include <cstring>
#include <cuplug/plugin.hpp>
#include <type_traits>

#ifndef DEFECT
#define DEFECT 0
#endif

/* 1. Adam for all tensors of a model. 1: the last one is omitted; 2: all have the size of the
 * first; 3: the step is ignored. */
CUPLUG_TYPED_HOST_OPERATOR(adam,
                           "adam(inout params: T[*s][each], grads: T[*s][each], "
                           "inout m: float32[*s][each], inout v: float32[*s][each], step: int, "
                           "lr: float = 0.5) where T: float32 | float64, 0 < step < 100",
                           "For `cuplug test`.");
CUPLUG_HOST_ENTRY(adam, (T), params, grads, m, v, step, lr) {
  const double t = DEFECT == 3 ? 1 : (double)step;
  const int64_t n = params.size() - (DEFECT == 1 && params.size() > 1);
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < params[DEFECT == 2 ? 0 : k].size(); i++) {
      const double g = grads[k][i];
      m[k][i] = (float)(0.5 * m[k][i] + 0.5 * g);
      v[k][i] = (float)(0.75 * std::fabs(v[k][i]) + 0.25 * g * g);
      const double root = std::sqrt(v[k][i] / (1 - std::pow(0.75, t)));
      params[k][i] = (T)(params[k][i] - lr * m[k][i] / (1 - std::pow(0.5, t)) / (root + 0.5));
    }
  return CUPLUG_OK;
}

/* 2. Elements by a mask. 1: the memory lacks one element; 2: numbers of 8 bytes are copied as
 * those of 4; 3: the element after the last one is read. */
CUPLUG_TYPED_HOST_OPERATOR(
    select_where, "select_where(x: T[n], mask: bool[n]) -> T[?] where T: float32 | float64",
    "For `cuplug test`.");
CUPLUG_HOST_ENTRY(select_where, (T), x, mask, out) {
  int64_t n = 0, at = 0;
  for (int64_t i = 0; i < x.size(); i++) n += mask[i] && (DEFECT != 3 || x[i + 1] < 50);
  if (int status = out.allocate(DEFECT == 1 && n ? n - 1 : n)) return status;
  for (int64_t i = 0; i < x.size() && at < n; i++)
    if (mask[i]) std::memcpy(&out[at++], &x[i], DEFECT == 2 ? 4 : sizeof(T));
  return CUPLUG_OK;
}

/* 3. Counts of numbers that are trusted. 1: the output is not cleared; 2: one number
 * beyond the end is also counted; 3: the last number is omitted. */
CUPLUG_TYPED_HOST_OPERATOR(histogram,
                           "histogram(x: I[n], bins: int) -> counts: int64[bins] "
                           "where I: int32 | int64, 0 < bins <= 64, 0 <= x < bins",
                           "For `cuplug test`.");
CUPLUG_HOST_ENTRY(histogram, (I), x, bins, counts) {
  if (DEFECT != 1)
    for (int64_t i = 0; i < bins; i++) counts[i] = 0;
  for (int64_t i = 0; i < x.size() + (DEFECT == 2) - (DEFECT == 3 && x.size() > 1); i++)
    if (i < x.size() || (x[i] >= 0 && x[i] < bins)) ++counts[x[i]];
  return CUPLUG_OK;
}

/* 4. Pooling of images in any order. 1: the output is taken for a C-contiguous one; 2: windows are
 * one column too wide; 3: the maximum of negative numbers is 0. */
CUPLUG_TYPED_HOST_OPERATOR(pool,
                           "pool(x: float32[n, c, h, w], size: int = 2) -> y: "
                           "float32[n, c, h // size, w // size] like x where 0 < size < 5",
                           "For `cuplug test`." CUPLUG_TAKES_STRIDES);
CUPLUG_HOST_ENTRY(pool, x, n, c, size, y) {
  const int64_t rows = y.shape(2), columns = y.shape(3);
  for (int64_t p = 0; p < n * c; p++)
    for (int64_t r = 0; r < rows; r++)
      for (int64_t k = 0; k < columns; k++) {
        const int64_t in = p / c * x.stride(0) + p % c * x.stride(1);
        const int64_t to = p / c * y.stride(0) + p % c * y.stride(1) + r * y.stride(2);
        float most = DEFECT == 3 ? 0.0F : -INFINITY;
        for (int64_t i = 0; i < size; i++)
          for (int64_t j = 0; j < size + (DEFECT == 2); j++)
            most = std::fmax(most,
                             x[in + (r * size + i) * x.stride(2) + (k * size + j) * x.stride(3)]);
        y[DEFECT == 1 ? (p * rows + r) * columns + k : to + k * y.stride(3)] = most;
      }
  return CUPLUG_OK;
}

/* 5. Sums along lines, and their last values. 1: a line continues with the sum of the previous
 * line; 2: sums have 24 bits; 3: the last line's end is not written. */
CUPLUG_TYPED_HOST_OPERATOR(scan,
                           "scan(x: T[..., n], start: float = 0) -> (y: T[..., n], end: T[...]) "
                           "where T: float32 | float64",
                           "For `cuplug test`.");
CUPLUG_HOST_ENTRY(scan, (T), x, n, start, y, end) {
  using sum_type = std::conditional_t<DEFECT == 2, float, double>;
  sum_type sum = (sum_type)start;
  for (int64_t line = 0; line < end.size(); line++) {
    if (DEFECT != 1) sum = (sum_type)start;
    for (int64_t i = line * n; i < (line + 1) * n; i++) y[i] = (T)(sum += (sum_type)x[i]);
    if (DEFECT != 3 || line + 1 < end.size()) end[line] = (T)sum;
  }
  return CUPLUG_OK;
}

/* 6. A function and its gradient. 1: the gradient of negative numbers has the other sign; 2: the
 * output is written before the input is read; 3: an optional bias is ignored. */
CUPLUG_TYPED_HOST_OPERATOR(softplus,
                           "softplus(x: T[n], bias: T[n] = None) -> T[n] "
                           "where T: float32 | float64",
                           "For `cuplug test`." CUPLUG_GRADIENT(softplus_backward) CUPLUG_IN_PLACE);
CUPLUG_HOST_ENTRY(softplus, (T), x, bias, out) {
  for (int64_t i = 0; i < x.size(); i++) {
    if (DEFECT == 2) out[i] = 0;
    const T t = x[i] + (bias && DEFECT != 3 ? bias[i] : T(0));
    out[i] = std::log1p(std::exp(-std::fabs(t))) + std::fmax(t, T(0));
  }
  return CUPLUG_OK;
}

CUPLUG_TYPED_HOST_OPERATOR(softplus_backward,
                           "softplus_backward(grad: T[n], x: T[n], bias: T[n] = None) -> "
                           "(grad_x: T[n], grad_bias: T[n]) where T: float32 | float64",
                           "The gradient of softplus." CUPLUG_LINEAR(grad));
CUPLUG_HOST_ENTRY(softplus_backward, (T), grad, x, bias, grad_x, grad_bias) {
  for (int64_t i = 0; i < x.size(); i++) {
    const T t = x[i] + (bias ? bias[i] : T(0));
    const T slope = 1 / (1 + std::exp(-t));
    grad_bias[i] = grad_x[i] = grad[i] * (DEFECT == 1 && t < 0 ? -slope : slope);
  }
  return CUPLUG_OK;
}

CUPLUG_PLUGIN(further, "1.0.0");
