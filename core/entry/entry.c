/* SPDX-License-Identifier: Apache-2.0 */
/* One entry, called: what it is given, and what is made of its answer. */
#include "entry/entry.h"

#include "base/rounding.h"
#include "base/status.h"
#include "cuda/error.h"
#include "entry/run.h"
#include "entry/services.h"
#include "entry/state.h"
#include "entry/zero.h"
#include "registry/operator.h"
#include "signature/names.h"

#include <inttypes.h>

int cuplug__finish_error(cuplug_error *error, const char *name, int status) {
  const char *word = cuplug_status_name(status);
  const int is_told = error->status != CUPLUG_OK && *error->message;
  if (!is_told && word)
    cuplug__fail(error, status, "the plugin failed (%s) without a message", word);
  if (!is_told && !word)
    cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "the plugin returned %d, which is no status", status);
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
  const cuplug__overload *o = run->overload;
  const cuplug_tensor *items = run->tensors + o->n_arrays;
  for (uint32_t k = 0; k < o->n_scalars; k++) {
    if (f->signature->parameters[o->scalars[k]].kind != CUPLUG_PARAMETER_ARRAYS) continue;
    f->scalars[k].list.items = items;
    items += f->scalars[k].list.n;
  }
}

int cuplug__call_guarded(cuplug_entry *entry, const cuplug_call *call) {
  const cuplug__rounding before = cuplug__rounding_read();
  const int status = entry(call);
  if (cuplug__rounding_restore(before)) cuplug__rounding_note_change();
  return status;
}

static inline int call_entry(const cuplug__run *run, const cuplug_call *call) {
  const cuplug__overload *o = run->overload;
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

/* What the entry has reported is kept: it is more to the point. */
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
  if (!status) status = run->error->status; /* whatever was reported is an error */
  return status ? cuplug__finish_error(run->error, run->frame->op->name, status) : CUPLUG_OK;
}

void cuplug__fill_call(cuplug__run *run, cuplug_call *call) { fill_call(run, call); }

int cuplug__end_entry(cuplug__run *run, int status) { return end_entry(run, status); }

int cuplug__call_entry(cuplug__run *run) {
  const cuplug_frame *f = run->frame;
  if (f->signature->n_lists && !f->apart) point_lists(run);
  if (f->signature->zero_outputs) {
    const int failed = cuplug__zero_outputs(run);
    if (failed) return cuplug__named(run, failed);
  }
  cuplug_call call;
  fill_call(run, &call);
  return end_entry(run,
                   run->overload->states ? call_with_state(run, &call) : call_entry(run, &call));
}

cuplug_error *cuplug_entry_error(const cuplug_call *call) { return cuplug__error_of(call); }

/* The least and the greatest number of an integer type; of bool: 0 and 1. */
static void limits_of(uint32_t type, int64_t *low, uint64_t *high) {
  const uint32_t bits = type == CUPLUG_BOOL ? 1 : type >> 16 & 255;
  const uint32_t is_signed = type >> 24 == 0;
  *low = is_signed ? -1 - (int64_t)(UINT64_MAX >> (65 - bits)) : 0;
  *high = UINT64_MAX >> (64 - bits + is_signed);
}

int cuplug_entry_number(const cuplug_call *call, const cuplug_term *term, const char *what,
                        uint32_t type, int64_t *number) {
  const cuplug__run *run = call->run;
  const cuplug__values values = {.tensors = call->tensors, .scalars = call->scalars};
  const char *wrong = cuplug__work_out_integer(&term->formula, &values, number);
  int64_t low;
  uint64_t high;
  if (wrong) {
    const cuplug__text names = cuplug__describe_names(run->frame->signature, term->text, &values);
    return cuplug__fail(run->error, CUPLUG_ERROR_VALUE, *names.s ? "%s: %s: %s (%s)" : "%s: %s: %s",
                        what, term->text, wrong, names.s);
  }
  limits_of(type, &low, &high);
  if (*number >= low && (*number < 0 || (uint64_t)*number <= high)) return CUPLUG_OK;
  return cuplug__fail(run->error, CUPLUG_ERROR_VALUE,
                      "%s: %s: got %" PRId64 ", expected %" PRId64 " to %" PRIu64
                      ", what the type of its parameter can hold",
                      what, term->text, *number, low, high);
}
