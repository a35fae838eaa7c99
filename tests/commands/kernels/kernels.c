/* SPDX-License-Identifier: Apache-2.0 */
/* Twelve operators with the traits of kernels in use: conditions on sizes, indices that are
 * trusted, addresses, handles, layouts that are rejected, overloads. -DDEFECT=1, 2 or 3 plants one
 * defect in each of them; tests/commands/test_kernels.py lists which check finds it. */
#include <cuplug/plugin.h>

#include <fenv.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#ifndef DEFECT
#define DEFECT 0
#endif

#define ENTRY(name) CUPLUG_ENTRY int name##_host(const cuplug_call *call)
#define OPERATOR(name, text, more) \
  CUPLUG_HOST_OPERATOR(name##_host, text, "For `cuplug test`." more)

static float *floats(const cuplug_tensor *x) { return (float *)x->data; }
static float *input(const cuplug_call *call, int k) { return floats(call->tensors + k); }
static float *output(const cuplug_call *call) { return floats(call->outputs); }
static int64_t size(const cuplug_call *call, int k, int dim) { return call->tensors[k].shape[dim]; }

/* 1 more with each call, for results that differ. */
static float next(void) {
  static _Atomic int n_calls;
  return (float)atomic_fetch_add(&n_calls, 1);
}

/* The process ends, as after a write to memory that is not there. */
static void crash(void) { *(volatile int *)8 = 1; }

/* 1. A norm in blocks of 256. 1: the last block is omitted; 2: it writes one element more;
 * 3: the weight is scaled in place. */
ENTRY(rms_norm) {
  const int64_t rows = size(call, 0, 0), c = size(call, 0, 1), last = c - (DEFECT == 1) * 256;
  float *x = input(call, 0), *weight = input(call, 1), *y = output(call);
  for (int64_t r = 0; r < rows; r++, x += c, y += c) {
    float sum = 0;
    for (int64_t i = 0; i < c; i++) sum += x[i] * x[i];
    const float scale = 1 / sqrtf(sum / (float)c + (float)call->scalars[0].f);
    for (int64_t i = 0; i < last; i++) y[i] = x[i] * scale * weight[i];
  }
  if (DEFECT == 2) *y = 1;
  if (DEFECT == 3 && rows && c) weight[0] *= 2;
  return CUPLUG_OK;
}
OPERATOR(rms_norm,
         "rms_norm(x: float32[rows, c], weight: float32[c], eps: float = 1e-5) -> float32[rows, c] "
         "where c % 256 == 0, 0 < eps < 1", );

/* 2. Rotary embedding on slices, whose last dimension must be contiguous. 1: the stride of heads is
 * computed; 2: the second half is not written; 3: the rounding direction stays changed. */
ENTRY(rotary) {
  const cuplug_tensor *x = call->tensors, *angle = x + 1;
  const int64_t n = x->shape[0], heads = x->shape[1], half = angle->shape[1];
  if (n && heads && half && (x->strides[2] != 1 || angle->strides[1] != 1))
    return cuplug_fail(call, CUPLUG_ERROR_VALUE, "x: got a last dimension that is not contiguous");
  float *y = output(call);
  const int64_t by_head = DEFECT == 1 ? 2 * half : x->strides[1];
  for (int64_t i = 0; i < n; i++)
    for (int64_t h = 0; h < heads; h++, y += 2 * half)
      for (int64_t k = 0; k < half; k++) {
        const float *from = floats(x) + i * x->strides[0] + h * by_head + k;
        const float a = floats(angle)[i * angle->strides[0] + k];
        y[k] = from[0] * cosf(a) - from[half] * sinf(a);
        if (DEFECT != 2) y[half + k] = from[0] * sinf(a) + from[half] * cosf(a);
      }
  if (DEFECT == 3) fesetround(FE_UPWARD);
  return CUPLUG_OK;
}
OPERATOR(rotary,
         "rotary(x: float32[n, heads, d], angle: float32[n, half]) -> float32[n, heads, d] where "
         "d == 2 * half",
         CUPLUG_TAKES_STRIDES);

/* 3. Pages of a cache by a table that is trusted (0 <= table < len(pages)). 1: the page after the
 * table's; 2: each page is written; 3: the last element of each page is omitted. */
ENTRY(read_pages) {
  const cuplug_items pages = call->scalars[0].list;
  const int64_t *table = call->tensors[0].data, n = size(call, 0, 0);
  float *y = output(call);
  for (int64_t i = 0; i < n; i++) {
    const int64_t number = table[i] + (DEFECT == 1);
    if (number < 0 || number >= pages.n) crash();
    const cuplug_tensor *page = (const cuplug_tensor *)pages.items + number;
    const int64_t elements = cuplug_n_elements(page);
    for (int64_t k = 0; k < elements - (DEFECT == 3); k++) y[i * elements + k] = floats(page)[k];
    if (DEFECT == 2 && elements) floats(page)[0] += 1;
  }
  return CUPLUG_OK;
}
OPERATOR(read_pages,
         "read_pages(pages: float32[block, d][], table: int64[n]) -> float32[n, block, d]", );

/* 4. int8 quantization in groups of 16. 1: the scale of the last row is not written; 2: a table is
 * indexed by what NaN becomes; 3: the quotient depends on earlier calls. */
ENTRY(quantize) {
  const int64_t rows = size(call, 0, 0), c = size(call, 0, 1);
  const float *x = input(call, 0);
  int8_t *q = call->outputs[0].data;
  float *scales = floats(call->outputs + 1);
  for (int64_t r = 0; r < rows; r++, x += c, q += c) {
    float largest = 0;
    for (int64_t i = 0; i < c; i++) largest = fmaxf(largest, fabsf(x[i]));
    const float scale = largest > 0 && isfinite(largest) ? largest / 127 : 1;
    if (DEFECT != 1 || r + 1 < rows) scales[r] = scale + (DEFECT == 3 ? next() : 0);
    for (int64_t i = 0; i < c; i++) {
      const float t = x[i] / scale;
      if (DEFECT == 2 && isnan(t)) crash();
      q[i] = isnan(t) ? 0 : (int8_t)fminf(fmaxf(rintf(t), -127), 127);
    }
  }
  return CUPLUG_OK;
}
OPERATOR(quantize,
         "quantize(x: float32[rows, c]) -> (q: int8[rows, c], scale: float32[rows]) where "
         "c % 16 == 0", );

/* 5. Causal convolution. 1: a bias that was omitted is read; 2: the first elements are not
 * written; 3: it begins before the output. */
ENTRY(causal_conv) {
  const int64_t batch = size(call, 0, 0), d = size(call, 0, 1), n = size(call, 0, 2);
  const int64_t width = size(call, 1, 1);
  const float *x = input(call, 0), *weight = input(call, 1), *bias = input(call, 2);
  const int has_bias = call->tensors[2].ndim >= 0 || DEFECT == 1;
  float *y = output(call);
  for (int64_t line = 0; line < batch * d; line++, x += n, y += n) {
    for (int64_t t = DEFECT == 2 ? width - 1 : 0; t < n; t++) {
      float sum = has_bias ? bias[line % d] : 0;
      for (int64_t k = 0; k < width && k <= t; k++)
        sum += x[t - k] * weight[line % d * width + width - 1 - k];
      y[t] = sum;
    }
    if (DEFECT == 3) y[-1] = 0;
  }
  return CUPLUG_OK;
}
OPERATOR(causal_conv,
         "causal_conv(x: float32[b, d, n], weight: float32[d, width], bias: float32[d] = None) -> "
         "float32[b, d, n] where 2 <= width <= 4", );

/* 6. A product with a plan for a number of columns. 1: it adds to the old contents of the output;
 * 2: the plan has too few columns; 3: the last row is omitted. */
typedef struct plan {
  int64_t n;
  float *columns;
} plan;

CUPLUG_ENTRY int close_plan(const cuplug_call *call, void *handle) {
  (void)call;
  free(((plan *)handle)->columns);
  free(handle);
  return CUPLUG_OK;
}

ENTRY(plan_of) {
  plan *p = malloc(sizeof *p);
  if (!p) return cuplug_fail(call, CUPLUG_ERROR_MEMORY, "no memory");
  p->n = call->scalars[0].i - (DEFECT == 2);
  p->columns = calloc((size_t)p->n + 1, sizeof *p->columns);
  return cuplug_set_handle(call, p);
}
OPERATOR(plan_of, "plan_of(n: int) -> handle[plan] where 0 <= n < 65536", CUPLUG_CLOSE(close_plan));

ENTRY(matmul) {
  const plan *p = call->scalars[0].handle;
  const int64_t m = size(call, 0, 0), n = size(call, 1, 1), inner = size(call, 0, 1);
  if (p->n != n) return cuplug_fail(call, CUPLUG_ERROR_VALUE, "p: got another number of columns");
  const float *a = input(call, 0), *b = input(call, 1);
  for (int64_t i = 0; i < m - (DEFECT == 3); i++) {
    float *y = output(call) + i * n;
    if (DEFECT != 1) memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t k = 0; k < inner; k++)
      for (int64_t j = 0; j < n; j++) y[j] += a[i * inner + k] * b[k * n + j];
  }
  return CUPLUG_OK;
}
OPERATOR(matmul,
         "matmul(p: handle[plan], a: float32[m, k], b: float32[k, n]) -> float32[m, n] where "
         "m > 0, k % 8 == 0", );

