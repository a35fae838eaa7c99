/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays through the GPU. */
#ifndef CUPLUG_CORE_STAGING_STAGE_H
#define CUPLUG_CORE_STAGING_STAGE_H

#include "entry/run.h"

/* Copies in, runs, waits, copies out: all, or, of a call that can be cut, these rows. 0 of them:
 * all. Inputs have been broadcast, the device has been entered. */
int cuplug__run_staged(cuplug__run *run, uint64_t first_row, uint64_t n_rows);

#endif
