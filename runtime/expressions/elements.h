/* SPDX-License-Identifier: Apache-2.0 */
/* Code over the elements of arrays of any strides: threads, blocks of contiguous elements, and
 * conversions. The code itself is one loop over contiguous memory. */
#ifndef CUPLUG_RUNTIME_EXPRESSIONS_ELEMENTS_H
#define CUPLUG_RUNTIME_EXPRESSIONS_ELEMENTS_H

#include <cuplug/host.h>
#include <cuplug/loop.h>

/* The arrays of a call: outputs are those from `n_inputs` on; a bit for each other array that is
 * also written, for each that the code reads at any index, and for each of which it reads one
 * element for a whole row. 1 if it reads float16 and bfloat16 as stored. */
typedef struct cuplug__roles {
  uint32_t n_inputs;
  uint64_t inout, raw, still;
  int takes_raw_halves;
} cuplug__roles;

/* For large arrays in long rows, a bit for each input that is broadcast along a row, but not across
 * rows, and that the code reads as stored. */
uint64_t cuplug__row_constant_inputs(const cuplug_loop *loop, const cuplug_tensor *tensors,
                                     const cuplug__roles *roles);

/* Calls the code, a cuplug_loop_part, for all elements of the call's loop. `tensors` are the
 * arrays as the call has them. With `wants_groups`, the code receives elements in groups of
 * CUPLUG_GROUP, the last one filled with copies. Returns a status. */
int cuplug__elements_run(const cuplug_loop_call *call, cuplug_loop_part *code,
                         const cuplug_tensor *tensors, const cuplug__roles *roles, int wants_groups,
                         cuplug_error *error);

#endif
