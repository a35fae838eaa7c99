/* SPDX-License-Identifier: Apache-2.0 */
/* One run of an entry, between bind.c, call.c, prepare.c, entry.c, services.c, stage.c,
 * cut.c and slices.c. */
#ifndef CUPLUG_CORE_CALL_H
#define CUPLUG_CORE_CALL_H

#include "operator.h"

#define CUPLUG__MAX_WORKSPACES 16

typedef struct cuplug__run {
  cuplug_frame *frame;
  cuplug__overload *overload;
  cuplug_error *error;    /* never NULL */
  cuplug_device device;   /* where the entry runs */
  void *stream;           /* NULL on the host */
  cuplug_fault *fault;    /* NULL on the host */
  cuplug_tensor *tensors; /* what the entry sees: the frame's, or device copies of them */
  uint32_t n_workspaces;
  void *workspaces[CUPLUG__MAX_WORKSPACES];
} cuplug__run;

/* Calls the entry of the run's side, frees its workspaces, and turns what it returned into a
 * finished error record. The device has been entered. */
int cuplug__call_entry(cuplug__run *run);

/* Looks for code for the GPU, and makes the fault record unless there is one. The device has been
 * entered. */
int cuplug__prepare(const cuplug_operator *op, cuplug__overload *overload, int32_t device,
                    cuplug_error *error);

/* Puts the operator's name before the message when something outside of the entry has failed.
 * Returns `status`. */
int cuplug__named(const cuplug__run *run, int status);

/* Host arrays through the GPU: copies in, runs, waits, copies out. The device has been entered. */
int cuplug__run_staged(cuplug__run *run);

/* Broadcasts the inputs of copy_mask by strides of 0, and clears it. */
void cuplug__spread_inputs(cuplug_frame *frame);

/* What an entry may ask for; `call->host` is the run. */
extern const cuplug_services cuplug__services;
void cuplug__free_workspaces(cuplug__run *run);

#endif
