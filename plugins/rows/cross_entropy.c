/* SPDX-License-Identifier: Apache-2.0 */
/* For each row, with p = softmax(x), t its target and s = label_smoothing:
 *   cross_entropy(x, target, ignore_index, label_smoothing)
 *     = -(1 - s) log p[t] - s mean_k log p[k]; 0 if t is ignore_index
 *   cross_entropy_backward(grad, x, target, ...)[j] = grad (p[j] - (1 - s) [j = t] - s / n)
 * x: T[..., n], target: int32 or int64[...] in 0 to n - 1 -> float32[...]. T: float16, bfloat16,
 * float32, computed as float32. The softmax is not stored in an array. Source: Szegedy et al.,
 * Rethinking the Inception Architecture, arXiv:1512.00567, section 7. */
#include <cuplug/format.h>
#include <stdbool.h>

#include "rows/rows.h"

CUPLUG_ENTRY int cross_entropy_cuda(const cuplug_call *call);
CUPLUG_ENTRY int cross_entropy_backward_cuda(const cuplug_call *call);

static int64_t target_at(const cuplug_tensor *target, int64_t row) {
  return cuplug_type(target) == CUPLUG_INT32 ? ((const int32_t *)target->data)[row]
                                             : ((const int64_t *)target->data)[row];
}

/* The numbers from which a row is computed. */
typedef struct sums {
  float most, of_powers, of_elements; /* the sums of exp(x - most) and of x - most */
} sums;

ROWS_INLINE sums sums_of(rows_block *v, const cuplug_tensor *x, int64_t row, int64_t n) {
  float powers[ROWS_LANES] = {0}, elements[ROWS_LANES] = {0};
  const float most = rows_greatest(v, x, row, n);
  ROWS_OVER(n) {
    if (n > ROWS_BLOCK) rows_load(v, x, row * n + begin, m, -INFINITY);
    ROWS_ADD(powers, i, rows_exponential(v->at[i] - most))
    for (int64_t i = m; i % ROWS_LANES; i++) v->at[i] = most;
    ROWS_ADD(elements, i, v->at[i] - most)
  }
  return (sums){most, rows_sum(powers), rows_sum(elements)};
}

ROWS_INLINE void forward(const cuplug_call *call, int64_t row, int64_t n) {
  const cuplug_tensor *x = call->tensors, *target = x + 1;
  const float smoothing = (float)call->scalars[1].f;
  const int64_t t = target_at(target, row);
  float *loss = (float *)call->tensors[2].data + row;
  if (t == call->scalars[0].i || (uint64_t)t >= (uint64_t)n) { /* memory that has changed */
    *loss = 0;
    return;
  }
  rows_block v, own;
  const sums of = sums_of(&v, x, row, n);
  rows_load(&own, x, row * n + t, 1, 0);
  const float log_sum = logf(of.of_powers);
  *loss = log_sum - (1 - smoothing) * (own.at[0] - of.most);
  if (smoothing != 0) *loss -= smoothing * of.of_elements / (float)n;
}

ROWS_INLINE void backward(const cuplug_call *call, int64_t row, int64_t n) {
  const cuplug_tensor *grad = call->tensors, *x = grad + 1, *target = grad + 2;
  const float smoothing = (float)call->scalars[1].f, g = ((const float *)grad->data)[row];
  const int64_t t = target_at(target, row);
  rows_block v;
  const bool is_ignored = t == call->scalars[0].i;
  const sums of = is_ignored ? (sums){0} : sums_of(&v, x, row, n);
  const float factor = g / of.of_powers, every = g * smoothing / (float)n;
  ROWS_OVER(n) {
    rows_load(&v, x, row * n + begin, m, 0);
    if (is_ignored)
      memset(&v, 0, sizeof v);
    else
      ROWS_EACH(i, v.at[i] = rows_exponential(v.at[i] - of.most) * factor - every)
    if (!is_ignored && begin <= t && t < begin + m) v.at[t - begin] -= g * (1 - smoothing);
    rows_store(call->tensors + 3, row * n + begin, m, &v);
  }
}

VECTORS static int forward_rows(void *call_, int64_t begin, int64_t end) {
  const cuplug_call *call = call_;
  for (int64_t row = begin; row < end; row++) forward(call, row, rows_length(call->tensors));
  return CUPLUG_OK;
}
VECTORS static int backward_rows(void *call_, int64_t begin, int64_t end) {
  const cuplug_call *call = call_;
  for (int64_t row = begin; row < end; row++) backward(call, row, rows_length(call->tensors + 1));
  return CUPLUG_OK;
}

static int run(const cuplug_call *call, const cuplug_tensor *x, cuplug_body *body) {
  const cuplug_tensor *target = x + 1;
  const int64_t n_rows = cuplug_n_elements(target), n = rows_length(x);
  for (int64_t row = 0; row < n_rows; row++) {
    const int64_t t = target_at(target, row);
    if ((t < 0 || t >= n) && t != call->scalars[0].i)
      return cuplug_failf(call, CUPLUG_ERROR_INDEX,
                          "target: got %lld at position %lld, expected 0 <= target < %lld, or "
                          "ignore_index",
                          (long long)t, (long long)row, (long long)n);
  }
  return rows_parallel(call, n_rows, n, body, (void *)call);
}
CUPLUG_ENTRY int cross_entropy_host(const cuplug_call *call) {
  return run(call, call->tensors, forward_rows);
}
CUPLUG_ENTRY int cross_entropy_backward_host(const cuplug_call *call) {
  return run(call, call->tensors + 1, backward_rows);
}

#define X "x: T[..., n], target: I[...], ignore_index: int = -100, label_smoothing: float = 0)"
#define CONDITIONS ROWS_DTYPES ", I: int32 | int64, 0 <= label_smoothing <= 1"

CUPLUG_OPERATOR(cross_entropy_cuda, cross_entropy_host,
                "cross_entropy(" X " -> float32[...]" CONDITIONS,
                "The cross entropy of each row, as logits, with a target class." ROWS_PROPERTIES
                    CUPLUG_GRADIENT(cross_entropy_backward));
CUPLUG_OPERATOR(cross_entropy_backward_cuda, cross_entropy_backward_host,
                "cross_entropy_backward(grad: float32[...], " X " -> T[..., n]" CONDITIONS,
                "The gradient of cross_entropy." ROWS_PROPERTIES CUPLUG_LINEAR(grad));
