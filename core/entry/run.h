/* SPDX-License-Identifier: Apache-2.0 */
/* One run of an entry: its device and its arguments. */
#ifndef CUPLUG_CORE_ENTRY_RUN_H
#define CUPLUG_CORE_ENTRY_RUN_H

#include "base/status.h"
#include "cuda/stream.h"
#include "registry/plugin.h"
#include "registry/registry.h"

#include <internal/frame.h>
#include <stdatomic.h>

#define CUPLUG__MAX_WORKSPACES 16

typedef struct cuplug__run {
  cuplug_frame *frame; /* NULL while a state is made */
  cuplug__callable *overload;
  cuplug_error *error;    /* never NULL */
  cuplug_device device;   /* where the entry runs */
  void *stream;           /* NULL on the host */
  cuplug_fault *fault;    /* NULL on the host */
  cuplug_tensor *tensors; /* the entry's arrays: the frame's, or device copies of them */
  atomic_flag is_failing; /* while an error is reported */
  cuplug__second *second; /* NULL: the entry requested no second stream */
  uint32_t n_workspaces;
  void *workspaces[CUPLUG__MAX_WORKSPACES];
  uint64_t workspace_bytes[CUPLUG__MAX_WORKSPACES];
} cuplug__run;

/* The threads that an entry may start: a forked child lacks the threads of its OpenMP pool. */
static inline uint32_t cuplug__max_threads(void) { return cuplug__registry_era() > 1; }

/* The record of a call of an entry that belongs to the core. */
static inline cuplug_error *cuplug__error_of(const cuplug_call *call) {
  return ((const cuplug__run *)call->run)->error;
}

/* 1 if tensor k is changed: an in-out array, or an output. */
static inline int cuplug__is_written(const cuplug__run *run, uint32_t k) {
  const cuplug_frame *f = run->frame;
  return k >= f->n_inputs || f->signature->parameters[f->parameter[k]].is_inout;
}

/* Puts the operator's name before the message of a failure outside the entry. Returns `status`. */
static inline int cuplug__prefix_operator_name(const cuplug__run *run, int status) {
  if (status) cuplug__prefix(run->error, "%s: ", run->frame->op->name);
  return status;
}

#endif
