/* SPDX-License-Identifier: Apache-2.0 */
/* rotary(q, cos, sin, positions, k, interleaved): rotates pairs (a, b) of elements of each head, in
 * place, by the angles of its token:
 *   a, b = a c - b s, b c + a s   with c = cos[positions[t], i], s = sin[positions[t], i]
 * Pair i is q[t, h, i] and q[t, h, i + r], or with interleaved q[t, h, 2 i] and q[t, h, 2 i + 1];
 * elements from 2 r on are unchanged. The same for k, which may be omitted. q and k may be slices
 * of one buffer; they are not copied.
 *   rotary_backward(grad_q, cos, sin, positions, grad_k, interleaved): rotates gradients back
 * q: T[n, h, d], k: T[n, hk, d], cos, sin: float32[m, r], positions: int32 or int64[n] in 0 to
 * m - 1. T: float16, bfloat16, float32, computed as float32. Source: Su et al., RoFormer,
 * arXiv:2104.09864, equation 34; the halves are as in GPT-NeoX. */
#include "rows/rotary.h"

#include <cuplug/format.h>
#include <cuplug/halves.h>
#include <stdbool.h>

#include "vectors.h"

CUPLUG_ENTRY int rotary_cuda(const cuplug_call *call);
CUPLUG_ENTRY int rotary_backward_cuda(const cuplug_call *call);

#define SAME(x) (x)
#define ROTATE(TYPE, T, load, store)                                                              \
  case CUPLUG_##TYPE: {                                                                           \
    T *head = (T *)x->data + t * s.of_token + h * s.of_head;                                      \
    for (int64_t i = 0; i < r; i++) {                                                             \
      T *a = head + (is_interleaved ? 2 * i : i) * s.of_element;                                  \
      T *b = head + (is_interleaved ? 2 * i + 1 : i + r) * s.of_element;                          \
      const float first = load(*a), second = load(*b), across = sign * sin[i];                    \
      *a = store(first * cos[i] - second * across), *b = store(second * cos[i] + first * across); \
    }                                                                                             \
  } break;

typedef struct job {
  const cuplug_call *call;
  float sign;
} job;

static int64_t position_at(const cuplug_tensor *positions, int64_t t) {
  return cuplug_type(positions) == CUPLUG_INT32 ? ((const int32_t *)positions->data)[t]
                                                : ((const int64_t *)positions->data)[t];
}

static void rotate_token(const job *j, const cuplug_tensor *x, int64_t t) {
  const cuplug_tensor *tensors = j->call->tensors;
  const int64_t r = tensors[1].shape[1], m = tensors[1].shape[0];
  const int64_t at = position_at(tensors + 3, t);
  if ((uint64_t)at >= (uint64_t)m) return; /* memory that has changed */
  const float *cos = (const float *)tensors[1].data + at * tensors[1].strides[0], sign = j->sign;
  const float *sin = (const float *)tensors[2].data + at * tensors[2].strides[0];
  const bool is_interleaved = j->call->scalars[0].i;
  const rotary_shape s = rotary_shape_of(x);
  for (int64_t h = 0; h < s.n_heads; h++) switch (cuplug_type(x)) {
      ROTATE(FLOAT16, uint16_t, cuplug_float16_load, cuplug_float16_store)
      ROTATE(BFLOAT16, uint16_t, cuplug_bfloat16_load, cuplug_bfloat16_store)
      ROTATE(FLOAT32, float, SAME, SAME)
    }
}

VECTORS static int rotate_tokens(void *job_, int64_t begin, int64_t end) {
  const job *j = job_;
  const cuplug_tensor *q = j->call->tensors, *k = q + 4;
  for (int64_t t = begin; t < end; t++) {
    rotate_token(j, q, t);
    if (k->data) rotate_token(j, k, t);
  }
  return CUPLUG_OK;
}

static int rotate(const cuplug_call *call, float sign) {
  const cuplug_tensor *q = call->tensors;
  const job j = {call, sign};
  const int64_t m = q[1].shape[0];
  for (int64_t t = 0; t < q->shape[0]; t++) {
    const int64_t at = position_at(q + 3, t);
    if (at < 0 || at >= m)
      return cuplug_failf(call, CUPLUG_ERROR_INDEX,
                          "positions: got %lld at position %lld, expected 0 <= positions < %lld",
                          (long long)at, (long long)t, (long long)m);
  }
  const int64_t each = q->shape[1] * q->shape[2] + 1, grain = 16384 / each;
  return cuplug_parallel(call, q->shape[0], grain < 1 ? 1 : grain, rotate_tokens, (void *)&j);
}
CUPLUG_ENTRY int rotary_host(const cuplug_call *call) { return rotate(call, 1); }
CUPLUG_ENTRY int rotary_backward_host(const cuplug_call *call) { return rotate(call, -1); }

#define SIGNATURE(name, q, k)                                                                      \
  name "(inout " q ": T[n, h, d], cos: float32[m, r], sin: float32[m, r], "                        \
       "positions: I[n], inout " k ": T[n, hk, d] = None, interleaved: bool = False) "             \
       "where T: float16 | bfloat16 | float32, I: int32 | int64, 2 * r <= d, 0 <= positions < m, " \
       "stride(cos, -1) == 1, "                                                                    \
       "stride(sin, -1) == 1, stride(positions, -1) == 1"
#define PROPERTIES CUPLUG_TAKES_STRIDES CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC

CUPLUG_OPERATOR(rotary_cuda, rotary_host, SIGNATURE("rotary", "q", "k"),
                "Rotary position embedding of queries and keys, in place." PROPERTIES
                    CUPLUG_GRADIENT(rotary_backward) CUPLUG_LINEAR(q, k));
CUPLUG_OPERATOR(rotary_backward_cuda, rotary_backward_host,
                SIGNATURE("rotary_backward", "grad_q", "grad_k"),
                "The gradient of rotary, in place." PROPERTIES CUPLUG_LINEAR(grad_q, grad_k));
