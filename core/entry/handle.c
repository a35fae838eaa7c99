/* SPDX-License-Identifier: Apache-2.0 */
/* A handle counts the calls that use it. It is closed by the caller that reduces the count of a
 * closed handle to 0: cuplug_free_handle, or the last call. Closed handles are not used again, so
 * that happens once. */
#include "entry/handle.h"

#include "base/describe.h"
#include "base/rounding.h"
#include "base/status.h"
#include "cuda/gpus.h"
#include "cuda/stream.h"
#include "entry/entry.h"
#include "entry/services.h"

#include <stdlib.h>

/* ---- Closed ---------------------------------------------------------------------------------- */

static int close_entered(const cuplug_handle *h, cuplug_error *error) {
  cuplug__run run = {.error = error, .device = h->device};
  const cuplug_call call = cuplug__bare_call(&run);
  CUPLUG__ROUNDING before = cuplug__rounding_read();
  int status = h->overload->close(&call, h->pointer);
  if (!status) status = error->status;
  return status ? cuplug__finish_error(error, h->op->name, status) : CUPLUG_OK;
}

static int close_on_gpu(const cuplug_handle *h, cuplug_error *error) {
  CUPLUG__ENTERED context = cuplug__cuda_enter(h->device.id, error);
  if (context.status) return context.status;
  CUPLUG__RELAXED mode = cuplug__capture_allow_unsafe(); /* it may free while a graph is captured */
  return close_entered(h, error);
}

/* A caller without a record still gives the function one: it may fill it. */
static int call_close(const cuplug_handle *h, cuplug_error *error) {
  cuplug_error own;
  if (!error) error = &own;
  cuplug__clear(error);
  if (h->era != cuplug__registry_era()) return CUPLUG_OK; /* it is the parent's */
  return h->device.type == CUPLUG_CUDA ? close_on_gpu(h, error) : close_entered(h, error);
}

int cuplug_close_handle(cuplug_handle *h, cuplug_error *error) {
  cuplug__clear(error);
  if (!h || atomic_fetch_or_explicit(&h->uses, CUPLUG__CLOSED, memory_order_acq_rel))
    return CUPLUG_OK; /* it was closed, or the last call will do it */
  return call_close(h, error);
}

int cuplug_free_handle(cuplug_handle *h, cuplug_error *error) {
  const int status = cuplug_close_handle(h, error);
  free(h);
  return status;
}

/* ---- Used ------------------------------------------------------------------------------------ */

/* Counts a call. 0: it is closed. */
static int use(cuplug_handle *h) {
  uint32_t uses = atomic_load_explicit(&h->uses, memory_order_relaxed);
  do
    if (uses & CUPLUG__CLOSED) return 0;
  while (!atomic_compare_exchange_weak_explicit(&h->uses, &uses, uses + 1, memory_order_acquire,
                                                memory_order_relaxed));
  return 1;
}

static int begin_use(const cuplug__run *run, const char *parameter, cuplug_handle *h) {
  const char *name = run->frame->op->name, *tag = cuplug_handle_tag(h);
  if (h->era != cuplug__registry_era())
    return cuplug__fail(run->error, CUPLUG_ERROR_VALUE,
                        "%s: %s: got handle[%s] of the parent process, expected one of this "
                        "process; make one here with %s",
                        name, parameter, tag, h->op->name);
  if (h->device.type != run->device.type || h->device.id != run->device.id)
    return cuplug__fail(run->error, CUPLUG_ERROR_VALUE,
                        "%s: %s: got handle[%s] made on %s, expected one made on %s (the device of "
                        "the call); make one there with %s",
                        name, parameter, tag, cuplug__describe_device(h->device).s,
                        cuplug__describe_device(run->device).s, h->op->name);
  if (use(h)) return CUPLUG_OK;
  return cuplug__fail(run->error, CUPLUG_ERROR_VALUE,
                      "%s: %s: got a closed handle[%s], expected an open one; make one with %s",
                      name, parameter, tag, h->op->name);
}

static int use_all(cuplug__run *run, cuplug__used *used) {
  cuplug_frame *f = run->frame;
  const cuplug__callable *o = run->overload;
  for (uint32_t k = 0; k < o->n_scalars; k++) {
    const cuplug_parameter *x = &f->signature->parameters[o->scalars[k]];
    if (x->kind != CUPLUG_PARAMETER_HANDLE || f->none_mask >> k & 1) continue;
    cuplug_handle *h = f->scalars[k].handle;
    const int status = begin_use(run, x->name, h);
    if (status) return status;
    used->scalars[used->n] = (uint8_t)k;
    used->handles[used->n++] = h;
    f->scalars[k].handle = h->pointer;
  }
  return CUPLUG_OK;
}

static void end_all(cuplug__run *run, cuplug__used *used) {
  for (uint32_t k = 0; k < used->n; k++) {
    cuplug_handle *h = run->frame->scalars[used->scalars[k]].handle = used->handles[k];
    const uint32_t before = atomic_fetch_sub_explicit(&h->uses, 1, memory_order_acq_rel);
    if (before == (CUPLUG__CLOSED | 1)) call_close(h, NULL);
  }
}

/* ---- Made ------------------------------------------------------------------------------------ */

static int begin_made(const cuplug__run *run) {
  cuplug_frame *f = run->frame;
  if (!f->made)
    return cuplug__fail(
        run->error, CUPLUG_ERROR_VALUE,
        "%s: output 0: got no place, expected one for handle[%s]; pass cuplug_new_handle(&handle)",
        f->op->name, f->signature->made->tag);
  cuplug_handle *h = *f->made = calloc(1, sizeof *h);
  if (!h) return cuplug__no_memory(run->error, "making a handle");
  h->op = f->op;
  h->overload = run->overload;
  h->device = run->device;
  h->era = cuplug__registry_era();
  return CUPLUG_OK;
}

static int end_made(const cuplug__run *run, int status) {
  const cuplug_frame *f = run->frame;
  cuplug_handle *h = *f->made;
  if (!status && !h->pointer)
    status =
        cuplug__fail(run->error, CUPLUG_ERROR_PLUGIN,
                     "%s: the plugin returned CUPLUG_OK without cuplug_set_handle", f->op->name);
  if (!status) return CUPLUG_OK;
  if (h->pointer) call_close(h, NULL); /* the failure is recorded */
  free(h);
  *f->made = NULL;
  return status;
}

int cuplug__handles_begin(cuplug__run *run, cuplug__used *used) {
  used->n = 0;
  if (run->frame->made) *run->frame->made = NULL;
  int status = use_all(run, used);
  if (!status && run->frame->signature->made) status = begin_made(run);
  if (status) end_all(run, used);
  return status;
}

int cuplug__handles_end(cuplug__run *run, cuplug__used *used, int status) {
  if (run->frame->signature->made) status = end_made(run, status);
  end_all(run, used);
  return status;
}

/* ---- Queries --------------------------------------------------------------------------------- */

int cuplug_handle_is_closed(const cuplug_handle *h) {
  return (atomic_load_explicit(&h->uses, memory_order_relaxed) & CUPLUG__CLOSED) != 0;
}

const char *cuplug_handle_tag(const cuplug_handle *h) { return h->overload->signature->made->tag; }

const cuplug_operator *cuplug_handle_operator(const cuplug_handle *h) { return h->op; }

cuplug_device cuplug_handle_device(const cuplug_handle *h) { return h->device; }