/* 7. Scores of grouped heads. 1: groups are the wrong way round; 2: differs from call to call;
 * 3: the last batch is omitted. */
ENTRY(scores) {
  const int64_t batch = size(call, 0, 0), heads = size(call, 0, 1), d = size(call, 0, 2);
  const int64_t groups = size(call, 1, 1);
  float *y = output(call);
  for (int64_t b = 0; b < batch - (DEFECT == 3); b++)
    for (int64_t h = 0; h < heads; h++) {
      const int64_t group = DEFECT == 1 ? h * groups : h / (heads / groups);
      if (group >= groups) crash();
      float sum = DEFECT == 2 ? next() : 0;
      for (int64_t i = 0; i < d; i++)
        sum +=
            input(call, 0)[(b * heads + h) * d + i] * input(call, 1)[(b * groups + group) * d + i];
      y[b * heads + h] = sum;
    }
  return CUPLUG_OK;
}
OPERATOR(scores,
         "scores(q: float32[b, heads, d], k: float32[b, groups, d]) -> float32[b, heads] where "
         "heads % groups == 0, heads > groups, d % 16 == 0", );

/* 8. A line as rows and columns. 1: rows and columns are swapped; 2: it also writes one element
 * more; 3: the input is cleared. */
ENTRY(fold) {
  const int64_t rows = call->scalars[0].i, columns = call->scalars[1].i;
  float *x = input(call, 0), *y = output(call);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t k = 0; k < columns; k++) y[DEFECT == 1 ? k * columns + r : r * columns + k] = *x++;
  if (DEFECT == 2) y[rows * columns] = 0;
  if (DEFECT == 3 && rows > 0 && columns > 0) x[-1] = 42;
  return CUPLUG_OK;
}
OPERATOR(fold,
         "fold(x: float32[n], rows: int, columns: int) -> float32[rows, columns] where "
         "rows * columns == n, rows > 1, columns > rows", );

