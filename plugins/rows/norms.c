/* SPDX-License-Identifier: Apache-2.0 */
/* Along the last axis, with h[j] = (x[j] - m) r, in
 *   rms_norm:   m = 0,               r = 1 / sqrt(mean_k x[k]^2 + eps)
 *   layer_norm: m = mean_k x[k],     r = 1 / sqrt(mean_k (x[k] - m)^2 + eps)
 *   rms_norm(x, weight, eps)[j] = h[j] weight[j]
 *   layer_norm(x, weight, bias, eps)[j] = h[j] weight[j] + bias[j]
 *   add_rms_norm(residual, x, ...), add_layer_norm: residual += x, rounded; the norm of residual
 *   ..._backward(grad, x, weight, eps), with g[j] = grad[j] weight[j]:
 *     grad_x[j] = r (g[j] - q - h[j] mean_k g[k] h[k]), q = mean_k g[k] in layer_norm, else 0
 *     grad_weight[j] = sum over rows of grad[j] h[j]      grad_bias[j] = sum over rows of grad[j]
 *   add_..._backward(grad_residual, grad_y, residual, x, ...):
 *     grad_residual += grad_x of residual + x, which is also the gradient of x
 * x, residual, grad: T[..., n]; weight, bias: T[n]. T: float16, bfloat16, float32, computed as
 * float32. Sources: Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv:1910.07467,
 * equation 4; Ba, Kiros and Hinton, Layer Normalization, arXiv:1607.06450, equations 3 and 4. */
#include "rows/rows.h"

#include <math.h>
#include <stdbool.h>

CUPLUG_ENTRY int rms_norm_cuda(const cuplug_call *call);
CUPLUG_ENTRY int add_rms_norm_cuda(const cuplug_call *call);
CUPLUG_ENTRY int rms_norm_backward_cuda(const cuplug_call *call);
CUPLUG_ENTRY int layer_norm_cuda(const cuplug_call *call);
CUPLUG_ENTRY int add_layer_norm_cuda(const cuplug_call *call);
CUPLUG_ENTRY int layer_norm_backward_cuda(const cuplug_call *call);
CUPLUG_ENTRY int add_rms_norm_backward_cuda(const cuplug_call *call);
CUPLUG_ENTRY int add_layer_norm_backward_cuda(const cuplug_call *call);

typedef struct moments {
  float mean, inverse;
} moments;

/* `block` is the row, or its last block. */
ROWS_INLINE moments moments_of(rows_block *block, const cuplug_tensor *x, int64_t row, int64_t n,
                               float eps, bool is_layer) {
  float lanes[ROWS_LANES] = {0}, mean = 0;
  if (is_layer) {
    ROWS_OVER(n) {
      rows_load(block, x, row * n + begin, m, 0);
      ROWS_ADD(lanes, i, block->at[i])
    }
    mean = rows_sum(lanes) / (float)n;
    memset(lanes, 0, sizeof lanes);
  }
  ROWS_OVER(n) {
    if (!is_layer || n > ROWS_BLOCK) rows_load(block, x, row * n + begin, m, mean);
    for (int64_t i = m; i % ROWS_LANES; i++) block->at[i] = mean;
    ROWS_ADD(lanes, i, (block->at[i] - mean) * (block->at[i] - mean))
  }
  return (moments){mean, 1 / sqrtf(rows_sum(lanes) / (float)n + eps)};
}

/* total = a + b, rounded */
ROWS_INLINE void add_row(const cuplug_tensor *total, const cuplug_tensor *a, const cuplug_tensor *b,
                         int64_t row, int64_t n) {
  rows_block v, w;
  ROWS_OVER(n) {
    rows_load(&v, a, row * n + begin, m, 0);
    rows_load(&w, b, row * n + begin, m, 0);
    ROWS_EACH(i, v.at[i] += w.at[i])
    rows_store(total, row * n + begin, m, &v);
  }
}

ROWS_INLINE void norm_row(const cuplug_call *call, int64_t row, int64_t n, bool is_layer,
                          bool is_added) {
  const cuplug_tensor *x = call->tensors, *weight = x + 1 + is_added, *bias = weight + 1;
  const cuplug_tensor *y = weight + 1 + is_layer;
  rows_block v, w, b;
  if (is_added) add_row(x, x, x + 1, row, n);
  const moments of = moments_of(&v, x, row, n, (float)call->scalars[0].f, is_layer);
  ROWS_OVER(n) {
    if (n > ROWS_BLOCK) rows_load(&v, x, row * n + begin, m, 0);
    rows_load(&w, weight, begin, m, 0);
    if (is_layer) {
      rows_load(&b, bias, begin, m, 0);
      ROWS_EACH(i, v.at[i] = (v.at[i] - of.mean) * of.inverse * w.at[i] + b.at[i])
    } else {
      ROWS_EACH(i, v.at[i] = v.at[i] * of.inverse * w.at[i])
    }
    rows_store(y, row * n + begin, m, &v);
  }
}

