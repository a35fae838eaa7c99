/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and layouts that a signature defines. */
#ifndef CUPLUG_CORE_ARGUMENTS_SHAPES_H
#define CUPLUG_CORE_ARGUMENTS_SHAPES_H

#include "arguments/match.h"

/* Reserves words of the frame for inputs, when all of them are matched. */
int cuplug__reserve_words(cuplug__match *m);
/* Appends the tensor of output i (its number among all parameters), without memory. */
int cuplug__shape_output(cuplug__match *m, int32_t i);
/* Compares the computed sizes of inputs, when all arguments are matched. */
int cuplug__check_formulas(cuplug__match *m);

/* ---- Layouts --------------------------------------------------------------------------------- */

/* Returns 1 if an array has the strides of another of the same shape, or the strides of C order if
 * that one has none. Sizes of 1 do not matter. */
int cuplug__has_layout_of(const cuplug_tensor *x, const cuplug_tensor *other);

/* 1 if a frame's arrays have only loop dimensions, and its overload treats all elements equally, so
 * that they may be passed in any order or in parts. */
int cuplug__is_elementwise(const cuplug_frame *f);
/* Passes the arrays of a frame that keeps their layout in one dimension, in memory order. */
void cuplug__flatten(cuplug_frame *f);

#endif
