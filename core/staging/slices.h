/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays through the GPU in slices: copies in, kernels and copies out of different slices run
 * at once, and the GPU's memory holds a few slices instead of the arrays. */
#ifndef CUPLUG_CORE_STAGING_SLICES_H
#define CUPLUG_CORE_STAGING_SLICES_H

#include "host/progress.h"
#include "staging/staged_call.h"

/* 1 for calls that are described in rows, of which there are enough, and some fit a slice. */
int cuplug__suits_slices(const cuplug__staged_call *staged);

/* Runs such a call. *fits becomes 0 where memory for slices and for what they share is not to be
 * had: then nothing has been run, and no error is left. After an error the outputs and in-out
 * arrays hold what the slices before had for them; pinned ones also what those under way had. The
 * device has been entered. */
int cuplug__run_slices(cuplug__staged_call *staged, cuplug__progress_tracker *tracker, int *fits);

#endif
