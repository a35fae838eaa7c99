/* SPDX-License-Identifier: Apache-2.0 */
#include "expressions/packs.h"

void cuplug__loop_pack(const cuplug_loop *loop, int is_wide, cuplug_divisor *divisors,
                       long long *strides) {
  for (int d = 0; d < loop->ndim; d++) divisors[d] = cuplug__divisor(loop->sizes[d], is_wide);
  for (uint32_t k = 0; k < loop->n_arrays; k++)
    for (int d = 0; d < loop->ndim; d++) *strides++ = loop->strides[d][k];
}

static int steps_by(const cuplug_loop *loop, int n_dims, uint32_t k, uint32_t width) {
  for (int d = 0; d < n_dims; d++)
    if (loop->strides[d][k] % width) return 0;
  return 1;
}

int cuplug__loop_has_packs(const cuplug_loop *loop, const cuplug_loop *other,
                           const cuplug_call *call, uint32_t n_arrays, uint32_t width) {
  const int last = loop->ndim - 1;
  if (last < 0 || loop->sizes[last] % width) return 0;
  for (uint32_t k = 0; k < n_arrays; k++) {
    const cuplug_tensor *x = &call->tensors[k];
    const uint64_t pack_bytes = width * (uint64_t)cuplug_element_bytes(x);
    if (!loop->strides[last][k]) continue;
    if (loop->strides[last][k] != 1 || (uintptr_t)x->data % pack_bytes ||
        !steps_by(loop, last, k, width) || (other && !steps_by(other, other->ndim, k, width)))
      return 0;
  }
  return 1;
}

uint64_t cuplug__loop_take_packs(cuplug_loop *loop, uint32_t width) {
  const int last = loop->ndim - 1;
  uint64_t still = 0;
  for (uint32_t k = 0; k < loop->n_arrays; k++) {
    still |= (uint64_t)!loop->strides[last][k] << k;
    loop->strides[last][k] *= width;
  }
  loop->sizes[last] /= width;
  loop->n /= width;
  return still;
}
