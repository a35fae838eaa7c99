/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of the machine: the driver, started once, its reports of them, and their contexts. */
#ifndef CUPLUG_CORE_CUDA_GPUS_H
#define CUPLUG_CORE_CUDA_GPUS_H

#include "cuda/driver.h"

#include <cuplug/host.h>
#include <stdatomic.h>

#define CUPLUG__MAX_GPUS 64

typedef struct cuplug__gpu {
  CUdevice handle;
  int32_t capability; /* 90 for 9.0 */
  int32_t n_processors;
  uint64_t memory_bytes;
  _Atomic(CUcontext) context; /* the primary one, once retained */
} cuplug__gpu;

/* Valid once cuplug__cuda_start has succeeded; constant afterwards, contexts apart. */
extern cuplug__gpu cuplug__gpus[CUPLUG__MAX_GPUS];
extern int32_t cuplug__n_gpus;

/* Starts the driver once. After that one atomic load. Fails in a child forked after the start. */
int cuplug__cuda_start(cuplug_error *error);

/* ERROR_VALUE unless there is a GPU of that number; the driver has been started. */
int cuplug__cuda_check_device(int32_t device, cuplug_error *error);

/* 1 if the GPU can run code for one of the capabilities in "750,800": machine code or PTX. */
int cuplug__cuda_can_run(int32_t device, const char *architectures, int32_t *capability);

/* 1 in a process that started CUDA and was not forked since: its pinned memory may be touched. */
int cuplug__driver_ready(void);

/* ---- Contexts -------------------------------------------------------------------------------- */

/* The current context and the one before; equal after an error. */
typedef struct cuplug__context {
  void *current, *previous;
  int status; /* CUPLUG_OK, or the reason that no context was entered */
} cuplug__context;

/* Makes the primary context of `device` current, unless it is. Declares a context that is left at
 * the end of the block: CUPLUG__ENTERED context = cuplug__cuda_enter(device, error); if
 * (context.status) return context.status;
 */
#define CUPLUG__ENTERED __attribute__((cleanup(cuplug__cuda_leave))) cuplug__context
cuplug__context cuplug__cuda_enter(int32_t device, cuplug_error *error);
void cuplug__cuda_leave(const cuplug__context *context);

/* For the start of a function: empties the record, and declares such a `context`. The function
 * returns the status on failure. */
#define CUPLUG__ENTER_OR_RETURN(device, error)                 \
  cuplug__clear(error);                                        \
  CUPLUG__ENTERED context = cuplug__cuda_enter(device, error); \
  if (context.status) return context.status

#endif