ROWS_ENTRY(rms_norm_host) { norm_row(call, row, n, false, false); }
ROWS_ENTRY(layer_norm_host) { norm_row(call, row, n, true, false); }
ROWS_ENTRY(add_rms_norm_host) { norm_row(call, row, n, false, true); }
ROWS_ENTRY(add_layer_norm_host) { norm_row(call, row, n, true, true); }

/* With `residual`, the norm is of residual + x. grad_x holds this sum until all columns are
 * added up, and `grad_residual` has the gradient. */
typedef struct job {
  const cuplug_call *call;
  const cuplug_tensor *grad_residual, *grad, *residual, *x, *weight, *grad_x;
  moments *of_row;
  bool is_layer;
} job;

ROWS_INLINE void backward_row(const job *j, int64_t row, int64_t n) {
  const cuplug_tensor *x = j->residual ? j->grad_x : j->x;
  rows_block g, v, w;
  if (j->residual) add_row(x, j->residual, j->x, row, n);
  const float eps = (float)j->call->scalars[0].f;
  const moments of = j->of_row[row] = moments_of(&v, x, row, n, eps, j->is_layer);
  float along[ROWS_LANES] = {0}, sums[ROWS_LANES] = {0};
  ROWS_OVER(n) {
    rows_load(&g, j->grad, row * n + begin, m, 0);
    rows_load(&v, x, row * n + begin, m, 0);
    rows_load(&w, j->weight, begin, m, 0);
    ROWS_ADD(along, i, g.at[i] * w.at[i] * ((v.at[i] - of.mean) * of.inverse))
    ROWS_ADD(sums, i, g.at[i] * w.at[i])
  }
  const float mean_along = rows_sum(along) / (float)n;
  const float mean = j->is_layer ? rows_sum(sums) / (float)n : 0;
  ROWS_OVER(n) {
    rows_load(&g, j->grad, row * n + begin, m, 0);
    rows_load(&v, x, row * n + begin, m, 0);
    rows_load(&w, j->weight, begin, m, 0);
    ROWS_EACH(i, v.at[i] = of.inverse * (g.at[i] * w.at[i] - mean -
                                         (v.at[i] - of.mean) * of.inverse * mean_along))
    if (j->residual) {
      rows_load(&g, j->grad_residual, row * n + begin, m, 0);
      ROWS_EACH(i, v.at[i] += g.at[i])
    }
    rows_store(j->residual ? j->grad_residual : j->grad_x, row * n + begin, m, &v);
  }
}

VECTORS static int backward_rows(void *job_, int64_t begin, int64_t end) {
  const job *j = job_;
  const int64_t n = rows_length(j->x);
  for (int64_t row = begin; row < end; row++) backward_row(j, row, n);
  return CUPLUG_OK;
}

enum { COLUMNS = 256 }; /* columns that a thread adds up at once */

/* Sums over all rows, for groups of columns. */
VECTORS static int backward_columns(void *job_, int64_t first, int64_t end) {
  const job *j = job_;
  const cuplug_tensor *x = j->residual ? j->grad_x : j->x;
  const int64_t n = rows_length(x), n_rows = rows_count(x);
  rows_block g, v;
  for (int64_t begin = first * COLUMNS; begin < n && begin < end * COLUMNS; begin += COLUMNS) {
    const int64_t m = n - begin < COLUMNS ? n - begin : COLUMNS;
    float weight[COLUMNS] = {0}, bias[COLUMNS] = {0};
    for (int64_t row = 0; row < n_rows; row++) {
      const moments of = j->of_row[row];
      rows_load(&g, j->grad, row * n + begin, m, 0);
      rows_load(&v, x, row * n + begin, m, 0);
      ROWS_EACH(i, weight[i] += g.at[i] * ((v.at[i] - of.mean) * of.inverse))
      ROWS_EACH(i, bias[i] += g.at[i])
    }
    memcpy(g.at, weight, sizeof weight);
    rows_store(j->grad_x + 1, begin, m, &g);
    memcpy(g.at, bias, sizeof bias);
    if (j->is_layer) rows_store(j->grad_x + 2, begin, m, &g);
  }
  return CUPLUG_OK;
}

static int copy_rows(void *job_, int64_t begin, int64_t end) {
  const job *j = job_;
  const int64_t row_bytes = rows_length(j->x) * cuplug_element_bytes(j->x);
  memcpy((char *)j->grad_x->data + begin * row_bytes,
         (const char *)j->grad_residual->data + begin * row_bytes,
         (size_t)((end - begin) * row_bytes));
  return CUPLUG_OK;
}

