/* SPDX-License-Identifier: Apache-2.0 */
/* The matches that each thread made last, of several operators and shapes. Most calls come with
 * arrays of the dtypes and shapes of a call before, and what matching those would find is known. */
#ifndef CUPLUG_CORE_ARGUMENTS_RECALL_H
#define CUPLUG_CORE_ARGUMENTS_RECALL_H

#include "arguments/match.h"

/* Keeps a match whose arrays are all there, contiguous, of few dimensions and not broadcast. Where
 * rows before it might have taken arguments of these kinds, no other values are to be among them,
 * for which those rows would be looked at again. */
void cuplug__remember(const cuplug__match *m, const cuplug_operator *op, uint32_t row,
                      int is_first);

/* When the arguments are like those of a match that this thread has kept for an operator: what it
 * found, but for the scalars and the row's number, which is returned. Else -1. Whether in-out
 * arrays overlap others is yet to be checked. */
int32_t cuplug__recall(cuplug__match *m, const cuplug_operator *op);

#endif
