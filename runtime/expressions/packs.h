/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of kernels over loops, and packs, which are elements that one instruction loads. */
#ifndef CUPLUG_RUNTIME_EXPRESSIONS_PACKS_H
#define CUPLUG_RUNTIME_EXPRESSIONS_PACKS_H

#include <cuplug/host.h>
#include <cuplug/walk.h>

/* The dimensions of a loop, and the strides of each array consecutively, as kernels receive them:
 * divisors[ndim], strides[n_arrays][ndim]. Both have memory for an additional dimension, which
 * kernels over loops without dimensions read. `is_wide` is the kernel variant's, for numbers of 64
 * bits. */
void cuplug__loop_pack(const cuplug_loop *loop, int is_wide, cuplug_divisor *divisors,
                       long long *strides);

/* Returns 1 if the first `n_arrays` arrays of the call can be read in packs of `width` along the
 * last dimension of `loop`, at any position of the loop `other` (may be NULL). */
int cuplug__loop_has_packs(const cuplug_loop *loop, const cuplug_loop *other,
                           const cuplug_call *call, uint32_t n_arrays, uint32_t width);
/* Makes packs the elements of such a loop; returns the arrays that are broadcast along them. */
uint64_t cuplug__loop_take_packs(cuplug_loop *loop, uint32_t width);

#endif
