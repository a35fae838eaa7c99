/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays through the GPU in slices: copies in, kernels and copies out of different slices run
 * at once, and the GPU's memory holds a few slices instead of the arrays. */
#ifndef CUPLUG_CORE_SLICES_H
#define CUPLUG_CORE_SLICES_H

#include "call.h"

/* 1 for a large call each of whose arrays is contiguous and has the loop dimensions alone, at
 * their full size: then any range of elements is a call of its own. Not with in-out arrays: those
 * change after a call without error only, and slices are written back while others still run. */
int cuplug__can_slice(const cuplug__run *run);

/* Runs such a call. After an error the outputs hold anything. The device has been entered. */
int cuplug__run_slices(cuplug__run *run);

#endif