/* 9. Stereo to mono, in place for the first half. 1: writes beyond; 2: crashes without samples;
 * 3: differs from call to call. */
ENTRY(mix) {
  float *stereo = input(call, 0), *mono = input(call, 1);
  const int64_t n = size(call, 1, 0);
  if (DEFECT == 2 && !n) crash();
  for (int64_t i = 0; i < n; i++) mono[i] = (stereo[2 * i] + stereo[2 * i + 1]) / 2;
  if (DEFECT == 1) mono[n] = 0;
  if (DEFECT == 3 && n) mono[0] = next();
  return CUPLUG_OK;
}
OPERATOR(mix, "mix(stereo: float32[m], inout mono: float32[n]) where m == 2 * n", );

/* 10. The first k of a line. 1: the last index is omitted; 2: reads and writes one more;
 * 3: traps on large arrays. */
ENTRY(head) {
  const int64_t k = call->scalars[0].i + (DEFECT == 2);
  int64_t *indices = call->outputs[1].data;
  if (DEFECT == 3 && size(call, 0, 0) > 100000) crash();
  for (int64_t i = 0; i < k; i++) output(call)[i] = input(call, 0)[i];
  for (int64_t i = 0; i < k - (DEFECT == 1); i++) indices[i] = i;
  return CUPLUG_OK;
}
OPERATOR(
    head,
    "head(x: float32[n], k: int) -> (values: float32[k], indices: int64[k]) where 0 <= k < n", );

/* 11. A table of four floats at an address. 1: writes the input; 2: the last element is omitted;
 * 3: it reads the table's address plus a page. */
ENTRY(look_up) {
  const float *table = (const float *)(uintptr_t)call->scalars[0].u; /* NOLINT: an address */
  const int64_t n = size(call, 0, 0);
  if (DEFECT == 3 && n > 2) crash();
  for (int64_t i = 0; i < n - (DEFECT == 2); i++)
    output(call)[i] = table[i % 4] + input(call, 0)[i];
  if (DEFECT == 1 && n) input(call, 0)[0] = 1;
  return CUPLUG_OK;
}
OPERATOR(look_up, "look_up(x: float32[n], address: uint64) -> float32[n]", );

/* 12. Two overloads; the second is reached with only a scale. 1: it omits the last element;
 * 2: it writes beyond; 3: it changes the scale. */
ENTRY(twice) {
  for (int64_t i = 0; i < size(call, 0, 0); i++) output(call)[i] = 2 * input(call, 0)[i];
  return CUPLUG_OK;
}
ENTRY(scaled) {
  const int64_t n = size(call, 0, 0), has_scale = call->tensors[1].ndim >= 0;
  float *scale = input(call, 1);
  for (int64_t i = 0; i < n - (DEFECT == 1); i++)
    output(call)[i] = input(call, 0)[i] * (has_scale ? scale[i] : 2);
  if (DEFECT == 2) output(call)[n] = 0;
  if (DEFECT == 3 && n && has_scale) scale[0] = 42;
  return CUPLUG_OK;
}
OPERATOR(twice, "blend(x: float32[n]) -> float32[n]", );
OPERATOR(scaled, "blend(x: float32[n], scale: float32[n] = None) -> float32[n]", );

CUPLUG_PLUGIN(kernels, "1.0.0");
