/* SPDX-License-Identifier: Apache-2.0 */
/* What an overload needs on a GPU before its first run. */
#ifndef CUPLUG_CORE_ENTRY_PREPARE_H
#define CUPLUG_CORE_ENTRY_PREPARE_H

#include "entry/run.h"

/* Looks for code for the GPU, and makes the fault record unless there is one, before the overload's
 * first run there. The device has been entered. */
int cuplug__ready_run(cuplug__run *run);

#endif
