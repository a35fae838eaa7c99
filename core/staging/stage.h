/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays through the GPU. */
#ifndef CUPLUG_CORE_STAGING_STAGE_H
#define CUPLUG_CORE_STAGING_STAGE_H

#include "entry/run.h"
#include "staging/parcel.h"

/* Copies in, runs, waits, copies out. Inputs have been broadcast, the device has been entered. */
int cuplug__run_staged(cuplug__run *run);

/* Likewise for some rows of a shipment that is described in rows. */
int cuplug__run_share(cuplug__shipment *shipment, uint64_t first_row, uint64_t n_rows);

#endif
