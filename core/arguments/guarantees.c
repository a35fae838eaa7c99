/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/guarantees.h"

#include "base/describe.h"
#include "base/layout.h"

#include <inttypes.h>
#include <stdio.h>

static int has_other_address(const cuplug_parameter *x, const cuplug_tensor *t) {
  return ((uintptr_t)cuplug__first_element(t) & x->address_mask) != 0;
}

static int has_other_elements(const cuplug_parameter *x, const cuplug_tensor *t) {
  const int32_t last = t->ndim - 1;
  return x->has_unit_stride && last >= 0 && t->shape[last] > 1 && t->strides[last] != 1;
}

/* Rows are as far apart as in a contiguous array, or by multiples of the alignment. On a GPU, a
 * host array with negative strides may begin anywhere. */
static int has_other_rows(const cuplug_parameter *x, const cuplug_tensor *t) {
  const int64_t element = cuplug_element_bytes(t);
  for (int32_t k = 0; x->address_mask && k < t->ndim; k++) {
    const int64_t step = t->strides[k] * element;
    if (t->shape[k] > 1 && (step < 0 || (k < t->ndim - 1 && step & x->address_mask))) return 1;
  }
  return 0;
}

int cuplug__breaks_guarantees(const cuplug_parameter *x, const cuplug_tensor *t) {
  if (has_other_address(x, t)) return 1;
  return !cuplug__is_contiguous(t) &&
         (x->is_contiguous || has_other_elements(x, t) || has_other_rows(x, t));
}

cuplug__guarantee_text cuplug__describe_broken(const cuplug_parameter *x, const cuplug_tensor *t) {
  cuplug__guarantee_text text;
  const uint32_t alignment = x->address_mask + 1;
  if (has_other_address(x, t)) {
    snprintf(text.got, sizeof text.got, "the address 0x%" PRIxPTR,
             (uintptr_t)cuplug__first_element(t));
    snprintf(text.expected, sizeof text.expected, "a multiple of %u", alignment);
    return text;
  }
  snprintf(text.got, sizeof text.got, "strides %.60s",
           cuplug__describe_tuple(t->strides, t->ndim).s);
  if (x->is_contiguous)
    snprintf(text.expected, sizeof text.expected, "those of a C-contiguous array");
  else if (has_other_elements(x, t))
    snprintf(text.expected, sizeof text.expected, "1 in the last dimension");
  else
    snprintf(text.expected, sizeof text.expected, "multiples of %u bytes, and none below 0",
             alignment);
  return text;
}
