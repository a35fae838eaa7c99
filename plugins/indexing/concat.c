/* SPDX-License-Identifier: Apache-2.0 */
/* join(a, b), join(a, b, c), join(a, b, c, d): the rows of matrices, concatenated.
 *   a T[m, p], b T[m, q] ...; out T[m, p + q ...]
 * join_backward(grad, a, b ...): its gradients, the columns of grad that come from each matrix.
 * repeat(x, times): each row several times, consecutively.
 *   x T[m, w]; out T[m, times * w]
 * repeat_backward(grad, x, times): its gradient, out[i, j] = sum_t grad[i, t w + j].
 *   grad T[m, times * w]; x T[m, w], only its sizes are used; out T[m, w]
 *   float16, bfloat16 and float32 are summed as float64 on the host, as float32 on a GPU.
 *
 * Any dtype; elements are moved as bytes. Inputs may have any strides: adjacent columns are rows of
 * one element. Bytes moved: each input once, out once. */
#include "indexing/concat.h"

#include "elements.h"
#include "indexing/blocks.h"
#include "vectors.h"

#include <complex.h>
#include <cuplug/half.h>
#include <string.h>

CUPLUG_ENTRY int join_cuda(const cuplug_call *call);
CUPLUG_ENTRY int join_backward_cuda(const cuplug_call *call);
CUPLUG_ENTRY int repeat_cuda(const cuplug_call *call);
CUPLUG_ENTRY int repeat_backward_cuda(const cuplug_call *call);

#define FEW 16  /* elements of a row that is written column by column */
#define LONG 64 /* bytes from which a call of memcpy saves time */

/* The positions of the elements of a column of the output. */
typedef struct column {
  const char *data;
  int64_t step;
} column;

typedef struct job {
  joins_rows rows;
  column columns[FEW]; /* columns of rows with at most this number */
  int are_near;        /* 1: the elements of each column are contiguous */
} job;

/* The part that contains element `at` of a period. */
static inline const joins_part *part_at(const joins_rows *rows, int64_t at, int64_t *begin) {
  const joins_part *part = rows->parts;
  *begin = 0;
  while (at >= part->end) *begin = part++->end;
  return part;
}

/* Writes elements of any row part by part, or of a row with a single element, repeatedly. */
#define PARTS(T)                                                                                 \
  static void parts_##T(const joins_rows *rows, T *to, int64_t first, int64_t n) {               \
    int64_t row = first / rows->size, at = first % rows->size, own = at % rows->period, begin;   \
    const int is_one = rows->period == 1;                                                        \
    const joins_part *part = part_at(rows, own, &begin), *last = rows->parts + rows->n_parts;    \
    for (int64_t m; n > 0; to += m, n -= m) {                                                    \
      const T *from = (const T *)part->data + row * part->row_step + (own - begin) * part->step; \
      m = blocks_min(n, is_one ? rows->size - at : part->end - own);                             \
      copy_##T(to, from, is_one ? 0 : part->step, m);                                            \
      at += m, own = begin = part->end;                                                          \
      if (++part == last) part = rows->parts, own = begin = 0;                                   \
      if (at == rows->size) at = 0, row++;                                                       \
    }                                                                                            \
  }
#define COPY(T)                                                                         \
  static inline void copy_##T(T *restrict to, const T *from, int64_t step, int64_t n) { \
    if (step == 0) {                                                                    \
      for (int64_t k = 0; k < n; k++) to[k] = *from;                                    \
    } else if (step == 1 && n * (int64_t)sizeof *to >= LONG) {                          \
      cuplug_prefetch_ahead(from, (size_t)n * sizeof *to);                              \
      memcpy(to, from, (size_t)n * sizeof *to);                                         \
    } else {                                                                            \
      for (int64_t k = 0; k < n; k++) to[k] = from[k * step];                           \
    }                                                                                   \
  }                                                                                     \
  PARTS(T)
COPY(uint8_t)
COPY(uint16_t)
COPY(uint32_t)
COPY(uint64_t)
COPY(two_words)

#define FILL_PARTS(T) parts_##T(rows, (T *)to, first, n);

static void fill_parts(const joins_rows *rows, char *to, int64_t first,
                       int64_t n){ELEMENTS_BY_WIDTH(rows->element_bytes, FILL_PARTS)}

/* ---- Short rows: column by column, which is vectorized --------------------------------------- */

/* beside: adjacent columns in memory, whose number the compiler knows. */
#define BESIDE(T, N)                                                                              \
  VECTORS static void beside_##N##_##T(T *restrict to, const column *c, int64_t row, int64_t n) { \
    const T *from[N];                                                                             \
    for (int k = 0; k < N; k++) from[k] = (const T *)c[k].data + row;                             \
    for (int64_t i = 0; i < n; i++)                                                               \
      for (int k = 0; k < N; k++) to[N * i + k] = from[k][i];                                     \
  }
