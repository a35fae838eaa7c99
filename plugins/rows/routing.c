/* SPDX-License-Identifier: Apache-2.0 */
/* topk_softmax(x, k, renormalize) -> (weights: float32[..., k], indices: int64[..., k]): the k
 * largest values of softmax(x) along the last axis, in descending order, and their positions; of
 * equal ones, the first. With renormalize, they are divided by their sum. NaN is larger than all
 * numbers. x: T[..., n], float16, bfloat16 or float32, computed as float32. It is made for the few
 * experts of a layer: time grows with k n. Source: Shazeer et al., Outrageously Large Neural
 * Networks, arXiv:1701.06538, equations 3 to 5.
 *   topk_softmax_backward(grad_weights, weights, indices, x, renormalize)[i], with p = softmax(x)
 *   and s = sum_j grad_weights[j] weights[j]
 *     = sum over j with indices[j] = i of grad_weights[j] weights[j], minus p[i] s
 *   with renormalize: sum over these j of (grad_weights[j] - s) weights[j] */
#include <cuplug/format.h>
#include <stdbool.h>

#include "rows/rows.h"

CUPLUG_ENTRY int topk_softmax_cuda(const cuplug_call *call);
CUPLUG_ENTRY int topk_softmax_backward_cuda(const cuplug_call *call);

/* Integers in the order of floats. Of equal floats, the first has the larger integer. */
static inline uint64_t key_of(float value, int64_t number) {
  uint32_t bits;
  if (value == 0) value = 0; /* for both signs */
  memcpy(&bits, &value, sizeof bits);
  bits = value != value ? UINT32_MAX : bits >> 31 ? ~bits : bits | 1u << 31;
  return (uint64_t)bits << 32 | (UINT32_MAX - (uint32_t)number);
}
static inline int64_t number_of(uint64_t key) { return UINT32_MAX - (uint32_t)key; }

/* `block` is the row, or its last block. */
ROWS_INLINE float sum_of_powers(rows_block *block, const cuplug_tensor *x, int64_t row, int64_t n,
                                float most) {
  float lanes[ROWS_LANES] = {0};
  ROWS_OVER(n) {
    if (n > ROWS_BLOCK) rows_load(block, x, row * n + begin, m, -INFINITY);
    ROWS_ADD(lanes, i, rows_exponential(block->at[i] - most))
  }
  return rows_sum(lanes);
}

ROWS_ENTRY(topk_softmax_host) {
  const cuplug_tensor *x = call->tensors, *weights = x + 1;
  const int64_t k = rows_length(weights);
  float *weight = (float *)weights->data + row * k, total = 0;
  int64_t *index = (int64_t *)call->tensors[2].data + row * k;
  rows_block v;
  const float most = rows_greatest(&v, x, row, n), sum = sum_of_powers(&v, x, row, n, most);
  uint64_t last = UINT64_MAX;
  for (int64_t j = 0; j < k; j++) {
    uint64_t next = 0;
    float value = 0;
    ROWS_OVER(n) {
      if (n > ROWS_BLOCK) rows_load(&v, x, row * n + begin, m, 0);
      for (int64_t i = 0; i < m; i++) {
        const uint64_t key = key_of(v.at[i], begin + i);
        if (key < last && key >= next) next = key, value = v.at[i];
      }
    }
    index[j] = number_of(last = next);
    total += weight[j] = rows_exponential(value - most) / sum;
  }
  for (int64_t j = 0; j < k && call->scalars[1].i; j++) weight[j] /= total;
}

VECTORS static void backward(const cuplug_call *call, int64_t row, int64_t n) {
  const cuplug_tensor *x = call->tensors + 3;
  const int64_t k = rows_length(call->tensors);
  const float *grad = (const float *)call->tensors[0].data + row * k;
  const float *weight = (const float *)call->tensors[1].data + row * k;
  const int64_t *index = (const int64_t *)call->tensors[2].data + row * k;
  const bool renormalizes = call->scalars[0].i;
  float along = 0;
  for (int64_t j = 0; j < k; j++) along += grad[j] * weight[j];
  rows_block v;
  const float most = renormalizes ? 0 : rows_greatest(&v, x, row, n);
  const float factor = renormalizes ? 0 : along / sum_of_powers(&v, x, row, n, most);
  ROWS_OVER(n) {
    if (renormalizes)
      memset(&v, 0, sizeof v);
    else {
      if (n > ROWS_BLOCK) rows_load(&v, x, row * n + begin, m, 0);
      ROWS_EACH(i, v.at[i] = -rows_exponential(v.at[i] - most) * factor)
    }
    for (int64_t j = 0; j < k; j++)
      if (begin <= index[j] && index[j] < begin + m)
        v.at[index[j] - begin] += (grad[j] - (renormalizes ? along : 0)) * weight[j];
    rows_store(call->tensors + 4, row * n + begin, m, &v);
  }
}
static int backward_rows(void *call_, int64_t begin, int64_t end) {
  const cuplug_call *call = call_;
  for (int64_t row = begin; row < end; row++) backward(call, row, rows_length(call->tensors + 3));
  return CUPLUG_OK;
}

CUPLUG_ENTRY int topk_softmax_backward_host(const cuplug_call *call) {
  const cuplug_tensor *indices = call->tensors + 2, *x = indices + 1;
  const int64_t n = rows_length(x), n_indices = cuplug_n_elements(indices);
  for (int64_t i = 0; i < n_indices; i++) {
    const int64_t index = ((const int64_t *)indices->data)[i];
    if (index < 0 || index >= n)
      return cuplug_failf(call, CUPLUG_ERROR_INDEX,
                          "indices: got %lld at position %lld, expected 0 <= indices < %lld",
                          (long long)index, (long long)i, (long long)n);
  }
  return rows_parallel(call, rows_count(x), n, backward_rows, (void *)call);
}

CUPLUG_OPERATOR(
    topk_softmax_cuda, topk_softmax_host,
    "topk_softmax(x: T[..., n], k: int, renormalize: bool = False) -> "
    "(weights: float32[..., k], indices: int64[..., k])" ROWS_DTYPES
    ", 0 <= k <= n, n <= 4294967295",
    "The k largest values of a softmax along the last axis, and their positions." ROWS_PROPERTIES
        CUPLUG_GRADIENT(topk_softmax_backward));
CUPLUG_OPERATOR(topk_softmax_backward_cuda, topk_softmax_backward_host,
                "topk_softmax_backward(grad_weights: float32[..., k], weights: float32[..., k], "
                "indices: int64[..., k], x: T[..., n], renormalize: bool = False) -> "
                "T[..., n]" ROWS_DTYPES ", k <= n, 0 <= indices < n",
                "The gradient of topk_softmax." ROWS_PROPERTIES CUPLUG_LINEAR(grad_weights));
