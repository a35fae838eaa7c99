/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that must be broadcast or put in order; strides; arguments of which only sizes are asked.
 */
#ifndef CUPLUG_CORE_ARGUMENTS_BIND_H
#define CUPLUG_CORE_ARGUMENTS_BIND_H

#include <internal/frame.h>

/* Broadcasts the inputs of copy_mask by strides of 0, and clears it. */
void cuplug__spread_inputs(cuplug_frame *frame);

/* Strides of C order for all tensors that have none: entries of rows that take strides are given
 * them always. */
void cuplug__write_strides(cuplug_frame *frame);

/* As cuplug_bind, for arrays that may have no memory: the frame is not to be run. */
int cuplug__bind_shapes(cuplug_operator *op, const cuplug_argument *args, uint32_t n_args,
                        cuplug_frame *frame, cuplug_error *error);

#endif
