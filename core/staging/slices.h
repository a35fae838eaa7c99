/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays through the GPU in slices: copies in, kernels and copies out of different slices run
 * at once, and the GPU's memory holds a few slices instead of the arrays. */
#ifndef CUPLUG_CORE_STAGING_SLICES_H
#define CUPLUG_CORE_STAGING_SLICES_H

#include "staging/staged_call.h"

/* 1 for calls that are described in rows, of which there are enough, and some fit a slice. */
int cuplug__suits_slices(const cuplug__staged_call *staged);

/* Runs such a call. NOT_RUN: memory for slices and their shared arrays is not available. After an
 * error the outputs and in-out arrays hold the results of earlier slices; pinned ones also results
 * of slices in progress. The device has been entered. */
int cuplug__run_slices(cuplug__staged_call *staged);

#endif
