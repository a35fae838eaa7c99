/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on GPUs, which return before their kernels have run: the fault record of each, who made it,
 * and where what it reads comes from. A fault is raised by what the thread that made the call does
 * next; by each read of what the call wrote, and of what was computed from that; and by
 * cuplug_synchronize for a whole device. */
#ifndef CUPLUG_CORE_CUDA_CALLS_H
#define CUPLUG_CORE_CUDA_CALLS_H

#include "registry/operator.h"

#include <cuplug/fault.h>
#include <cuplug/host.h>

/* Gives a call on `stream` its record, and its origin: the number by which what it writes is known.
 * `origins` are those of what it reads; 0: unknown. Takes a lock in one of 63 calls. The names are
 * borrowed for ever. The device has been entered. */
int cuplug__calls_begin(const cuplug__names *names, int32_t device, void *stream,
                        const uint64_t *origins, uint32_t n_origins, cuplug_fault **fault,
                        uint64_t *origin, cuplug_error *error);

/* Raises the first fault that a call of this thread has, and that was not raised before. Reads one
 * word when there is none. */
int cuplug__calls_check(cuplug_error *error);
/* The same for the calls of all threads. */
int cuplug__calls_check_all(cuplug_error *error);

/* All work of a device that was begun before `moment` is done: what cuplug__calls_moment returned.
 */
uint64_t cuplug__calls_moment(void);
void cuplug__calls_note_idle(int32_t device, uint64_t moment);

/* What was captured on a stream was captured just now, or is launched: what its calls wrote before
 * is of no interest. Of other graphs no launch is seen, and each fault is raised once. */
void cuplug__calls_again(const void *stream);

#endif
