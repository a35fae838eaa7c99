/* SPDX-License-Identifier: Apache-2.0 */
#include "source/packs.h"

/* T. Granlund, P. L. Montgomery: Division by invariant integers using multiplication, PLDI 1994. */
static cuplug_divisor divisor_of(long long size) {
  cuplug_divisor d = {size, 0, 0};
  if (size >= 1ll << 31) return d; /* such loops are divided in 64 bits */
  while (d.shift < 31 && 1ll << d.shift < size) d.shift++;
  d.magic = (unsigned)(((1ull << 32) * ((1ull << d.shift) - (uint64_t)size)) / (uint64_t)size + 1);
  return d;
}

void cuplug__loop_pack(const cuplug_loop *loop, cuplug_divisor *divisors, long long *strides) {
  for (int d = 0; d < loop->ndim; d++) divisors[d] = divisor_of(loop->sizes[d]);
  for (uint32_t k = 0; k < loop->n_arrays; k++)
    for (int d = 0; d < loop->ndim; d++) *strides++ = loop->strides[d][k];
}

uint32_t cuplug__pack_width(const cuplug_call *call, uint32_t n_arrays) {
  int64_t greatest = 1;
  for (uint32_t k = 0; k < n_arrays; k++) {
    int64_t bytes = cuplug_element_bytes(&call->tensors[k]);
    if (bytes > greatest) greatest = bytes;
  }
  return greatest < 16 ? (uint32_t)(16 / greatest) : 1;
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

uint32_t cuplug__loop_take_packs(cuplug_loop *loop, uint32_t width) {
  const int last = loop->ndim - 1;
  uint32_t still = 0;
  for (uint32_t k = 0; k < loop->n_arrays; k++) {
    still |= (uint32_t)!loop->strides[last][k] << k;
    loop->strides[last][k] *= width;
  }
  loop->sizes[last] /= width;
  loop->n /= width;
  return still;
}
