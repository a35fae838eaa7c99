/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays through the GPU. */
#ifndef CUPLUG_CORE_STAGING_STAGE_H
#define CUPLUG_CORE_STAGING_STAGE_H

#include "entry/run.h"
#include "staging/transfer.h"

/* Copies in, runs, waits, copies out: all, or, of a call that can be cut, these rows. 0 of them:
 * all. Inputs have been broadcast, the device has been entered. */
int cuplug__run_staged(cuplug__run *run, uint64_t first_row, uint64_t n_rows);

/* ---- Turns ----------------------------------------------------------------------------------- */

/* Large calls of several threads through one GPU, a few at a time: each keeps the bus and the
 * memory of the host busy on its own, and all at once would slow each other. */

/* At once on one GPU: while one begins or ends, another has the bus. */
#define CUPLUG__GPU_SLOTS 2

/* Waits for a slot on the GPU, for a limited time: the thread that has one may wait for this very
 * thread. A thread that has one needs no other. Fails if the tracker ends the call; else release
 * it. */
int cuplug__gpu_slot_acquire(int32_t device, cuplug__progress_tracker *tracker,
                             cuplug_error *error);
void cuplug__gpu_slot_release(int32_t device);

#endif