#define COLUMNS(T)                                                                            \
  BESIDE(T, 2)                                                                                \
  BESIDE(T, 3)                                                                                \
  BESIDE(T, 4)                                                                                \
  static void along_##T(T *restrict to, const T *from, int64_t by, int64_t step, int64_t n) { \
    for (int64_t k = 0; k < n; k++) to[k * by] = from[k * step];                              \
  }
COLUMNS(uint8_t) COLUMNS(uint16_t) COLUMNS(uint32_t) COLUMNS(uint64_t) COLUMNS(two_words)

/* The same element `size` times in each row: FEW times, unless that exceeds the last one. */
#define AGAIN(T)                                                                           \
  VECTORS static void again_##T(T *restrict to, const T *from, int64_t size, int64_t step, \
                                int64_t n) {                                               \
    const int64_t n_last = blocks_min(n, (FEW + size - 1) / size);                         \
    for (int64_t i = 0; i < n - n_last; i++, to += size)                                   \
      for (int k = 0; k < FEW; k++) to[k] = from[i * step];                                \
    for (int64_t i = n - n_last; i < n; i++, to += size)                                   \
      for (int64_t k = 0; k < size; k++) to[k] = from[i * step];                           \
  }
    AGAIN(uint8_t) AGAIN(uint16_t) AGAIN(uint32_t) AGAIN(uint64_t) AGAIN(two_words)

#define FILL_COLUMNS(T)                                                                  \
  if (size == 2 && j->are_near)                                                          \
    beside_2_##T((T *)to, c, row, n_rows);                                               \
  else if (size == 3 && j->are_near)                                                     \
    beside_3_##T((T *)to, c, row, n_rows);                                               \
  else if (size == 4 && j->are_near)                                                     \
    beside_4_##T((T *)to, c, row, n_rows);                                               \
  else if (j->rows.period == 1)                                                          \
    again_##T((T *)to, (const T *)c[0].data + row * c[0].step, size, c[0].step, n_rows); \
  else                                                                                   \
    for (int64_t k = 0; k < size; k++)                                                   \
      along_##T((T *)to + k, (const T *)c[k].data + row * c[k].step, size, c[k].step, n_rows);

        static void fill_columns(const job *j, char *to, int64_t row, int64_t n_rows) {
  const int64_t size = j->rows.size;
  const column *c = j->columns;
  ELEMENTS_BY_WIDTH(j->rows.element_bytes, FILL_COLUMNS)
}

static void fill_short(const void *context, char *to, int64_t first, int64_t n) {
  const job *j = context;
  const int64_t size = j->rows.size, bytes = j->rows.element_bytes;
  const int64_t lead = blocks_min((size - first % size) % size, n), n_rows = (n - lead) / size;
  const int64_t done = lead + n_rows * size;
  fill_parts(&j->rows, to, first, lead);
  fill_columns(j, to + lead * bytes, (first + lead) / size, n_rows);
  fill_parts(&j->rows, to + done * bytes, first + done, n - done);
}

static void fill_long(const void *context, char *to, int64_t first, int64_t n) {
  fill_parts(&((const job *)context)->rows, to, first, n);
}

static void find_columns(job *j) {
  int64_t begin;
  j->are_near = 1;
  for (int64_t k = 0; k < j->rows.size; k++) {
    const int64_t own = k % j->rows.period;
    const joins_part *part = part_at(&j->rows, own, &begin);
    const int64_t from = (own - begin) * part->step * j->rows.element_bytes;
    j->columns[k] = (column){part->data + from, part->row_step};
    j->are_near &= part->row_step == 1;
  }
}

static int fill_rows(const cuplug_call *call, void *to, joins_rows rows) {
  job j = {.rows = rows};
  const int64_t n = j.rows.n * j.rows.size, bytes = j.rows.element_bytes;
  if (n == 0) return CUPLUG_OK;
  if (j.rows.size > FEW) return blocks_run_to(call, to, &j, fill_long, n, bytes);
  find_columns(&j);
  return blocks_run_to(call, to, &j, fill_short, n, bytes);
}

CUPLUG_ENTRY int join_host(const cuplug_call *call) {
  return fill_rows(call, call->outputs[0].data, joins_rows_of(call));
}

CUPLUG_ENTRY int join_backward_host(const cuplug_call *call) {
  int64_t begin = 0;
  for (int k = 0; k < (int)call->n_tensors - (int)call->n_inputs; k++) {
    const cuplug_tensor *out = &call->outputs[k];
    const int status = fill_rows(call, out->data, joins_part_of(call, k, begin));
    if (status) return status;
    begin += out->shape[1];
  }
  return CUPLUG_OK;
}

CUPLUG_ENTRY int repeat_host(const cuplug_call *call) { return join_host(call); }

#define PROPERTIES CUPLUG_TAKES_STRIDES CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC

