/* SPDX-License-Identifier: Apache-2.0 */
/* Small calls: all arrays are consecutive in one block, so that there is one copy to the device,
 * one back, and one wait, which cost more than the bytes. Pinned arrays have their own copies. */
#ifndef CUPLUG_CORE_STAGING_COALESCED_H
#define CUPLUG_CORE_STAGING_COALESCED_H

#include "staging/staged_call.h"

/* The maximum bytes of all arrays, if some need buffers, and if all are pinned: larger calls gain
 * more from concurrent slices than these cost. */
#define CUPLUG__PACKED_BYTES ((uint64_t)1 << 20)
#define CUPLUG__PACKED_PINNED_BYTES ((uint64_t)8 << 20)

/* Describes the arrays and runs the call. NOT_RUN: they are too large, the sizes of outputs are
 * known only after the run, or memory is not available. After an error, in-out arrays are
 * unchanged. The device has been entered. */
int cuplug__run_coalesced(cuplug__staged_call *staged);

#endif
