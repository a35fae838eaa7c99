/* SPDX-License-Identifier: Apache-2.0 */
/* Strided arrays of one shape as loops of few dimensions. */
#ifndef CUPLUG_CORE_SOURCE_LOOP_H
#define CUPLUG_CORE_SOURCE_LOOP_H

#include <cuplug/loop.h>
#include <internal/source.h>

/* Declares memory for the strides of `ndim` dimensions: of 64 it would fill small stacks. */
#define CUPLUG__LOOP_STRIDES(name, ndim) long long name[(ndim) + 1][CUPLUG_MAX_LOOP_ARRAYS]

void cuplug__loop_start(cuplug_loop *loop, uint32_t n_arrays,
                        long long (*strides)[CUPLUG_MAX_LOOP_ARRAYS]);

/* Adds dimension `dim` of the tensors, inside of those added before. The arrays in `still` (a bit
 * for each) do not move along it. */
void cuplug__loop_add(cuplug_loop *loop, const cuplug_tensor *tensors, int32_t dim, uint32_t still);

/* Merges dimensions that all arrays walk through like one. With `any_order` the fastest of the last
 * array becomes the last, then of the others: elements are then not met in C order. */
void cuplug__loop_collapse(cuplug_loop *loop, int any_order);

/* 1 when array k is met element after element in memory. */
static inline int cuplug__loop_is_flat(const cuplug_loop *loop, uint32_t k) {
  return !loop->ndim || (loop->ndim == 1 && loop->strides[0][k] == 1);
}

#endif
