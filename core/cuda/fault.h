/* SPDX-License-Identifier: Apache-2.0 */
/* Fault records: the reports of kernels about bad data. */
#ifndef CUPLUG_CORE_CUDA_FAULT_H
#define CUPLUG_CORE_CUDA_FAULT_H

#include "registry/plugin.h"

#include <cuplug/fault.h>
#include <cuplug/host.h>

#define CUPLUG__N_RECORDS 63 /* in a block of 4 KiB, after its head */

/* Pinned memory that host and devices share: both see it at the same address. */
typedef struct cuplug__fault_block {
  uint32_t summary; /* nonzero: a record that points here has a fault */
  uint32_t reserved[15];
  cuplug_fault records[CUPLUG__N_RECORDS];
} cuplug__fault_block;

/* A cleared block of pinned memory, whose records point to its own summary. A device has been
 * entered.
 */
int cuplug__fault_block_make(cuplug__fault_block **block, cuplug_error *error);

/* Raises and clears its fault, if it has one. */
int cuplug__fault_take(cuplug_fault *fault, const cuplug__callable *overload, cuplug_error *error);

static inline int cuplug__fault_is_claimed(const cuplug_fault *fault) {
  return __atomic_load_n(&fault->claimed, __ATOMIC_ACQUIRE) != 0;
}
/* 1 if it is complete: its claim is visible first. */
static inline int cuplug__fault_is_told(const cuplug_fault *fault) {
  return __atomic_load_n(&fault->status, __ATOMIC_ACQUIRE) != 0;
}
void cuplug__fault_clear(cuplug_fault *fault);
/* The error that a complete fault becomes. */
int cuplug__fault_raise(const cuplug_fault *fault, const cuplug__callable *overload,
                        cuplug_error *error);

#endif
