/* SPDX-License-Identifier: Apache-2.0 */
/* cumulative_prod_backward(grad, x, axis, include_initial): the gradient of cumulative_prod.
 *   out[i] = p[i] s[i],  p[i] = x[0] ... x[i - 1],  s[i] = grad[i] + x[i + 1] s[i + 1]
 * along each line, with x conjugated. With include_initial, grad is read one element further.
 * Nothing is divided, so zeros in x need no special treatment. float16 and bfloat16 are computed as
 * float32. Bytes moved: grad once, x and out twice. */
#include "scan/lines.h"

#include <complex.h>
#include <cuplug/half.h>

CUPLUG_ENTRY int cumulative_prod_backward_cuda(const cuplug_call *call);

#define LEAST (1 << 12) /* elements that are worth a thread */

typedef struct job {
  const void *grad, *x;
  void *out;
  float *sums; /* memory for elements that would be rounded; NULL: they are stored in out */
  elements_axis of_grad, of_x;
  int64_t initial;
} job;

#define LINES(name, type, kept, computed, load, store, conjugate)                       \
  static int lines_##name(void *context, int64_t begin, int64_t end) {                  \
    const job *j = context;                                                             \
    const int64_t n = j->of_x.m, step = j->of_x.width, by = j->sums ? 1 : step;         \
    for (int64_t line = begin; line < end; line++) {                                    \
      const int64_t at = elements_line(&j->of_x, line);                                 \
      const type *x = (const type *)j->x + at;                                          \
      const type *grad =                                                                \
          (const type *)j->grad + elements_line(&j->of_grad, line) + j->initial * step; \
      type *out = (type *)j->out + at;                                                  \
      kept *sums = j->sums ? (kept *)j->sums + line * n : (kept *)out;                  \
      computed sum = 0, product = 1;                                                    \
      for (int64_t i = n - 1; i >= 0; i--) {                                            \
        sum = load(grad[i * step]) + sum;                                               \
        sums[i * by] = (kept)sum;                                                       \
        sum *= conjugate(load(x[i * step]));                                            \
      }                                                                                 \
      for (int64_t i = 0; i < n; i++) {                                                 \
        out[i * step] = store(product * sums[i * by]);                                  \
        product *= conjugate(load(x[i * step]));                                        \
      }                                                                                 \
    }                                                                                   \
    return CUPLUG_OK;                                                                   \
  }
#define SAME(x) (x)
#define HALF_OF(x) cuplug_float16_store((float)(x))
#define BRAIN_OF(x) cuplug_bfloat16_store((float)(x))

LINES(float16, uint16_t, float, double, cuplug_float16_load, HALF_OF, SAME)
LINES(bfloat16, uint16_t, float, double, cuplug_bfloat16_load, BRAIN_OF, SAME)
LINES(float32, float, float, double, SAME, (float), SAME)
LINES(float64, double, double, double, SAME, SAME, SAME)
LINES(complex64, float complex, float complex, double complex, SAME, (float complex), conj)
LINES(complex128, double complex, double complex, double complex, SAME, SAME, conj)

static cuplug_body *body_of(const cuplug_tensor *x) {
  switch (cuplug_type(x)) {
  case CUPLUG_FLOAT16:
    return lines_float16;
  case CUPLUG_BFLOAT16:
    return lines_bfloat16;
  case CUPLUG_FLOAT32:
    return lines_float32;
  case CUPLUG_FLOAT64:
    return lines_float64;
  case CUPLUG_COMPLEX64:
    return lines_complex64;
  }
  return lines_complex128;
}

CUPLUG_ENTRY int cumulative_prod_backward_host(const cuplug_call *call) {
  const cuplug_tensor *grad = &call->tensors[0], *x = &call->tensors[1];
  const int64_t axis = call->scalars[0].i, n = cuplug_n_elements(x);
  const int status = elements_check_beside(call, "grad", grad, x, axis);
  if (status || n == 0) return status;
  job j = {grad->data,
           x->data,
           call->outputs[0].data,
           NULL,
           elements_around(grad, axis),
           elements_around(x, axis),
           call->scalars[1].i != 0};
  if (x->dtype.bits == 16) {
    j.sums = cuplug_workspace(call, (uint64_t)n * sizeof *j.sums);
    if (!j.sums) return CUPLUG_ERROR_MEMORY;
  }
  return cuplug_parallel(call, n / j.of_x.m, 1 + LEAST / j.of_x.m, body_of(x), &j);
}

#define PROPERTIES CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC
#define BACKWARD(grad, x, out, conditions)                                                     \
  "cumulative_prod_backward(grad: T[" grad "], x: T[" x "], axis: int = -1, include_initial: " \
  "bool = False) -> T[" out "] where T: floating | complex, " conditions

CUPLUG_OPERATOR(cumulative_prod_backward_cuda, cumulative_prod_backward_host,
                BACKWARD("*g", "*s", "*s",
                         "len(g) == len(s), -len(s) <= axis < len(s), "
                         "g[axis % len(s)] == s[axis % len(s)] + include_initial"),
                "The gradient of cumulative_prod." CUPLUG_ALONG(axis) PROPERTIES);
CUPLUG_OPERATOR(cumulative_prod_backward_cuda, cumulative_prod_backward_host,
                BACKWARD("", "", "", "-1 <= axis < 1, include_initial == 0"),
                "The same for an array without dimensions." PROPERTIES);
