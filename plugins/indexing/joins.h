/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of `join` and `repeat`, as their entries see them: a row of the output has those of all
 * parts, one behind the other; or one again and again. */
#ifndef CUPLUG_INDEXING_JOINS_H
#define CUPLUG_INDEXING_JOINS_H

#include <cuplug/walk.h>

#define JOINS_MOST 4 /* parts */

/* An array whose rows go into those of the output. */
typedef struct joins_part {
  const char *data;
  int64_t end; /* where it ends in a row of the output */
  int64_t row_step, step;
} joins_part;

typedef struct joins_rows {
  int64_t n, size, element_bytes; /* rows; elements of one */
  int64_t period;                 /* elements until the parts begin again */
  int n_parts;
  joins_part parts[JOINS_MOST];
} joins_rows;

/* Of a call that has a matrix of each part, then the output. */
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
  return rows;
}

#endif
