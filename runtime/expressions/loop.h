/* SPDX-License-Identifier: Apache-2.0 */
/* Strided arrays of one shape as loops of few dimensions. */
#ifndef CUPLUG_RUNTIME_EXPRESSIONS_LOOP_H
#define CUPLUG_RUNTIME_EXPRESSIONS_LOOP_H

#include <cuplug/walk.h>
#include <runtime/expressions.h>

_Static_assert(CUPLUG_MAX_LOOP_ARRAYS == CUPLUG_MAX_ARGUMENTS, "any call may be a loop");

/* Declares memory for the strides of `ndim` dimensions. Memory for 64 would fill small stacks. */
#define CUPLUG__LOOP_STRIDES(name, ndim) long long name[(ndim) + 1][CUPLUG_MAX_LOOP_ARRAYS]

/* Bits `from` to `to` - 1, of at most 64; none if `from` equals `to`. */
static inline uint64_t cuplug__bits_from_to(uint32_t from, uint32_t to) {
  const uint64_t below_to = to < 64 ? (1ull << to) - 1 : UINT64_MAX;
  return from < 64 ? below_to >> from << from : 0;
}

#endif
