/* SPDX-License-Identifier: Apache-2.0 */
/* One call of an entry: its arguments, and the status of its result. */
#include "entry/entry.h"

#include "base/rounding.h"
#include "base/status.h"
#include "cuda/driver.h"
#include "entry/prepare.h"
#include "entry/run.h"
#include "entry/services.h"
#include "registry/plugin.h"

int cuplug__finish_error(cuplug_error *error, const char *name, int status) {
  const char *word = cuplug_status_name(status);
  const int is_told = error->status != CUPLUG_OK && *error->message;
  if (!is_told && word)
    cuplug__fail(error, status, "the plugin failed (%s) without a message", word);
  if (!is_told && !word)
    cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "the plugin returned %d, which is not a status",
                 status);
  if (is_told && !word)
    cuplug__append(error, " (status %d, which this core does not know)", status);
  error->status = word ? status : CUPLUG_ERROR_PLUGIN;
  error->message[CUPLUG_ERROR_MESSAGE_BYTES - 1] = 0;
  if (error->cuda_code) {
    cuplug__cuda_note_sticky(error->cuda_code, name);
    cuplug__cuda_explain(error, error->cuda_code);
  }
  cuplug__prefix(error, "%s: ", name);
  return error->status;
}

/* The arrays of lists, where the entry sees them: among all tensors. */
static void point_lists(cuplug__run *run) {
  cuplug_frame *f = run->frame;
  const cuplug__callable *o = run->overload;
  const cuplug_tensor *items = run->tensors + o->n_arrays;
  for (uint32_t k = 0; k < o->n_scalars; k++) {
    if (f->signature->parameters[o->scalars[k]].kind != CUPLUG_PARAMETER_ARRAYS) continue;
    f->scalars[k].list.items = items;
    items += f->scalars[k].list.n;
  }
}

int cuplug__call_guarded(cuplug_entry *entry, const cuplug_call *call) {
  CUPLUG__ROUNDING before = cuplug__rounding_read();
  return entry(call);
}

static inline int call_entry(const cuplug__run *run, const cuplug_call *call) {
  const cuplug__callable *o = run->overload;
  if (run->device.type == CUPLUG_CUDA) return cuplug__call_guarded(o->cuda, call);
  return o->keeps_rounding ? o->host(call) : cuplug__call_guarded(o->host, call);
}

static int call_with_state(const cuplug__run *run, cuplug_call *call) {
  cuplug__held *held;
  int status = cuplug__state_take(run->overload->states, call, run->error, &held);
  if (status) return status;
  status = call_entry(run, call);
  cuplug__state_give(run->overload->states, call->device, held);
  return status;
}

/* The entry's own report is kept: it is more specific. */
static void join_second(cuplug__run *run) {
  cuplug_error error, *to = run->error->status ? &error : run->error;
  cuplug__second_join(run->second, run->stream, to);
  run->second = NULL;
}

static inline void fill_call(cuplug__run *run, cuplug_call *call) {
  const cuplug_frame *f = run->frame;
  *call = (cuplug_call){.struct_bytes = sizeof *call,
                        .abi_version = CUPLUG_ABI_VERSION,
                        .device = run->device,
                        .stream = run->stream,
                        .tensors = run->tensors,
                        .outputs = run->tensors + f->n_inputs,
                        .none_mask = f->none_mask,
                        .scalars = f->scalars,
                        .n_tensors = f->n_tensors,
                        .n_scalars = f->n_scalars,
                        .fault = run->fault,
                        .services = &cuplug__services,
                        .run = run,
                        .max_threads = cuplug__max_threads(),
                        .n_inputs = f->n_inputs,
                        .supplied_mask = f->supplied_mask,
                        .context = run->overload->context};
}

static inline int end_entry(cuplug__run *run, int status) {
  if (run->second) join_second(run);
  if (run->n_workspaces) cuplug__free_workspaces(run);
  if (!status) status = run->error->status; /* any report is an error */
  return status ? cuplug__finish_error(run->error, run->frame->op->name, status) : CUPLUG_OK;
}

void cuplug__fill_call(cuplug__run *run, cuplug_call *call) { fill_call(run, call); }

int cuplug__end_entry(cuplug__run *run, int status) { return end_entry(run, status); }

int cuplug__call_entry(cuplug__run *run) {
  const cuplug_frame *f = run->frame;
  if (f->signature->n_lists && !f->apart) point_lists(run);
  if (f->signature->zero_outputs) {
    const int failed = cuplug__zero_outputs(run);
    if (failed) return cuplug__prefix_operator_name(run, failed);
  }
  cuplug_call call;
  fill_call(run, &call);
  return end_entry(run,
                   run->overload->states ? call_with_state(run, &call) : call_entry(run, &call));
}
