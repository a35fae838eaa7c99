/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the host over arrays of any strides, called for blocks of contiguous elements. */
#ifndef CUPLUG_CORE_ENTRY_BLOCKS_H
#define CUPLUG_CORE_ENTRY_BLOCKS_H

#include "entry/run.h"

/* 1 if a bound frame that will run on the host needs no copies of the inputs in its copy_mask: all
 * its arrays have only loop dimensions, and its entry takes microseconds. */
int cuplug__can_run_in_blocks(const cuplug_frame *frame);

/* Calls the entry for all elements. Returns its status. */
int cuplug__call_for_blocks(cuplug__run *run);

#endif
