/* SPDX-License-Identifier: Apache-2.0 */
/* One call of host arrays through all GPUs, each with some of the rows. */
#ifndef CUPLUG_CORE_STAGING_ALL_GPUS_H
#define CUPLUG_CORE_STAGING_ALL_GPUS_H

#include "entry/run.h"

/* Calls that move less go through fewer GPUs: one for each of these bytes. */
#define CUPLUG__SHARD_BYTES ((uint64_t)16 << 20)

/* Inputs have been broadcast; no device has been entered. The run's device becomes the GPU if one
 * was enough. ERROR_VALUE with the reason if the call cannot be split. After an error the outputs
 * and in-out arrays hold some rows. */
int cuplug__run_on_all(cuplug__run *run);

#endif
