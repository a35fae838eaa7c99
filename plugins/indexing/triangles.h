/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of the entries of `tril` and `triu`. */
#ifndef CUPLUG_INDEXING_TRIANGLES_H
#define CUPLUG_INDEXING_TRIANGLES_H

#include <cuplug/plugin.h>

/* In row number r, columns below r + past are kept; or those from there on. */
typedef struct triangles {
  int64_t n, n_rows, size, past; /* elements, rows of a matrix, elements of a row */
  int is_upper;
} triangles;

static inline triangles triangles_of(const cuplug_call *call, int is_upper) {
  const cuplug_tensor *x = &call->tensors[0];
  triangles t = {cuplug_n_elements(x), x->shape[x->ndim - 2], x->shape[x->ndim - 1],
                 call->scalars[0].i, is_upper};
  if (t.past < -t.n_rows) t.past = -t.n_rows;
  if (t.past > t.size) t.past = t.size;
  t.past += !is_upper;
  return t;
}

#endif
