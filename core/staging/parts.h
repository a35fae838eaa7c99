/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays through the GPU whole, or, where its memory has no room, in parts as large as fit. */
#ifndef CUPLUG_CORE_STAGING_PARTS_H
#define CUPLUG_CORE_STAGING_PARTS_H

#include "host/watch.h"
#include "staging/parcel.h"

/* Describes the arrays, and runs the call. After an error the outputs and in-out arrays hold what
 * the parts before had for them. The device has been entered. */
int cuplug__run_parts(cuplug__shipment *shipment, cuplug__watch *watch);

#endif
