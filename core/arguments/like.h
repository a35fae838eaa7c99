/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that are laid out like an input: "-> T[n, c, h, w] like x". */
#ifndef CUPLUG_CORE_ARGUMENTS_LIKE_H
#define CUPLUG_CORE_ARGUMENTS_LIKE_H

#include "arguments/match.h"

/* Sets the strides of output tensor k, whose shape is known, in the order of those of the input
 * that parameter or output x of the signature is like. Without gaps; C order remains NULL. */
void cuplug__lay_out_like(cuplug__match *m, const cuplug_parameter *x, uint32_t k);

/* Returns 1 if an array has the strides of another of the same shape, or those of C order if that
 * one has none. Sizes of 1 do not matter. */
int cuplug__has_layout_of(const cuplug_tensor *x, const cuplug_tensor *other);

/* Passes the arrays of a frame that keeps their layout in one dimension, as they are in memory. */
void cuplug__flatten(cuplug_frame *f);

#endif
