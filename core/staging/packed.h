/* SPDX-License-Identifier: Apache-2.0 */
/* Small calls: all arrays behind each other in one block, so that there is one copy to the device,
 * one back, and one wait, which cost more than the bytes. */
#ifndef CUPLUG_CORE_STAGING_PACKED_H
#define CUPLUG_CORE_STAGING_PACKED_H

#include "cuda/lane.h"
#include "host/watch.h"
#include "staging/parcel.h"

/* As much as the small buffers of a lane hold together. */
#define CUPLUG__PACKED_BYTES (CUPLUG__N_PINNED * CUPLUG__PINNED_SMALL)

/* Describes the arrays and runs the call. *fits becomes 0 where they are too many bytes, the sizes
 * of outputs are known only after the run, or memory is not to be had: then nothing has been run,
 * and no error is left. After an error nothing has come back. The device has been entered. */
int cuplug__run_packed(cuplug__shipment *shipment, cuplug__watch *watch, int *fits);

#endif
