/* SPDX-License-Identifier: Apache-2.0 */
/* The matches that each thread made last, of several operators and shapes. Most calls come with
 * arrays of the dtypes and shapes of a call before, and what matching those would find is known. */
#ifndef CUPLUG_CORE_ARGUMENTS_RECALL_H
#define CUPLUG_CORE_ARGUMENTS_RECALL_H

#include "arguments/known.h"
#include "arguments/match.h"

/* Keeps a match whose arrays, those of lists included, are all there, contiguous, of few dimensions
 * and not broadcast; of outputs the shapes that they have before they are reshaped. Where
 * rows before it might have taken arguments of these kinds, no other values are to be among them,
 * for which those rows would be looked at again. */
void cuplug__remember(const cuplug__match *m, const cuplug_operator *op, uint32_t row,
                      int is_first);

/* When the arguments are like those of a match that this thread has kept for an operator: what it
 * found, but for the scalars, as the frame has it. Else NULL. Valid until the thread's next
 * match. */
const cuplug__known *cuplug__recall(const cuplug_operator *op, const cuplug_argument *args,
                                    uint32_t n_args, cuplug_frame *f);

/* The same for the match that goes on with the scalars and in-out arrays. */
void cuplug__recall_types(const cuplug__known *known, cuplug__match *m);

#endif
