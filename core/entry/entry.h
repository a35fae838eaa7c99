/* SPDX-License-Identifier: Apache-2.0 */
/* One entry, called. */
#ifndef CUPLUG_CORE_ENTRY_ENTRY_H
#define CUPLUG_CORE_ENTRY_ENTRY_H

#include "entry/run.h"

/* Calls the entry of the run's side, frees its workspaces, and turns what it returned into a
 * finished error record. The device has been entered. */
int cuplug__call_entry(cuplug__run *run);

/* Makes the record of a plugin's function that failed whole: a known status, a message, the name of
 * the operator. Returns the status. */
int cuplug__finish_error(cuplug_error *error, const char *name, int status);

#endif
