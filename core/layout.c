/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

int cuplug__is_contiguous(const cuplug_tensor *x) {
  if (!x->strides) return 1;
  int64_t expected = 1;
  int contiguous = 1;
  for (int32_t k = x->ndim - 1; k >= 0; k--) {
    if (x->shape[k] == 0) return 1;
    if (x->shape[k] != 1 && x->strides[k] != expected) contiguous = 0;
    if (__builtin_mul_overflow(expected, x->shape[k], &expected)) contiguous = 0;
  }
  return contiguous;
}

void cuplug__span(const cuplug_tensor *x, const char **low, const char **high) {
  int64_t element = cuplug_element_bytes(x), first = 0, last = 0;
  *low = *high = (const char *)x->data;
  if (!x->strides) {
    *high += cuplug__n_bytes(x);
    return;
  }
  for (int32_t k = 0; k < x->ndim; k++) {
    if (x->shape[k] == 0) return;
    int64_t reach = (x->shape[k] - 1) * x->strides[k];
    *(reach < 0 ? &first : &last) += reach;
  }
  *low += first * element;
  *high += (last + 1) * element;
}

int cuplug__overlap(const cuplug_tensor *x, const cuplug_tensor *y) {
  const char *x_low, *x_high, *y_low, *y_high;
  cuplug__span(x, &x_low, &x_high);
  cuplug__span(y, &y_low, &y_high);
  return x_low < y_high && y_low < x_high && x_low < x_high && y_low < y_high;
}
