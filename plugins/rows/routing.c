/* SPDX-License-Identifier: Apache-2.0 */
/* topk_softmax(x, k, renormalize) -> (weights: float32[..., k], indices: int64[..., k]): the k
 * greatest values of softmax(x) along the last axis, from the greatest on, and where they are; of
 * equal ones the first. With renormalize they are divided by their sum. NaN is greater than all
 * numbers. x: T[..., n], float16, bfloat16 or float32, computed with as float32. Made for the few
 * experts of a layer: time grows with k n. Source: Shazeer et al., Outrageously Large Neural
 * Networks, arXiv:1701.06538, equations 3 to 5. */
#include <stdbool.h>

#include "rows/rows.h"

CUPLUG_ENTRY int topk_softmax_cuda(const cuplug_call *call);

/* Integers in the order of floats, and of equal ones the first before others. */
static inline uint64_t key_of(float value, int64_t number) {
  uint32_t bits;
  if (value == 0) value = 0; /* of both signs */
  memcpy(&bits, &value, sizeof bits);
  bits = value != value ? UINT32_MAX : bits >> 31 ? ~bits : bits | 1u << 31;
  return (uint64_t)bits << 32 | (UINT32_MAX - (uint32_t)number);
}
static inline int64_t number_of(uint64_t key) { return UINT32_MAX - (uint32_t)key; }

ROWS_ENTRY(topk_softmax_host) {
  const cuplug_tensor *x = call->tensors, *weights = x + 1;
  const int64_t k = weights->shape[weights->ndim - 1];
  float *weight = (float *)weights->data + row * k, total = 0;
  int64_t *index = (int64_t *)call->tensors[2].data + row * k;
  rows_block v;
  float lanes[ROWS_LANES] = {0};
  const float most = rows_greatest(&v, x, row, n);
  ROWS_OVER(n) {
    if (n > ROWS_BLOCK) rows_load(&v, x, row * n + begin, m, -INFINITY);
    ROWS_ADD(lanes, i, rows_exponential(v.at[i] - most))
  }
  const float sum = rows_sum(lanes);
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

CUPLUG_OPERATOR(
    topk_softmax_cuda, topk_softmax_host,
    "topk_softmax(x: T[..., n], k: int, renormalize: bool = False) -> "
    "(weights: float32[..., k], indices: int64[..., k])" ROWS_DTYPES
    ", 0 <= k <= n, n <= 4294967295",
    "The k greatest of a softmax along the last axis, and where they are." ROWS_PROPERTIES);
