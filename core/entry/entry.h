/* SPDX-License-Identifier: Apache-2.0 */
/* One entry, called. */
#ifndef CUPLUG_CORE_ENTRY_ENTRY_H
#define CUPLUG_CORE_ENTRY_ENTRY_H

#include "entry/run.h"

/* Calls the entry of the run's side, frees its workspaces, and turns what it returned into a
 * finished error record. The device has been entered. */
int cuplug__call_entry(cuplug__run *run);

#endif
