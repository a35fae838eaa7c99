/* SPDX-License-Identifier: Apache-2.0 */
/* Fault records: where kernels leave what they found wrong. */
#ifndef CUPLUG_CORE_CUDA_FAULT_H
#define CUPLUG_CORE_CUDA_FAULT_H

#include "registry/operator.h"

#include <cuplug/fault.h>
#include <cuplug/host.h>

/* A fault record for calls of one overload, in pinned memory mapped to host and devices; never
 * freed. The names for its report are borrowed for ever. A device has been entered. */
int cuplug__fault_record(const cuplug__names *names, cuplug_fault **fault, cuplug_error *error);
/* A record that fault_take_any leaves alone, for one call at a time: named before each by
 * fault_rename, and given back. */
int cuplug__fault_private(cuplug_fault **fault, cuplug_error *error);
void cuplug__fault_rename(cuplug_fault *fault, const cuplug__names *names);
void cuplug__fault_release(cuplug_fault *fault);

/* Reports and clears the fault of one record; of any record (one word is read when there is none).
 */
int cuplug__fault_take(cuplug_fault *fault, cuplug_error *error);
int cuplug__fault_take_any(cuplug_error *error);

#endif
