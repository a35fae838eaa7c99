/* SPDX-License-Identifier: Apache-2.0 */
/* Overlap in calls whose lists are apart from the frame's tensors. */
#ifndef CUPLUG_CORE_ARGUMENTS_APART_H
#define CUPLUG_CORE_ARGUMENTS_APART_H

#include "arguments/match.h"

/* Refuses arrays that are changed in place and share memory with others: in O(n log n) for n
 * arrays, but for those that interleave. */
int cuplug__check_apart(cuplug__match *m);

#endif
