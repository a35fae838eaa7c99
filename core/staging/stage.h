/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays through the GPU. */
#ifndef CUPLUG_CORE_STAGING_STAGE_H
#define CUPLUG_CORE_STAGING_STAGE_H

#include "entry/run.h"

/* Copies in, runs, waits, copies out. Inputs have been broadcast, the device has been entered. */
int cuplug__run_staged(cuplug__run *run);

#endif
