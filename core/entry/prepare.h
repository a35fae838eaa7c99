/* SPDX-License-Identifier: Apache-2.0 */
/* What an overload needs on a GPU before its first run. */
#ifndef CUPLUG_CORE_ENTRY_PREPARE_H
#define CUPLUG_CORE_ENTRY_PREPARE_H

#include "entry/run.h"

/* Looks for code for the GPU, and makes the fault record unless there is one. The device has been
 * entered. */
int cuplug__ready_overload(const cuplug_operator *op, cuplug__overload *overload, int32_t device,
                           cuplug_error *error);

/* The same before a run, if it has not been done, and notes it. */
int cuplug__ready_run(cuplug__run *run);

#endif
