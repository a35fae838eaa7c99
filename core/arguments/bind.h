/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that must be broadcast or made contiguous, strides, and arguments given only by size. */
#ifndef CUPLUG_CORE_ARGUMENTS_BIND_H
#define CUPLUG_CORE_ARGUMENTS_BIND_H

#include "arguments/match_cache.h"

/* The fields that matching does not set. */
static inline void cuplug__start_frame(cuplug_operator *op, cuplug_frame *frame) {
  frame->op = op;
  frame->stream = NULL;
  frame->made = NULL;
  frame->allocate = NULL;
  frame->progress = NULL;
  frame->n_origins = 0;
  frame->origin = 0;
  frame->keep_scratch = NULL;
  frame->user = NULL;
  frame->blocks = NULL;
  frame->apart = NULL;
  frame->offloaded = 0;
  frame->keeps_layout = 0;
}

/* Matches the scalars and in-out arrays after a cached match was restored to a frame, which
 * receives the scalars. */
int cuplug__fits_too(const cuplug_operator *op, const cuplug_argument *args, uint32_t n_args,
                     cuplug_frame *frame, const cuplug__cached_match *known);

/* Broadcasts the inputs of copy_mask by strides of 0, and clears it. */
void cuplug__broadcast_inputs(cuplug_frame *frame);

/* Fills in C-order strides, which entries of overloads that take strides always receive. */
void cuplug__write_strides(cuplug_frame *frame);

#endif