CUPLUG_OPERATOR(join_cuda, join_host, "join(a: T[m, p], b: T[m, q]) -> T[m, p + q] where T: any",
                "The rows of two matrices, concatenated." PROPERTIES CUPLUG_GRADIENT(join_backward)
                    CUPLUG_LINEAR(a, b));
CUPLUG_OPERATOR(join_cuda, join_host,
                "join(a: T[m, p], b: T[m, q], c: T[m, r]) -> T[m, p + q + r] where T: any",
                "The rows of three matrices, concatenated." PROPERTIES CUPLUG_GRADIENT(
                    join_backward) CUPLUG_LINEAR(a, b, c));
CUPLUG_OPERATOR(
    join_cuda, join_host,
    "join(a: T[m, p], b: T[m, q], c: T[m, r], d: T[m, s]) -> T[m, p + q + r + s] where T: any",
    "The rows of four matrices, concatenated." PROPERTIES CUPLUG_GRADIENT(join_backward)
        CUPLUG_LINEAR(a, b, c, d));
#define BACKWARD(size, matrices, outputs)                                                 \
  CUPLUG_OPERATOR(                                                                        \
      join_backward_cuda, join_backward_host,                                             \
      "join_backward(grad: T[m, " size "], " matrices ") -> (" outputs                    \
      ") where T: floating | complex",                                                    \
      "The gradients of join: the columns of grad that belong to each matrix." PROPERTIES \
          CUPLUG_GRADIENT(join) CUPLUG_LINEAR(grad))
BACKWARD("p + q", "a: T[m, p], b: T[m, q]", "grad_a: T[m, p], grad_b: T[m, q]");
BACKWARD("p + q + r", "a: T[m, p], b: T[m, q], c: T[m, r]",
         "grad_a: T[m, p], grad_b: T[m, q], grad_c: T[m, r]");
BACKWARD("p + q + r + s", "a: T[m, p], b: T[m, q], c: T[m, r], d: T[m, s]",
         "grad_a: T[m, p], grad_b: T[m, q], grad_c: T[m, r], grad_d: T[m, s]");
CUPLUG_OPERATOR(repeat_cuda, repeat_host,
                "repeat(x: T[m, w], times: int) -> T[m, times * w] where T: any, times >= 0",
                "Each row, repeated consecutively." PROPERTIES CUPLUG_GRADIENT(repeat_backward)
                    CUPLUG_LINEAR(x));

/* ---- Sums of repeated elements --------------------------------------------------------------- */

#define LEAST (1 << 14) /* elements to sum that are worth a thread */

#define SUMS(T, computed, load, store)                                        \
  for (int64_t j = 0; j < w; j++) {                                           \
    computed sum = 0;                                                         \
    for (int64_t at = j; at < n; at += w) sum += load(((const T *)from)[at]); \
    ((T *)to)[j] = store(sum);                                                \
  }                                                                           \
  return;
#define HALF_OF(x) cuplug_float16_store((float)(x))
#define BRAIN_OF(x) cuplug_bfloat16_store((float)(x))

void sum_columns(const void *from, int64_t n, int64_t w, void *to, uint32_t type) {
  switch (type) {
  case CUPLUG_FLOAT16:
    SUMS(uint16_t, double, cuplug_float16_load, HALF_OF)
  case CUPLUG_BFLOAT16:
    SUMS(uint16_t, double, cuplug_bfloat16_load, BRAIN_OF)
  case CUPLUG_FLOAT32:
    SUMS(float, double, , (float))
  case CUPLUG_FLOAT64:
    SUMS(double, double, , )
  case CUPLUG_COMPLEX64:
    SUMS(float complex, double complex, , (float complex))
  default:
    SUMS(double complex, double complex, , )
  }
}

static int sum_rows(void *context, int64_t begin, int64_t end) {
  const cuplug_call *call = context;
  const cuplug_tensor *grad = &call->tensors[0], *out = &call->outputs[0];
  const int64_t w = out->shape[1], size = grad->shape[1], bytes = cuplug_element_bytes(out);
  for (int64_t i = begin; i < end; i++)
    sum_columns((const char *)grad->data + i * size * bytes, size, w,
                (char *)out->data + i * w * bytes, cuplug_type(out));
  return CUPLUG_OK;
}

CUPLUG_ENTRY int repeat_backward_host(const cuplug_call *call) {
  const cuplug_tensor *grad = &call->tensors[0], *out = &call->outputs[0];
  const int64_t row = grad->shape[1] + out->shape[1] + 1;
  return cuplug_parallel(call, out->shape[0], 1 + LEAST / row, sum_rows, (void *)call);
}

CUPLUG_OPERATOR(repeat_backward_cuda, repeat_backward_host,
                "repeat_backward(grad: T[m, times * w], x: T[m, w], times: int) -> T[m, w] "
                "where T: floating | complex, times >= 0",
                "The gradient of repeat." CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC
                    CUPLUG_GRADIENT(repeat) CUPLUG_LINEAR(grad));
