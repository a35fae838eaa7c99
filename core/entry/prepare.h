/* SPDX-License-Identifier: Apache-2.0 */
/* What an overload needs before it runs: code for the GPU, and the states that plugins keep for a
 * device, made at the first call that needs one. */
#ifndef CUPLUG_CORE_ENTRY_PREPARE_H
#define CUPLUG_CORE_ENTRY_PREPARE_H

#include "entry/run.h"
#include "registry/operator.h"

/* Looks for code for the GPU, and makes the fault record unless there is one, before the overload's
 * first run there. The device has been entered. */
int cuplug__ready_run(cuplug__run *run);

/* ---- States ---------------------------------------------------------------------------------- */

/* Sets call->state to the state for its device, made now if need be; the device has been entered.
 * A failed call made nothing, and the next one tries again. *held is given back after the call. */
int cuplug__state_take(cuplug__states *states, cuplug_call *call, cuplug_error *error,
                       cuplug__held **held);
void cuplug__state_give(cuplug__states *states, cuplug_device device, cuplug__held *held);

#endif
