/* SPDX-License-Identifier: Apache-2.0 */
/* Along the last axis, with m = max_k x[k]:
 *   softmax(x)[j] = exp(x[j] - m) / sum_k exp(x[k] - m)
 *   log_softmax(x)[j] = x[j] - m - log sum_k exp(x[k] - m)
 *   softmax_backward(grad, y)[j] = y[j] (grad[j] - sum_k grad[k] y[k])
 *   log_softmax_backward(grad, y)[j] = grad[j] - exp(y[j]) sum_k grad[k]
 * x, y, grad: T[..., n] -> T[..., n]. T: float16, bfloat16, float32, computed as float32. A row
 * with NaN or +inf, or only -inf, becomes NaN. Each array moves once: rows of up to 8 Ki elements
 * stay in the registers of a block, longer ones in a cluster's registers or in caches. */
#include "rows/rows.h"

#include <math.h>

CUPLUG_ENTRY int softmax_cuda(const cuplug_call *call);
CUPLUG_ENTRY int log_softmax_cuda(const cuplug_call *call);
CUPLUG_ENTRY int softmax_backward_cuda(const cuplug_call *call);
CUPLUG_ENTRY int log_softmax_backward_cuda(const cuplug_call *call);

/* Loads a block again, for rows with several blocks. */
#define AGAIN(block, x) \
  if (n > ROWS_BLOCK) rows_load(&block, x, row *n + begin, m, -INFINITY)

ROWS_ENTRY(softmax_host) {
  const cuplug_tensor *x = &call->tensors[0], *y = &call->tensors[1];
  rows_block v;
  float lanes[ROWS_LANES] = {0};
  const float most = rows_greatest(&v, x, row, n);
  ROWS_OVER(n) {
    AGAIN(v, x);
    ROWS_LANES_EACH(i, lane, v.at[i] = rows_exponential(v.at[i] - most))
    ROWS_ADD(lanes, i, v.at[i])
  }
  const float factor = 1 / rows_sum(lanes);
  ROWS_OVER(n) {
    AGAIN(v, x);
    if (n > ROWS_BLOCK) ROWS_EACH(i, v.at[i] = rows_exponential(v.at[i] - most))
    ROWS_EACH(i, v.at[i] *= factor)
    rows_store(y, row * n + begin, m, &v);
  }
}

ROWS_ENTRY(log_softmax_host) {
  const cuplug_tensor *x = &call->tensors[0], *y = &call->tensors[1];
  rows_block v, power;
  float lanes[ROWS_LANES] = {0};
  const float most = rows_greatest(&v, x, row, n);
  ROWS_OVER(n) {
    AGAIN(v, x);
    ROWS_LANES_EACH(i, lane, power.at[i] = rows_exponential(v.at[i] - most))
    ROWS_ADD(lanes, i, power.at[i])
  }
  const float log_sum = logf(rows_sum(lanes));
  ROWS_OVER(n) {
    AGAIN(v, x);
    ROWS_EACH(i, v.at[i] = v.at[i] - most - log_sum)
    rows_store(y, row * n + begin, m, &v);
  }
}

ROWS_ENTRY(softmax_backward_host) {
  const cuplug_tensor *grad = &call->tensors[0], *y = &call->tensors[1];
  rows_block g, v;
  float lanes[ROWS_LANES] = {0};
  ROWS_OVER(n) {
    rows_load(&g, grad, row * n + begin, m, 0);
    rows_load(&v, y, row * n + begin, m, 0);
    ROWS_ADD(lanes, i, g.at[i] * v.at[i])
  }
  const float sum = rows_sum(lanes);
  ROWS_OVER(n) {
    rows_load(&g, grad, row * n + begin, m, 0);
    rows_load(&v, y, row * n + begin, m, 0);
    ROWS_EACH(i, g.at[i] = v.at[i] * (g.at[i] - sum))
    rows_store(&call->tensors[2], row * n + begin, m, &g);
  }
}

ROWS_ENTRY(log_softmax_backward_host) {
  const cuplug_tensor *grad = &call->tensors[0], *y = &call->tensors[1];
  rows_block g, v;
  float lanes[ROWS_LANES] = {0};
  ROWS_OVER(n) {
    rows_load(&g, grad, row * n + begin, m, 0);
    ROWS_ADD(lanes, i, g.at[i])
  }
  const float sum = rows_sum(lanes);
  ROWS_OVER(n) {
    rows_load(&g, grad, row * n + begin, m, 0);
    rows_load(&v, y, row * n + begin, m, 0);
    ROWS_EACH(i, g.at[i] -= rows_exponential(v.at[i]) * sum)
    rows_store(&call->tensors[2], row * n + begin, m, &g);
  }
}

CUPLUG_OPERATOR(
    softmax_cuda, softmax_host, "softmax(x: T[..., n]) -> y: T[..., n]" ROWS_DTYPES,
    "The softmax along the last axis." ROWS_PROPERTIES CUPLUG_GRADIENT(softmax_backward));
CUPLUG_OPERATOR(softmax_backward_cuda, softmax_backward_host,
                "softmax_backward(grad: T[..., n], y: T[..., n]) -> T[..., n]" ROWS_DTYPES,
                "The gradient of softmax, from its result." ROWS_PROPERTIES CUPLUG_LINEAR(grad));
CUPLUG_OPERATOR(log_softmax_cuda, log_softmax_host,
                "log_softmax(x: T[..., n]) -> y: T[..., n]" ROWS_DTYPES,
                "The logarithm of the softmax along the last axis." ROWS_PROPERTIES CUPLUG_GRADIENT(
                    log_softmax_backward));
CUPLUG_OPERATOR(
    log_softmax_backward_cuda, log_softmax_backward_host,
    "log_softmax_backward(grad: T[..., n], y: T[..., n]) -> T[..., n]" ROWS_DTYPES,
    "The gradient of log_softmax, from its result." ROWS_PROPERTIES CUPLUG_LINEAR(grad));
CUPLUG_PLUGIN(rows, "1.0.0");
