/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on GPUs, which return before their kernels have run: the fault record of each, its thread,
 * and the origins of its inputs. The next call of the thread that made the call raises its fault.
 * So does each read of the call's outputs and of results computed from them, and
 * cuplug_synchronize for a whole device. */
#ifndef CUPLUG_CORE_CUDA_CALLS_H
#define CUPLUG_CORE_CUDA_CALLS_H

#include "registry/plugin.h"

#include <cuplug/fault.h>
#include <cuplug/host.h>

/* Sets the fault record of a call on `stream`, and its origin: the number that identifies its
 * outputs. `origins` are the origins of its inputs; 0 means unknown. Takes the lock once every 63
 * calls. `overload` must live as long as the process. The caller has entered the device. */
int cuplug__calls_begin(const cuplug__callable *overload, int32_t device, void *stream,
                        const uint64_t *origins, uint32_t n_origins, cuplug_fault **fault,
                        uint64_t *origin, cuplug_error *error);

/* Raises the first fault of this thread that was not raised before. Without one, reads a word. */
int cuplug__calls_check(cuplug_error *error);
/* The same for the calls of all threads. */
int cuplug__calls_check_all(cuplug_error *error);

/* Called after a capture on `stream` by cuplug_begin_capture, and before each launch of that graph:
 * drops the faults of the launch before. cuplug does not see the launches of other graphs, and
 * raises each of their faults once. */
void cuplug__calls_again(const void *stream);

#endif
