/* SPDX-License-Identifier: Apache-2.0 */
/* Lists: of arrays, and the memory of lists that have more items than fit in the frame. */
#ifndef CUPLUG_CORE_ARGUMENTS_LISTS_H
#define CUPLUG_CORE_ARGUMENTS_LISTS_H

#include "arguments/match.h"

/* In match.inout_mask: arrays of lists that are apart are changed in place. */
#define CUPLUG__INOUT_ITEMS (1ull << 63)

/* Where an array that is apart comes from. */
typedef struct cuplug__item {
  int32_t parameter;
  int64_t number; /* in the list */
} cuplug__item;

/* Memory among the frame's blocks; NULL, with the record filled, on failure. */
void *cuplug__frame_memory(const cuplug__match *m, size_t bytes);

/* Frees the frame's blocks: the match is lost. */
void cuplug__forget_lists(cuplug_frame *frame);

/* Fits the items of all lists of arrays, when the single arrays are matched. They are appended to
 * frame->tensors, or all go to frame->apart: if a list is T[n][each], or if a call would have more
 * than CUPLUG_MAX_ARGUMENTS tensors. */
int cuplug__match_lists(cuplug__match *m);

/* Finds the parameter and item of array k of frame->apart. */
cuplug__item cuplug__find_apart(const cuplug__match *m, uint32_t k);

/* Rejects arrays that are changed in place and share memory with others: in O(n log n) for n
 * arrays, unless they interleave. */
int cuplug__check_apart(cuplug__match *m);

#endif
