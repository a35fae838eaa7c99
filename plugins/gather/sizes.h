/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all entries of gather and gather_backward: the modes, and the sizes around an axis. */
#ifndef CUPLUG_PLUGINS_GATHER_SIZES_H
#define CUPLUG_PLUGINS_GATHER_SIZES_H

#include <cuplug/format.h>
#include <cuplug/plugin.h>

enum { GATHER_RAISE, GATHER_WRAP, GATHER_CLIP };

/* An array around its axis: n_outer parts of m rows of `width` elements. */
typedef struct gather_sizes {
  int64_t axis, n_outer, m, width;
} gather_sizes;

static inline int64_t gather_product(const int64_t *sizes, int64_t n) {
  int64_t result = 1;
  for (int64_t k = 0; k < n; k++) result *= sizes[k];
  return result;
}

static inline gather_sizes gather_sizes_of(const cuplug_tensor *source, int64_t axis) {
  gather_sizes s = {0, 1, 1, 1}; /* without dimensions: one row of one element */
  if (source->ndim == 0) return s;
  s.axis = axis < 0 ? axis + source->ndim : axis;
  s.n_outer = gather_product(source->shape, s.axis);
  s.m = source->shape[s.axis];
  s.width = gather_product(source->shape + s.axis + 1, source->ndim - s.axis - 1);
  return s;
}

static inline int gather_fail_empty(const cuplug_call *call, int64_t axis) {
  return cuplug_failf(call, CUPLUG_ERROR_INDEX,
                      "source: got an empty axis %lld, expected at least one row to take from",
                      (long long)axis);
}

/* Checks that `grad` has the shape of the result of gather; `index` is NULL for one index. */
static inline int gather_check_grad(const cuplug_call *call, const cuplug_tensor *grad,
                                    const cuplug_tensor *index, const cuplug_tensor *source,
                                    int64_t axis) {
  const int32_t n = index ? index->ndim : 0, wanted = (source->ndim ? source->ndim - 1 : 0) + n;
  if (grad->ndim != wanted)
    return cuplug_failf(call, CUPLUG_ERROR_VALUE, "grad: got %d dimensions, expected %d",
                        (int)grad->ndim, (int)wanted);
  for (int32_t d = 0; d < wanted; d++) {
    const int64_t size = d < axis       ? source->shape[d]
                         : d < axis + n ? index->shape[d - axis]
                                        : source->shape[d - n + 1];
    if (grad->shape[d] != size)
      return cuplug_failf(call, CUPLUG_ERROR_VALUE,
                          "grad: got size %lld in dimension %d, expected %lld",
                          (long long)grad->shape[d], (int)d, (long long)size);
  }
  return CUPLUG_OK;
}

#endif