static int backward(const cuplug_call *call, bool is_layer, bool is_added) {
  const cuplug_tensor *t = call->tensors, *grad = t + is_added, *x = grad + 1 + is_added;
  const int64_t n_rows = rows_count(x), n = rows_length(x);
  job j = {.call = call,
           .grad_residual = t,
           .grad = grad,
           .residual = is_added ? grad + 1 : NULL,
           .x = x,
           .weight = x + 1,
           .grad_x = x + 2,
           .of_row = cuplug_workspace(call, (uint64_t)(n_rows + 1) * sizeof(moments)),
           .is_layer = is_layer};
  if (!j.of_row) return CUPLUG_ERROR_MEMORY;
  int status = rows_parallel(call, n_rows, n, backward_rows, &j);
  if (!status) status = cuplug_parallel(call, (n + COLUMNS - 1) / COLUMNS, 1, backward_columns, &j);
  return status || !is_added ? status : rows_parallel(call, n_rows, n, copy_rows, &j);
}
CUPLUG_ENTRY int rms_norm_backward_host(const cuplug_call *call) {
  return backward(call, false, false);
}
CUPLUG_ENTRY int layer_norm_backward_host(const cuplug_call *call) {
  return backward(call, true, false);
}
CUPLUG_ENTRY int add_rms_norm_backward_host(const cuplug_call *call) {
  return backward(call, false, true);
}
CUPLUG_ENTRY int add_layer_norm_backward_host(const cuplug_call *call) {
  return backward(call, true, true);
}

#define X "x: T[..., n], weight: T[n], "
#define ADDED "inout residual: T[..., n], " X
#define GRADIENT_OF_ADDED \
  "inout grad_residual: T[..., n], grad_y: T[..., n], residual: T[..., n], " X

CUPLUG_OPERATOR(rms_norm_cuda, rms_norm_host,
                "rms_norm(" X "eps: float = 1e-6) -> T[..., n]" ROWS_DTYPES,
                "x divided by its root mean square along the last axis." ROWS_PROPERTIES
                    CUPLUG_GRADIENT(rms_norm_backward));
CUPLUG_OPERATOR(rms_norm_backward_cuda, rms_norm_backward_host,
                "rms_norm_backward(grad: T[..., n], " X
                "eps: float = 1e-6) -> (grad_x: T[..., n], grad_weight: T[n])" ROWS_DTYPES,
                "The gradients of rms_norm." ROWS_PROPERTIES CUPLUG_LINEAR(grad));
CUPLUG_OPERATOR(add_rms_norm_cuda, add_rms_norm_host,
                "add_rms_norm(" ADDED "eps: float = 1e-6) -> y: T[..., n]" ROWS_DTYPES,
                "Adds x to residual, and returns the rms_norm of the sum." ROWS_PROPERTIES
                    CUPLUG_GRADIENT(add_rms_norm_backward));
CUPLUG_OPERATOR(add_rms_norm_backward_cuda, add_rms_norm_backward_host,
                "add_rms_norm_backward(" GRADIENT_OF_ADDED
                "eps: float = 1e-6) -> (grad_x: T[..., n], grad_weight: T[n])" ROWS_DTYPES,
                "The gradients of add_rms_norm." ROWS_PROPERTIES CUPLUG_LINEAR(grad_residual,
                                                                               grad_y));
CUPLUG_OPERATOR(layer_norm_cuda, layer_norm_host,
                "layer_norm(" X "bias: T[n], eps: float = 1e-5) -> T[..., n]" ROWS_DTYPES,
                "x with mean 0 and variance 1 along the last axis." ROWS_PROPERTIES CUPLUG_GRADIENT(
                    layer_norm_backward));
CUPLUG_OPERATOR(layer_norm_backward_cuda, layer_norm_backward_host,
                "layer_norm_backward(grad: T[..., n], " X "eps: float = 1e-5) -> "
                "(grad_x: T[..., n], grad_weight: T[n], grad_bias: T[n])" ROWS_DTYPES,
                "The gradients of layer_norm." ROWS_PROPERTIES CUPLUG_LINEAR(grad));
CUPLUG_OPERATOR(add_layer_norm_cuda, add_layer_norm_host,
                "add_layer_norm(" ADDED
                "bias: T[n], eps: float = 1e-5) -> y: T[..., n]" ROWS_DTYPES,
                "Adds x to residual, and returns the layer_norm of the sum." ROWS_PROPERTIES
                    CUPLUG_GRADIENT(add_layer_norm_backward));
CUPLUG_OPERATOR(add_layer_norm_backward_cuda, add_layer_norm_backward_host,
                "add_layer_norm_backward(" GRADIENT_OF_ADDED "eps: float = 1e-5) -> "
                "(grad_x: T[..., n], grad_weight: T[n], grad_bias: T[n])" ROWS_DTYPES,
                "The gradients of add_layer_norm." ROWS_PROPERTIES CUPLUG_LINEAR(grad_residual,
                                                                                 grad_y));
