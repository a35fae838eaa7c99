/* SPDX-License-Identifier: Apache-2.0 */
/* One entry, called. */
#ifndef CUPLUG_CORE_ENTRY_ENTRY_H
#define CUPLUG_CORE_ENTRY_ENTRY_H

#include "entry/run.h"

/* Calls the entry for the run's device type, frees its workspaces, and converts its result to a
 * finished error record. The device has been entered. */
int cuplug__call_entry(cuplug__run *run);

/* The parts of this, for a cached call: of an entry of the host without state, lists and outputs to
 * be cleared. The arguments of the entry; */
void cuplug__fill_call(cuplug__run *run, cuplug_call *call);
/* calls an entry, and restores how the thread computes: the entry may have set a rounding
 * direction; */
int cuplug__call_guarded(cuplug_entry *entry, const cuplug_call *call);
/* its result, if it failed or took workspaces: returns the status. */
int cuplug__end_entry(cuplug__run *run, int status);

/* Makes the record of a plugin's function that failed whole: a known status, a message, the name of
 * the operator. Returns the status. */
int cuplug__finish_error(cuplug_error *error, const char *name, int status);

#endif
