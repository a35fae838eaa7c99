/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that must be broadcast or put in order. */
#ifndef CUPLUG_CORE_ARGUMENTS_BIND_H
#define CUPLUG_CORE_ARGUMENTS_BIND_H

#include <internal/frame.h>

/* Broadcasts the inputs of copy_mask by strides of 0, and clears it. */
void cuplug__spread_inputs(cuplug_frame *frame);

#endif
