/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

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

cuplug__span cuplug__strided_span(const cuplug_tensor *x) {
  const char *data = (const char *)x->data + x->byte_offset;
  int64_t element = cuplug_element_bytes(x), first = 0, last = 0;
  for (int32_t k = 0; k < x->ndim; k++) {
    if (x->shape[k] == 0) return (cuplug__span){data, data};
    int64_t reach = (x->shape[k] - 1) * x->strides[k];
    *(reach < 0 ? &first : &last) += reach;
  }
  return (cuplug__span){data + first * element, data + (last + 1) * element};
}
