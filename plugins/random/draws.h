/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the host and CUDA entries of this plugin: the draws of a call. */
#ifndef CUPLUG_PLUGINS_RANDOM_DRAWS_H
#define CUPLUG_PLUGINS_RANDOM_DRAWS_H

#include "random/numbers.h"

typedef enum random_kind {
  RANDOM_UNIFORM,
  RANDOM_NORMAL,
  RANDOM_EXPONENTIAL,
  RANDOM_LOGNORMAL,
  RANDOM_INTEGERS
} random_kind;

typedef struct random_draw {
  random_source from;
  random_range range;
  random_kind kind;
  int is_wide; /* elements use wide bits */
  int element_bytes;
  void *out;
  int64_t n;
} random_draw;

static inline random_draw random_draw_of(const cuplug_call *call, random_kind kind) {
  const cuplug_scalar *given = call->scalars;
  random_draw d = {
      {random_keys_of(given[0].u), given[1].u, given[2].u}, {0, 0, 0, 0}, kind, 0, 0, NULL, 0};
  if (kind == RANDOM_INTEGERS)
    d.range.low = given[3].u, d.range.n = given[4].u + 1;
  else
    d.range.at = given[3].f, d.range.by = given[4].f;
  d.out = call->tensors[0].data;
  d.n = cuplug_n_elements(&call->tensors[0]);
  d.element_bytes = (int)cuplug_element_bytes(&call->tensors[0]);
  d.is_wide = kind == RANDOM_INTEGERS ? d.range.n - 1 >= RANDOM_NARROW_MOST : d.element_bytes == 8;
  return d;
}

#endif
