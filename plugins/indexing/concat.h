/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of `join` and `repeat` for their entries. A row of the output contains the rows of all
 * parts consecutively, or one row repeatedly. */
#ifndef CUPLUG_INDEXING_JOINS_H
#define CUPLUG_INDEXING_JOINS_H

#include <cuplug/walk.h>

#define JOINS_MOST 4 /* parts */

/* An array whose rows are part of the output's. */
typedef struct joins_part {
  const char *data;
  int64_t end; /* its end in a row of the output */
  int64_t row_step, step;
} joins_part;

typedef struct joins_rows {
  int64_t n, size, element_bytes; /* number of rows; elements of one */
  int64_t period;                 /* elements until the parts repeat */
  int n_parts;
  joins_part parts[JOINS_MOST];
} joins_rows;

/* Returns whether pairs of elements are moved in addition to single ones. */
static inline int joins_are_even(const joins_rows *rows, const void *out) {
  uint64_t bits = (uint64_t)out / (uint64_t)rows->element_bytes;
  if (rows->element_bytes == 16) return 0;
  for (int k = 0; k < rows->n_parts; k++) {
    const joins_part *part = &rows->parts[k];
    if (part->step != 1) return 0;
    bits |= (uint64_t)part->data / (uint64_t)rows->element_bytes;
    bits |= (uint64_t)part->end | (uint64_t)part->row_step;
  }
  return bits % 2 == 0;
}

/* Merges adjacent elements into wider ones, as far as possible. */
static inline void joins_widen(joins_rows *rows, const void *out) {
  while (joins_are_even(rows, out)) {
    rows->element_bytes *= 2;
    rows->size /= 2, rows->period /= 2;
    for (int k = 0; k < rows->n_parts; k++) {
      rows->parts[k].end /= 2;
      rows->parts[k].row_step /= 2;
    }
  }
}

/* For a call with a matrix for each part, and then the output. */
static inline joins_rows joins_rows_of(const cuplug_call *call) {
  const cuplug_tensor *out = &call->outputs[0];
  joins_rows rows = {.n = out->shape[0],
                     .size = out->shape[1],
                     .element_bytes = cuplug_element_bytes(out),
                     .n_parts = (int)call->n_tensors - 1};
  for (int k = 0; k < rows.n_parts; k++) {
    const cuplug_tensor *x = &call->tensors[k];
    rows.period += x->shape[1];
    rows.parts[k] = (joins_part){.data = (const char *)x->data,
                                 .end = rows.period,
                                 .row_step = cuplug__stride(x, 0),
                                 .step = cuplug__stride(x, 1)};
  }
  if (rows.n && rows.size) joins_widen(&rows, out->data);
  return rows;
}

/* For the gradient of `join`: the columns of grad, from `begin` on, of output k. */
static inline joins_rows joins_part_of(const cuplug_call *call, int k, int64_t begin) {
  const cuplug_tensor *grad = &call->tensors[0], *out = &call->outputs[k];
  const int64_t bytes = cuplug_element_bytes(out), step = cuplug__stride(grad, 1);
  joins_rows rows = {.n = out->shape[0],
                     .size = out->shape[1],
                     .element_bytes = bytes,
                     .period = out->shape[1],
                     .n_parts = 1};
  rows.parts[0].data = (const char *)grad->data + begin * step * bytes;
  rows.parts[0].end = rows.size;
  rows.parts[0].row_step = cuplug__stride(grad, 0);
  rows.parts[0].step = step;
  if (rows.n && rows.size) joins_widen(&rows, out->data);
  return rows;
}

/* On the host: to[j] = from[j] + from[j + w] + from[j + 2 w] + ... of n floating or complex
 * numbers, for each j below w, in double precision. */
void sum_columns(const void *from, int64_t n, int64_t w, void *to, uint32_t type);

#endif
