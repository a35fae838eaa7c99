/* SPDX-License-Identifier: Apache-2.0 */
#include "base/layout.h"

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
  if (!x->strides) return 1;
  for (int32_t k = 0; k < x->ndim; k++)
    if (x->shape[k] == 0) return 1;
  for (int32_t k = 0; k < x->ndim; k++) {
    int64_t *end = x->strides[k] < 0 ? &first : &last;
    if (__builtin_mul_overflow(x->shape[k] - 1, x->strides[k], &reach) ||
        __builtin_add_overflow(*end, reach, end))
      return 0;
  }
  /* In bytes, and so that their sum fits, too. */
  const int64_t most = INT64_MAX / 2 / cuplug_element_bytes(x) - 1;
  return first >= -most && last <= most;
}

cuplug__span cuplug__strided_span(const cuplug_tensor *x) {
  const uintptr_t data = (uintptr_t)cuplug__first_element(x);
  int64_t element = cuplug_element_bytes(x), first = 0, last = 0;
  /* First: without elements the other sizes may be of any product. */
  for (int32_t k = 0; k < x->ndim; k++)
    if (x->shape[k] == 0) return (cuplug__span){data, data};
  for (int32_t k = 0; k < x->ndim; k++) {
    int64_t reach = (x->shape[k] - 1) * x->strides[k];
    *(reach < 0 ? &first : &last) += reach;
  }
  return (cuplug__span){data + (uintptr_t)(first * element),
                        data + (uintptr_t)((last + 1) * element)};
}

static uint64_t stride_of(const cuplug_tensor *x, int32_t k) {
  return x->strides[k] < 0 ? -(uint64_t)x->strides[k] : (uint64_t)x->strides[k];
}

int cuplug__shares_elements(const cuplug_tensor *x) {
  uint64_t left = 0, reach = 0;
  if (!x->strides) return 0;
  for (int32_t k = 0; k < x->ndim; k++) {
    if (x->shape[k] == 0) return 0;
    if (x->shape[k] > 1) left |= (uint64_t)1 << k;
  }
  while (left) {
    int32_t narrowest = __builtin_ctzll(left);
    for (uint64_t rest = left; rest; rest &= rest - 1) {
      const int32_t k = __builtin_ctzll(rest);
      if (stride_of(x, k) < stride_of(x, narrowest)) narrowest = k;
    }
    if (stride_of(x, narrowest) <= reach) return 1;
    reach += ((uint64_t)x->shape[narrowest] - 1) * stride_of(x, narrowest);
    left &= ~((uint64_t)1 << narrowest);
  }
  return 0;
}
