/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: made by an entry, used by calls of others, closed once. */
#ifndef CUPLUG_CORE_ENTRY_HANDLE_H
#define CUPLUG_CORE_ENTRY_HANDLE_H

#include "entry/run.h"

/* The handles that one call uses. */
typedef struct cuplug__used {
  uint32_t n;
  uint8_t scalars[CUPLUG_MAX_ARGUMENTS];
  cuplug_handle *handles[CUPLUG_MAX_ARGUMENTS];
} cuplug__used;

/* Before a run: the handles among the frame's scalars stay open until it ends, and are the
 * plugin's pointers until then; one that the run makes gets its memory. An error took nothing. */
int cuplug__handles_begin(cuplug__run *run, cuplug__used *used);

/* Called after a run that returned `status`. Returns it, or the error of a handle not created. */
int cuplug__handles_end(cuplug__run *run, cuplug__used *used, int status);

#endif
