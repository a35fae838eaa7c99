/* SPDX-License-Identifier: Apache-2.0 */
/* With a = x[j], b = x[n + j] in a row of 2 n:
 *   silu_and_mul(x)[j] = silu(a) b, silu(a) = a / (1 + exp(-a))
 *   gelu_and_mul(x)[j] = gelu(a) b, gelu(a) = a P(a), P the distribution function of the normal
 *     distribution; or with approximate="tanh" a / (1 + exp(-2 u)),
 *     u = sqrt(2 / pi) (a + 0.044715 a^3)
 *   ..._backward(grad, x): [j] = grad[j] b silu'(a), [n + j] = grad[j] silu(a)
 * x: T[..., 2 n] -> T[..., n]. T: float16, bfloat16, float32, computed as float32. Sources:
 * Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202; Hendrycks and Gimpel, Gaussian Error
 * Linear Units, arXiv:1606.08415. */
#include "rows/rows.h"

#include <math.h>

CUPLUG_ENTRY int silu_and_mul_cuda(const cuplug_call *call);
CUPLUG_ENTRY int silu_and_mul_backward_cuda(const cuplug_call *call);
CUPLUG_ENTRY int gelu_and_mul_cuda(const cuplug_call *call);
CUPLUG_ENTRY int gelu_and_mul_backward_cuda(const cuplug_call *call);

/* The factor of b, and its derivative. */
typedef struct gate {
  float value, slope;
} gate;

/* 1 / (1 + exp(-x)), and its derivative without a difference. */
ROWS_INLINE gate sigmoid(float x) {
  const float t = rows_exponential(-fabsf(x)), inverse = 1 / (1 + t);
  return (gate){x < 0 ? t * inverse : inverse, t * inverse * inverse};
}
ROWS_INLINE gate silu(float a) {
  const gate s = sigmoid(a);
  return (gate){a * s.value, s.value + a * s.slope};
}
ROWS_INLINE gate gelu(float a) {
  const float p = 0.5f * erfcf(a * -0.70710678f);
  return (gate){a * p, p + a * 0.39894228f * rows_exponential(-0.5f * a * a)};
}
ROWS_INLINE gate gelu_tanh(float a) {
  const gate s = sigmoid(1.5957691f * (a + 0.044715f * a * a * a)); /* of 2 u */
  return (gate){a * s.value, s.value + a * s.slope * 1.5957691f * (1 + 0.134145f * a * a)};
}

/* n is the length of a row of x. */
ROWS_INLINE void forward(const cuplug_call *call, int64_t row, int64_t n, gate (*of)(float)) {
  const cuplug_tensor *x = call->tensors, *y = x + 1;
  const int64_t half = n / 2;
  rows_block a, b;
  ROWS_OVER(half) {
    rows_load(&a, x, row * n + begin, m, 0);
    rows_load(&b, x, row * n + half + begin, m, 0);
    ROWS_EACH(i, a.at[i] = of(a.at[i]).value * b.at[i])
    rows_store(y, row * half + begin, m, &a);
  }
}

ROWS_INLINE void backward(const cuplug_call *call, int64_t row, int64_t half, gate (*of)(float)) {
  const cuplug_tensor *grad = call->tensors, *x = grad + 1, *grad_x = grad + 2;
  const int64_t n = 2 * half;
  rows_block g, a, b;
  ROWS_OVER(half) {
    rows_load(&g, grad, row * half + begin, m, 0);
    rows_load(&a, x, row * n + begin, m, 0);
    rows_load(&b, x, row * n + half + begin, m, 0);
    ROWS_EACH(i, {
      const gate at = of(a.at[i]);
      a.at[i] = g.at[i] * b.at[i] * at.slope;
      b.at[i] = g.at[i] * at.value;
    })
    rows_store(grad_x, row * n + begin, m, &a);
    rows_store(grad_x, row * n + half + begin, m, &b);
  }
}

ROWS_ENTRY(silu_and_mul_host) { forward(call, row, n, silu); }
ROWS_ENTRY(silu_and_mul_backward_host) { backward(call, row, n, silu); }
ROWS_ENTRY(gelu_and_mul_host) {
  if (call->scalars[0].i)
    forward(call, row, n, gelu_tanh);
  else
    forward(call, row, n, gelu);
}
ROWS_ENTRY(gelu_and_mul_backward_host) {
  if (call->scalars[0].i)
    backward(call, row, n, gelu_tanh);
  else
    backward(call, row, n, gelu);
}

#define APPROXIMATE ", approximate: \"none\" | \"tanh\" = \"none\""
#define FORWARD(name, more) \
  name "(x: T[..., m]" more ") -> T[..., m // 2]" ROWS_DTYPES ", m % 2 == 0"
#define BACKWARD(name, more) \
  name "_backward(grad: T[..., n], x: T[..., 2 * n]" more ") -> T[..., 2 * n]" ROWS_DTYPES

CUPLUG_OPERATOR(silu_and_mul_cuda, silu_and_mul_host, FORWARD("silu_and_mul", ""),
                "The second half of each row times the silu of the first." ROWS_PROPERTIES
                    CUPLUG_GRADIENT(silu_and_mul_backward));
CUPLUG_OPERATOR(silu_and_mul_backward_cuda, silu_and_mul_backward_host,
                BACKWARD("silu_and_mul", ""),
                "The gradient of silu_and_mul." ROWS_PROPERTIES CUPLUG_LINEAR(grad));
CUPLUG_OPERATOR(gelu_and_mul_cuda, gelu_and_mul_host, FORWARD("gelu_and_mul", APPROXIMATE),
                "The second half of each row times the gelu of the first." ROWS_PROPERTIES
                    CUPLUG_GRADIENT(gelu_and_mul_backward));
CUPLUG_OPERATOR(gelu_and_mul_backward_cuda, gelu_and_mul_backward_host,
                BACKWARD("gelu_and_mul", APPROXIMATE),
                "The gradient of gelu_and_mul." ROWS_PROPERTIES CUPLUG_LINEAR(grad));
