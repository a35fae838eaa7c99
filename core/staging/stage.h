/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays through the GPU. */
#ifndef CUPLUG_CORE_STAGING_STAGE_H
#define CUPLUG_CORE_STAGING_STAGE_H

#include "entry/run.h"

/* Host arrays through the GPU: copies in, runs, waits, copies out. The device has been entered. */
int cuplug__run_staged(cuplug__run *run);

#endif
