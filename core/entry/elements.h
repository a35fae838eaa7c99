/* SPDX-License-Identifier: Apache-2.0 */
/* Code over the elements of arrays of any strides: threads, blocks of elements that lie together,
 * and conversions, so that the code itself is one loop over contiguous memory. */
#ifndef CUPLUG_CORE_ENTRY_ELEMENTS_H
#define CUPLUG_CORE_ENTRY_ELEMENTS_H

#include "entry/run.h"

#include <cuplug/loop.h>

/* What is done with the arrays of a call: those from `n_inputs` on are outputs; of the others, a
 * bit for each that is written too, for each that the code reads wherever it likes, and for each of
 * which it takes one element for the whole row. Whether a call of the code takes the time of some
 * hundred elements, and whether it takes float16 and bfloat16 as they are stored. */
typedef struct cuplug__roles {
  uint32_t n_inputs;
  uint64_t inout, raw, still;
  int is_expensive, takes_raw_halves;
} cuplug__roles;

/* Of large arrays in long rows, a bit for each input that stands still along a row, but moves from
 * row to row, and that the code reads as it is stored. */
uint64_t cuplug__row_constant_inputs(const cuplug_loop *loop, const cuplug_tensor *tensors,
                                     const cuplug__roles *roles);

/* Calls the code, a cuplug_loop_part, for all elements of the call's loop. `tensors` are the
 * arrays as the call has them. With `wants_groups` the code gets elements in groups of
 * CUPLUG_GROUP, the last one filled up with copies. Returns a status. */
int cuplug__elements_run(const cuplug_loop_call *call, cuplug_loop_part *code,
                         const cuplug_tensor *tensors, const cuplug__roles *roles, int wants_groups,
                         cuplug_error *error);

#endif
