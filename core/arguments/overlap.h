/* SPDX-License-Identifier: Apache-2.0 */
/* Detects whether two arrays share memory, element by element: columns of one matrix do not. */
#ifndef CUPLUG_CORE_ARGUMENTS_OVERLAP_H
#define CUPLUG_CORE_ARGUMENTS_OVERLAP_H

#include "arguments/match.h"
#include "base/layout.h"

/* 1 if some byte belongs to an element of both. Exact, unless a decision takes more than about
 * 10,000 steps, as only for strides made by hand: then 2. Call it for arrays whose spans
 * overlap. */
int cuplug__overlap(const cuplug_tensor *a, const cuplug_tensor *b);

/* "overlaps" for what cuplug__overlap has returned. */
static inline const char *cuplug__overlap_verb(int overlap) {
  return overlap == 2 ? "may overlap (too many strides to decide it)" : "overlaps";
}

/* 1 when both have the same elements at the same addresses. */
int cuplug__same_memory(const cuplug_tensor *a, const cuplug_tensor *b);

/* ---- Lists of any length --------------------------------------------------------------------- */

/* Refuses arrays that are changed in place and share memory with others: in O(n log n) for n
 * arrays, but for those that interleave. */
int cuplug__check_apart(cuplug__match *m);

#endif
