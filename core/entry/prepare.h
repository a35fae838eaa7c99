/* SPDX-License-Identifier: Apache-2.0 */
/* The requirements of an overload before it runs: code for the GPU, and the states that plugins
 * keep for a device, created at the first call that requires one. */
#ifndef CUPLUG_CORE_ENTRY_PREPARE_H
#define CUPLUG_CORE_ENTRY_PREPARE_H

#include "entry/run.h"
#include "registry/plugin.h"

/* Searches code for the GPU, and creates the fault record unless it exists, before the overload's
 * first run there. The device has been entered. */
int cuplug__ready_run(cuplug__run *run);

/* ---- States ---------------------------------------------------------------------------------- */

/* Sets call->state to the device's state, created if necessary; the device has been entered. A
 * failed call creates nothing, and the next one retries. *held is released after the call. */
int cuplug__state_take(cuplug__states *states, cuplug_call *call, cuplug_error *error,
                       cuplug__held **held);
void cuplug__state_give(cuplug__states *states, cuplug_device device, cuplug__held *held);

#endif
