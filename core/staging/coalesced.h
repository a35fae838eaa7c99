/* SPDX-License-Identifier: Apache-2.0 */
/* Small calls: all arrays behind each other in one block, so that there is one copy to the device,
 * one back, and one wait, which cost more than the bytes. Pinned arrays have copies of their own.
 */
#ifndef CUPLUG_CORE_STAGING_COALESCED_H
#define CUPLUG_CORE_STAGING_COALESCED_H

#include "host/progress.h"
#include "staging/staged_call.h"

/* Bytes of all arrays, at most, where some need buffers, and where all are pinned: slices of more
 * win more by copying at once than they cost. */
#define CUPLUG__PACKED_BYTES ((uint64_t)1 << 20)
#define CUPLUG__PACKED_PINNED_BYTES ((uint64_t)8 << 20)

/* Describes the arrays and runs the call. *fits becomes 0 where they are too many bytes, the sizes
 * of outputs are known only after the run, or memory is not to be had: then nothing has been run,
 * and no error is left. After an error in-out arrays are as they were. The device has been
 * entered. */
int cuplug__run_coalesced(cuplug__staged_call *staged, cuplug__progress_tracker *tracker,
                          int *fits);

#endif
