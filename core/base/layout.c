/* SPDX-License-Identifier: Apache-2.0 */
#include "base/layout.h"

static int is_empty(const cuplug_tensor *x) {
  for (int32_t k = 0; k < x->ndim; k++)
    if (x->shape[k] == 0) return 1;
  return 0;
}

static uint64_t magnitude(int64_t x) { return x < 0 ? -(uint64_t)x : (uint64_t)x; }

int cuplug__has_contiguous_strides(const cuplug_tensor *x) {
  int64_t expected = 1;
  int contiguous = 1;
  for (int32_t k = x->ndim - 1; k >= 0; k--) {
    if (x->shape[k] == 0) return 1;
    if (x->shape[k] != 1 && x->strides[k] != expected) contiguous = 0;
    if (__builtin_mul_overflow(expected, x->shape[k], &expected)) contiguous = 0;
  }
  return contiguous;
}

int cuplug__has_possible_strides(const cuplug_tensor *x) {
  int64_t reach, first = 0, last = 0;
  if (!x->strides || is_empty(x)) return 1;
  for (int32_t k = 0; k < x->ndim; k++) {
    int64_t *end = x->strides[k] < 0 ? &first : &last;
    if (__builtin_mul_overflow(x->shape[k] - 1, x->strides[k], &reach) ||
        __builtin_add_overflow(*end, reach, end))
      return 0;
  }
  /* In bytes, and so that their sum also fits. */
  const int64_t most = INT64_MAX / 2 / cuplug_element_bytes(x) - 1;
  return first >= -most && last <= most;
}

cuplug__span cuplug__strided_span(const cuplug_tensor *x) {
  const uintptr_t data = (uintptr_t)cuplug__first_element(x);
  int64_t element = cuplug_element_bytes(x), first = 0, last = 0;
  /* First: without elements the other sizes may be of any product. */
  if (is_empty(x)) return (cuplug__span){data, data};
  for (int32_t k = 0; k < x->ndim; k++) {
    int64_t reach = (x->shape[k] - 1) * x->strides[k];
    *(reach < 0 ? &first : &last) += reach;
  }
  return (cuplug__span){data + (uintptr_t)(first * element),
                        data + (uintptr_t)((last + 1) * element)};
}

/* Returns 1 if dimension `a` is inside dimension b, -1 if it is outside, 0 if either order is
 * possible: a stride of 0 is not ordered. Of equal strides, that of a size of 1 is inside. */
static int compare(const cuplug_tensor *x, int32_t a, int32_t b) {
  const uint64_t first = magnitude(x->strides[a]), second = magnitude(x->strides[b]);
  if (!first || !second) return 0;
  if (first != second) return first < second ? 1 : -1;
  return (x->shape[a] == 1) - (x->shape[b] == 1);
}

/* By insertion: comparisons that decide nothing are passed over. */
void cuplug__sort_dims(const cuplug_tensor *x, int32_t *dims) {
  for (int32_t n = 0; n < x->ndim; n++) {
    dims[n] = n;
    for (int32_t k = n - 1, at = n; x->strides && k >= 0; k--) {
      const int order = compare(x, dims[k], dims[at]);
      if (order < 0) break;
      if (!order) continue;
      const int32_t moved = dims[at];
      dims[at] = dims[k], dims[k] = moved, at = k;
    }
  }
}

int cuplug__shares_elements(const cuplug_tensor *x) {
  int32_t dims[CUPLUG_MAX_NDIM];
  uint64_t reach = 0;
  if (!x->strides || is_empty(x)) return 0;
  cuplug__sort_dims(x, dims);
  for (int32_t k = x->ndim - 1; k >= 0; k--) {
    const uint64_t stride = magnitude(x->strides[dims[k]]), n = (uint64_t)x->shape[dims[k]];
    if (n > 1 && stride <= reach) return 1;
    reach += (n - 1) * stride;
  }
  return 0;
}
