/* SPDX-License-Identifier: Apache-2.0 */
/* States that plugins keep for a device: made at the first call that needs one. */
#ifndef CUPLUG_CORE_ENTRY_STATE_H
#define CUPLUG_CORE_ENTRY_STATE_H

#include "registry/operator.h"

/* Sets call->state to the state for its device, made now if need be; the device has been entered.
 * A failed call made nothing, and the next one tries again. *held is given back after the call. */
int cuplug__state_take(cuplug__states *states, cuplug_call *call, cuplug_error *error,
                       cuplug__held **held);
void cuplug__state_give(cuplug__states *states, cuplug_device device, cuplug__held *held);

#endif
